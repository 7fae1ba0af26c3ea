//! `drip advise`: recommends rate and burst for the traffic in access logs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use config::{self, KeyTemplate, Route, Zone};
use gateway::replay::Form;
use tools::advise::{self, Advice, MAX_KEYS, Survey};
use tools::learned_costs;
use tools::output::{complain, exit_code, print};
use tools::trace::form;

/// Arguments of `drip advise`.
#[derive(Debug, Args)]
pub struct AdviseArguments {
    /// The key of a client, made of nginx's variables, as far as the log has them; a text without
    /// variables counts all requests together
    #[arg(long, value_name = "KEY", default_value = "$remote_addr")]
    key: KeyTemplate,
    /// For drip's own log: use the logged keys of this zone, and only the requests that it decided
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,
    /// A gateway.toml that has the zone; its key is used for any log
    #[arg(
        short,
        long,
        value_name = "FILE",
        requires = "zone",
        conflicts_with = "key"
    )]
    config: Option<PathBuf>,
    /// The format of the logs; combined is that of nginx and Apache, json that of drip and nginx
    /// [default: detected from the first lines]
    #[arg(long, value_name = "FORMAT", value_parser = form())]
    format: Option<Form>,
    /// Access logs of drip, nginx, Apache, HAProxy, Caddy, Traefik or an ALB, or CSV lines
    /// `time_seconds,key`; plain or compressed by gzip; - for standard input
    #[arg(value_name = "ACCESS_LOG", required = true)]
    logs: Vec<PathBuf>,
}

/// Reads the logs and prints the settings that they suggest.
pub fn advise(arguments: &AdviseArguments) -> ExitCode {
    match read(arguments) {
        Ok(Some(advice)) => print(&advise::report(&advice)),
        Ok(None) => ExitCode::FAILURE,
        Err(error) => exit_code("drip", Err(error)),
    }
}

/// Reads the logs. Returns `None` if there is nothing to advise.
fn read(arguments: &AdviseArguments) -> io::Result<Option<Advice>> {
    let mut survey = Survey::new(arguments.key.clone(), MAX_KEYS)?;
    if let Some(name) = &arguments.zone {
        let file = arguments.config.as_ref();
        let file_zone = file.map(|file| zone_in(file, name)).transpose()?;
        survey = survey.with_zone(name, file_zone);
    }
    let read = advise::read(&arguments.logs, arguments.format, &mut survey)?;
    if arguments.zone.is_some() && arguments.config.is_none() && survey.form == Some(Form::Csv) {
        return Err(io::Error::other(
            "--zone needs drip's own log: the lines of a CSV contain their keys. Remove --zone",
        ));
    }
    let missing_variables = survey.missing_variables();
    let is_keyless = read > 0 && survey.is_keyless();
    let advice = Advice::new(survey)?;
    if advice.is_none() {
        complain(if read == 0 {
            "the logs contain no request".to_owned()
        } else if let Some(zone) = arguments.zone.as_ref().filter(|_| is_keyless) {
            format!("the log contains no request that zone {zone} decided")
        } else if missing_variables.is_empty() {
            "no request has a key".to_owned()
        } else {
            format!(
                "no request has a key: the log does not contain {missing_variables}. Choose another --key"
            )
        });
    }
    Ok(advice)
}

/// Reads the zone of this name from a file.
fn zone_in(file: &Path, name: &str) -> io::Result<Zone> {
    let settings = config::load(file).map_err(io::Error::other)?;
    let names: Vec<_> = settings.zones.iter().map(|zone| &*zone.name).collect();
    let names = names.join(", ");
    let index = settings.zones.iter().position(|zone| zone.name == name);
    let is_limited = |route: &Route| route.limits.iter().any(|limit| Some(limit.zone) == index);
    // A running gateway may learn how much each request of a route costs. A log does not tell.
    if let Some(learned) = learned_costs(&settings, is_limited) {
        complain(format_args!(
            "{}: {learned} by a running gateway: here each request costs 1",
            file.display()
        ));
    }
    let found = settings.zones.into_iter().find(|zone| zone.name == name);
    found.ok_or_else(|| {
        let file = file.display();
        io::Error::other(format!("{file} has no zone {name}: its zones are {names}"))
    })
}

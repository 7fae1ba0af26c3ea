//! `drip find`: raises a limit of an origin until its objective breaks, and reports its capacity.
//! An objective is, for example, that 95 % of the responses take less than 400 ms.
//!
//! The experiment runs in the gateway. This command starts it, renews it every second, and prints
//! its steps. If the command ends for any reason, the gateway ends the experiment and applies the
//! file again.

mod arguments;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use awc::http::{Method, StatusCode};
use config::AdminTokens;
use gateway::server::signals::Signals;
use gateway::status::Plain;
use gateway::time::clock;
use serde_json::{Value, json};
use tokio::time::sleep;

pub use self::arguments::FindArguments;
use crate::admin_client::{AdminError, Client, list};
use crate::output::{complain, write};

/// Interval at which the experiment is renewed.
const INTERVAL: Duration = Duration::from_secs(1);
/// Silence of the gateway after which it has ended the experiment, because nothing renewed it.
const LOST_AFTER: Duration = Duration::from_secs(15);
/// Silence of the gateway after which the command prints a warning on a terminal.
const SILENT_AFTER: Duration = Duration::from_secs(3);

/// Runs the experiment and prints the capacity that it found.
///
/// Succeeds if a limit was found, or if the highest requested limit held.
pub fn find(options: &FindArguments) -> ExitCode {
    match actix_rt::System::new().block_on(run(options)) {
        Ok(is_found) => ExitCode::from(u8::from(!is_found)),
        Err(error) => {
            complain(format_args!("drip find: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Starts the experiment and follows it to its end. Returns whether it found a limit.
async fn run(options: &FindArguments) -> io::Result<bool> {
    let tokens = AdminTokens::from_environment().map_err(io::Error::other)?;
    let client = Client::new(options.admin.clone(), tokens);
    let mut signals = Signals::listen()?;
    let started = client.send::<Value>(Method::POST, "/api/find", options.body());
    let mut experiment = started.await.map_err(|error| {
        let admin = &options.admin;
        io::Error::other(format!("cannot start the experiment at {admin}: {error}"))
    })?;
    let followed = follow(options, &client, &mut signals, &mut experiment).await;
    if let Err(error) = &followed
        && is_running(&experiment)
        && options.json
    {
        let incomplete = format!("# incomplete: {error}");
        experiment["lines"] = json!([incomplete]);
        print_json(&experiment)?;
    }
    followed
}

/// Renews the experiment and prints its steps until it ends. Returns whether it found a limit.
///
/// `experiment`: its state, as the gateway last reported it.
async fn follow(
    options: &FindArguments,
    client: &Client,
    signals: &mut Signals,
    experiment: &mut Value,
) -> io::Result<bool> {
    let renewal = json!({ "id": experiment["id"] }).to_string();
    let mut printed = 0;
    let mut last_renewed = clock::now();
    let mut has_warned_of_silence = false;
    loop {
        if !experiment["state"].is_string() {
            return Err(io::Error::other("its answer is not that of a drip gateway"));
        }
        printed = print_steps(options, experiment, printed)?;
        if !is_running(experiment) {
            return print_end(options, experiment);
        }
        let is_stopped = tokio::select! {
            _ = signals.next() => true,
            () = sleep(INTERVAL) => false,
        };
        if is_stopped {
            // If this fails, the gateway ends the experiment because nothing renews it. The renewal
            // below then reads the result of the ended experiment.
            let (path, body) = (options.path(), renewal.clone());
            let _ended = client.send::<Value>(Method::DELETE, &path, body).await;
            sleep(INTERVAL).await;
        }
        let path = options.path();
        let renewed = client.send(Method::PUT, &path, renewal.clone());
        let error = match renewed.await {
            Ok(renewed) => {
                (*experiment, last_renewed) = (renewed, clock::now());
                has_warned_of_silence = false;
                continue;
            }
            Err(error) => error,
        };
        let silence = clock::now().since(last_renewed);
        if has_lost_experiment(&error) {
            return Err(io::Error::other(format!(
                "the gateway no longer has this experiment: {error}"
            )));
        }
        if silence >= LOST_AFTER || is_stopped {
            return Err(io::Error::other(format!(
                "the gateway does not renew the experiment: {error}; the gateway has ended it, and its file is in force again"
            )));
        }
        if !has_warned_of_silence && silence >= SILENT_AFTER {
            has_warned_of_silence = true;
            complain(format_args!(
                "drip find: the gateway does not renew the experiment: {error}; it ends the experiment after {} s without renewal",
                LOST_AFTER.as_secs()
            ));
        }
    }
}

fn is_running(experiment: &Value) -> bool {
    experiment["state"] == "running"
}

/// Returns a text that cannot control the terminal.
///
/// Another server than drip may listen at the gateway's address.
fn text(value: &Value) -> Plain {
    Plain::new(value.as_str().unwrap_or_default())
}

/// Returns whether the gateway works but no longer has the experiment.
fn has_lost_experiment(error: &AdminError) -> bool {
    let statuses = [StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    error.status.is_some_and(|it| statuses.contains(&it))
}

/// Prints the steps that ended since the last call. Returns the number of steps printed so far.
fn print_steps(options: &FindArguments, experiment: &Value, printed: usize) -> io::Result<usize> {
    let steps = list(&experiment["steps"]);
    for step in steps.iter().skip(printed).filter(|_| !options.json) {
        write(&format!("{}\n", text(&step["line"])))?;
    }
    Ok(steps.len())
}

/// Prints the result of an ended experiment. Returns whether it has one: a limit, or a number that
/// it is at least.
fn print_end(options: &FindArguments, experiment: &Value) -> io::Result<bool> {
    if options.json {
        print_json(experiment)?;
    } else {
        for line in list(&experiment["lines"]) {
            write(&format!("{}\n", text(line)))?;
        }
    }
    let outcome = experiment["result"]["outcome"].as_str();
    Ok(matches!(outcome, Some("found" | "at_least")))
}

/// Prints the complete state of the experiment.
///
/// JSON escapes the control characters below U+0020, which could control a terminal.
fn print_json(experiment: &Value) -> io::Result<()> {
    write(&format!("{experiment:#}\n"))
}

use std::collections::HashMap;

use super::exempt::Variables;
use super::page::{Names, Section, list};
use super::scope::named;
use crate::config::KeyTemplate;
use crate::limit::Rate;
use crate::tools::import::notes::{Notes, Place};
use crate::tools::import::tree::Directive;
use crate::tools::import::values;

/// The zones of `limit_req_zone` and `limit_conn_zone`.
#[derive(Default)]
pub(super) struct Zones {
    /// The names of nginx's zones in the settings; `None` for a zone that is left out.
    pub(super) requests: HashMap<String, Option<String>>,
    /// For zones of connections: counted in total or for each server; `None` for any other key.
    pub(super) connections: HashMap<String, Option<Counted>>,
    pub(super) sections: Vec<Section>,
    /// The places of the geos and maps that became `exempt`.
    pub(super) exempting: Vec<Place>,
    names: Names,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Counted {
    Together,
    ByServer,
}

impl Zones {
    pub(super) fn read(http: &[Directive], notes: &mut Notes) -> Self {
        let mut zones = Self::default();
        let variables = Variables::read(http);
        for directive in named(http, "limit_req_zone") {
            zones.requests(directive, &variables, notes);
        }
        for directive in named(http, "limit_conn_zone") {
            zones.connections(directive, notes);
        }
        zones
    }

    fn requests(&mut self, directive: &Directive, variables: &Variables, notes: &mut Notes) {
        let before = notes.count();
        let place = directive.place;
        let Some((key, args)) = directive.args.split_first() else {
            return notes.add(place, "limit_req_zone has no key; it is left out");
        };
        let (mut zone, mut rate) = (None, None);
        for arg in args {
            match arg.split_once('=') {
                Some(("zone", text)) => zone = Some(text),
                Some(("rate", text)) => rate = Some(text),
                _ if arg == "sync" => {
                    notes.add(place, "sync: drip's zones are not shared between hosts");
                }
                _ => notes.add(place, format!("limit_req_zone: {arg} is not known")),
            }
        }
        let Some((name, size)) = zone.map(|zone| zone.split_once(':').unwrap_or((zone, ""))) else {
            return notes.add(
                place,
                "limit_req_zone has no zone=NAME:SIZE; it is left out",
            );
        };
        if self.requests.contains_key(name) {
            return notes.add(
                place,
                format!("zone {name} is defined a second time; this one is left out"),
            );
        }
        let exempting = variables.exempting(key);
        let key = self::key(exempting.as_ref().map_or(key, |known| &known.key));
        let rate = self::rate(rate);
        for problem in [key.as_ref().err(), rate.as_ref().err()]
            .into_iter()
            .flatten()
        {
            notes.add(
                place,
                format!("zone {name} is left out, and so are its limits: {problem}"),
            );
        }
        let (Ok(key), Ok((rate, slower))) = (key, rate) else {
            self.requests.insert(name.to_owned(), None);
            return;
        };
        if slower {
            notes.add(place, "the fastest rate of drip is 1000000r/s");
        }
        let mut section = Section::default();
        let known = self.names.unique(name);
        section.title = format!("[zones.{known}]");
        section.text("key", &key.to_string());
        section.text("rate", &rate);
        match values::size(size) {
            // nginx: a megabyte holds about 8000 states of 128 bytes.
            Some(bytes) if bytes > 0 => {
                let keys = u128::from(bytes) * 8000 / (1 << 20);
                section
                    .fields
                    .push(("max_keys", keys.clamp(1, u128::from(u32::MAX)).to_string()));
            }
            _ => notes.add(
                place,
                format!("zone {name}: \"{size}\" is not a size; max_keys keeps its default"),
            ),
        }
        section.fields.push(("ipv6_prefix", "128".to_owned()));
        if let Some(exempting) = exempting {
            section.fields.push(("exempt", list(&exempting.networks)));
            self.exempting.extend(exempting.places);
        }
        section.comments = notes.since(before);
        self.sections.push(section);
        self.requests.insert(name.to_owned(), Some(known));
    }

    fn connections(&mut self, directive: &Directive, notes: &mut Notes) {
        let name = directive
            .args
            .iter()
            .find_map(|arg| arg.strip_prefix("zone="));
        let (Some(key), Some(name)) = (directive.args.first(), name) else {
            return notes.add(
                directive.place,
                "limit_conn_zone has no key or no zone=NAME:SIZE; it is left out",
            );
        };
        let counted = match &**key {
            "$server_name" => Some(Counted::ByServer),
            key if !key.contains('$') && !key.starts_with("zone=") => Some(Counted::Together),
            _ => None,
        };
        let name = name.split(':').next().unwrap_or(name);
        self.connections.entry(name.to_owned()).or_insert(counted);
    }
}

fn key(text: &str) -> Result<KeyTemplate, String> {
    let known = text
        .replace("$binary_remote_addr", "$remote_addr")
        .replace("${binary_remote_addr}", "${remote_addr}");
    known.parse::<KeyTemplate>().map_err(|error| {
        format!(
            "its key is \"{text}\"; {error} (networks that a map or geo exempts can be in exempt)"
        )
    })
}

/// The rate in drip's form, and whether it had to be made slower.
fn rate(text: Option<&str>) -> Result<(String, bool), String> {
    // nginx's default.
    let text = text.unwrap_or("1r/s");
    let (count, unit) = match text.split_once("r/") {
        Some((count, unit @ ("s" | "m"))) => (count, unit),
        None => (text, "s"),
        Some(_) => ("", ""),
    };
    let Some(count) = values::whole(count).filter(|count| *count > 0) else {
        return Err(format!(
            "its rate is \"{text}\", which is not a rate such as 10r/s or 30r/m"
        ));
    };
    let rate = format!("{count}r/{unit}");
    Ok(match rate.parse::<Rate>() {
        Ok(_) => (rate, false),
        Err(_) => ("1000000r/s".to_owned(), true),
    })
}

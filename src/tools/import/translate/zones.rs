//! Translates the zones of `limit_req_zone` and `limit_conn_zone`.
//!
//! A zone says what the key of a request is, and the rate of requests with the same key. `limits`
//! translates the limits that name a zone.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use config::{KeyError, KeyTemplate, Part, Variable};
use limit::Rate;

use super::exempt::Variables;
use super::page::{Names, Section};
use super::scope::named;
use crate::import::notes::Position;
use crate::import::tree::Directive;
use crate::import::values;

/// Number of states in a megabyte, from nginx's documentation. Each key has a state.
///
/// A state takes 128 bytes for requests and 64 bytes for connections.
const REQUEST_STATES: u64 = 8000;
const CONNECTION_STATES: u64 = 16_000;
const MEGABYTE: u128 = 1 << 20;

/// Default of nginx's rate.
const DEFAULT_RATE: &str = "1r/s";

/// The zones of `limit_req_zone` and `limit_conn_zone`, by nginx's names.
#[derive(Default)]
pub(super) struct Zones {
    /// The zones of `limit_req_zone`.
    pub(super) requests: HashMap<String, Zone>,
    /// The zones of `limit_conn_zone`.
    pub(super) connections: HashMap<String, Zone>,
    /// The tables of the translated zones.
    pub(super) sections: Vec<Section>,
    /// Positions of the geos and maps that are translated.
    pub(super) translated: Vec<Position>,
    /// Names of the zones in the settings.
    names: Names,
}

/// Translation of one of nginx's zones.
pub(super) enum Zone {
    /// The zone is translated. The text is its name in the settings.
    Limits(String),
    /// The zone counts all connections together. Its limits become limits of origins.
    Together,
    /// The zone counts the connections of each server. Its limits become limits of origins.
    ByServer,
    /// The zone cannot be translated. Its limits are lost.
    LeftOut,
}

impl Zones {
    /// Reads the zones of `http`, the block around all servers.
    pub(super) fn read(http: &[Directive]) -> Self {
        let mut zones = Self::default();
        let variables = Variables::read(http);
        for title in ["limit_req_zone", "limit_conn_zone"] {
            for directive in named(http, title) {
                zones.add(directive, &variables);
            }
        }
        zones
    }

    /// Translates a zone, and adds its section.
    fn add(&mut self, directive: &Directive, variables: &Variables) {
        let (at, title) = (directive.at, &*directive.name);
        let notes_before = at.notes.count();
        let counts_requests = title == "limit_req_zone";
        let Some((key, args)) = directive.args.split_first() else {
            return at.note_of_limit(format!("{title} has no key; it is left out"));
        };
        let (mut zone, mut rate) = (None, DEFAULT_RATE);
        for arg in args {
            match arg.split_once('=') {
                Some(("zone", text)) => zone = Some(text),
                Some(("rate", text)) if counts_requests => rate = text,
                _ if arg == "sync" => {
                    at.note("sync: drip's zones are not shared between hosts");
                }
                _ => at.note(format!("{title}: {arg} is not known")),
            }
        }
        let Some((name, size)) = zone.map(|zone| zone.split_once(':').unwrap_or((zone, ""))) else {
            let message = format!("{title} has no zone=NAME:SIZE; it is left out");
            return at.note_of_limit(message);
        };
        let zones = if counts_requests {
            &mut self.requests
        } else {
            &mut self.connections
        };
        let Entry::Vacant(entry) = zones.entry(name.to_owned()) else {
            let message = format!("zone {name} is defined a second time; this one is left out");
            return at.note(message);
        };
        if !counts_requests && key == "$server_name" {
            entry.insert(Zone::ByServer);
            return;
        }
        // A key without a variable is the same for all.
        if !counts_requests && !key.is_empty() && !key.contains('$') {
            entry.insert(Zone::Together);
            return;
        }
        let exemption = variables.exemption(key);
        let limited_key = exemption.as_ref().map_or(&**key, |it| &it.key);
        let (rate, states) = if counts_requests {
            (translate_rate(rate), REQUEST_STATES)
        } else {
            (Ok("none".to_owned()), CONNECTION_STATES)
        };
        let translated = translate_key(limited_key).and_then(|key| Ok((key.to_string(), rate?)));
        let (key, rate) = match translated {
            Ok(translated) => translated,
            Err(why) => {
                let message = format!("zone {name} is left out, and so are its limits: {why}");
                at.note_of_limit(message);
                entry.insert(Zone::LeftOut);
                return;
            }
        };
        let new_name = self.names.unique(name);
        let bytes = values::size(size).filter(|bytes| *bytes > 0);
        if bytes.is_none() {
            at.note(format!(
                "zone {name}: \"{size}\" is not a size; max_keys keeps its default"
            ));
        }
        let max_keys = bytes.map(|bytes| max_keys(bytes, states));
        let mut exempt = Vec::new();
        if let Some(exemption) = exemption {
            self.translated.extend(exemption.positions);
            exempt = exemption.networks;
        }
        let mut section = Section::zone(&new_name, (&key, &rate), max_keys, &exempt);
        section.comments = at.notes.since(notes_before);
        self.sections.push(section);
        entry.insert(Zone::Limits(new_name));
    }
}

/// Returns the number of keys in a zone of this size. `states`: number of states in a megabyte.
fn max_keys(bytes: u64, states: u64) -> String {
    let keys = u128::from(bytes) * u128::from(states) / MEGABYTE;
    keys.clamp(1, u128::from(u32::MAX)).to_string()
}

/// Translates a rate to drip's syntax.
fn translate_rate(text: &str) -> Result<String, String> {
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
    let parsed = rate.parse::<Rate>();
    parsed.map(|_| rate).map_err(|error| error.to_string())
}

/// Translates a key to drip's syntax.
fn translate_key(text: &str) -> Result<KeyTemplate, String> {
    let known = text.replace("$binary_remote_addr", "$remote_addr");
    let known = known.replace("${binary_remote_addr}", "${remote_addr}");
    let key = known.parse::<KeyTemplate>();
    let key = key.and_then(|key| match first_unsupported_variable(&key) {
        Some(variable) => Err(KeyError::Unknown(variable.to_string())),
        None => Ok(key),
    });
    key.map_err(|error| {
        format!(
            "its key is \"{text}\"; {error} (networks that a map or geo exempts can be in exempt)"
        )
    })
}

/// Returns the first variable whose value differs between drip and nginx, if any.
///
/// These are tokens, groups of paths, and certificates of clients, which an imported file does not
/// request.
pub(super) fn first_unsupported_variable(template: &KeyTemplate) -> Option<&Variable> {
    template.parts().iter().find_map(|part| match part {
        Part::Variable(
            variable @ (Variable::Jwt { .. }
            | Variable::Path(_)
            | Variable::SslClientVerify
            | Variable::SslClientFingerprint
            | Variable::SslClientSubject
            | Variable::SslClientSerial),
        ) => Some(variable),
        Part::Variable(_) | Part::Text(_) => None,
    })
}

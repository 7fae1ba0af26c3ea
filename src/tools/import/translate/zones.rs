//! Zones of `limit_req_zone` and `limit_conn_zone`.

use std::collections::HashMap;

use config::{KeyError, KeyTemplate, Part, Variable};
use limit::Rate;

use super::exempt::{Exempting, Variables};
use super::page::{Names, Section, list};
use super::scope::named;
use crate::import::notes::{Notes, Place};
use crate::import::tree::Directive;
use crate::import::values;

/// States in a megabyte, as nginx documents them: of 128 bytes for requests, of 64 for connections.
const REQUEST_STATES: u64 = 8000;
const CONNECTION_STATES: u64 = 16_000;

/// The zones of `limit_req_zone` and `limit_conn_zone`, by nginx's names.
#[derive(Default)]
pub(super) struct Zones {
    pub(super) requests: HashMap<String, Zone>,
    pub(super) connections: HashMap<String, Zone>,
    pub(super) sections: Vec<Section>,
    /// The places of the geos and maps that are translated.
    pub(super) translated: Vec<Place>,
    names: Names,
}

/// What became of a zone.
pub(super) enum Zone {
    /// The zone of this name in the settings.
    Limits(String),
    /// It counts the connections of all, so its limits are those of origins.
    Together,
    /// The same for the requests of each server.
    ByServer,
    LeftOut,
}

impl Zones {
    pub(super) fn read(http: &[Directive], notes: &mut Notes) -> Self {
        let mut zones = Self::default();
        let variables = Variables::read(http);
        for title in ["limit_req_zone", "limit_conn_zone"] {
            for directive in named(http, title) {
                zones.define(directive, &variables, notes);
            }
        }
        zones
    }

    fn define(&mut self, directive: &Directive, variables: &Variables, notes: &mut Notes) {
        let before = notes.count();
        let Some(definition) = Definition::read(directive, notes) else {
            return;
        };
        let (name, key) = (definition.name, definition.key);
        if self.of(&definition).contains_key(name) {
            let message = format!("zone {name} is defined a second time; this one is left out");
            return notes.add(directive.place, message);
        }
        let became = if definition.is_of_requests
            || key.is_empty()
            || (key.contains('$') && key != "$server_name")
        {
            let added = self.add(&definition, variables, before, notes);
            added.map_or_else(
                |why| {
                    let message = format!("zone {name} is left out, and so are its limits: {why}");
                    notes.add_of_limit(directive.place, message);
                    Zone::LeftOut
                },
                Zone::Limits,
            )
        } else if key == "$server_name" {
            Zone::ByServer
        } else {
            Zone::Together
        };
        self.of(&definition).insert(name.to_owned(), became);
    }

    /// The zones of the same directive.
    fn of(&mut self, definition: &Definition) -> &mut HashMap<String, Zone> {
        if definition.is_of_requests {
            &mut self.requests
        } else {
            &mut self.connections
        }
    }

    /// Adds the section of a zone. Returns its name in the settings, or why it is left out.
    ///
    /// `before`: the number of notes before those on this zone.
    fn add(
        &mut self,
        definition: &Definition,
        variables: &Variables,
        before: usize,
        notes: &mut Notes,
    ) -> Result<String, String> {
        let exempting = variables.exempting(definition.key);
        let key = key(exempting.as_ref().map_or(definition.key, |it| &it.key))?;
        let (rate, states) = if definition.is_of_requests {
            (definition.rate()?, REQUEST_STATES)
        } else {
            ("none".to_owned(), CONNECTION_STATES)
        };
        let name = self.names.unique(definition.name);
        let mut section = Section::new(format!("[zones.{name}]"));
        section.text("key", &key.to_string());
        section.text("rate", &rate);
        if let Some(bytes) = definition.bytes(notes) {
            let keys = u128::from(bytes) * u128::from(states) / (1 << 20);
            let keys = keys.clamp(1, u128::from(u32::MAX));
            section.fields.push(("max_keys", keys.to_string()));
        }
        section.fields.push(("ipv6_prefix", "128".to_owned()));
        if let Some(Exempting {
            networks, places, ..
        }) = exempting
        {
            section.fields.push(("exempt", list(&networks)));
            self.translated.extend(places);
        }
        section.comments = notes.since(before);
        self.sections.push(section);
        Ok(name)
    }
}

/// A `limit_req_zone` or `limit_conn_zone` as it is written.
struct Definition<'t> {
    place: Place,
    is_of_requests: bool,
    key: &'t str,
    name: &'t str,
    size: &'t str,
    rate: Option<&'t str>,
}

impl<'t> Definition<'t> {
    fn read(directive: &'t Directive, notes: &mut Notes) -> Option<Self> {
        let (place, title) = (directive.place, &directive.name);
        let Some((key, args)) = directive.args.split_first() else {
            notes.add_of_limit(place, format!("{title} has no key; it is left out"));
            return None;
        };
        let (mut zone, mut rate) = (None, None);
        for arg in args {
            match arg.split_once('=') {
                Some(("zone", text)) => zone = Some(text),
                Some(("rate", text)) if title == "limit_req_zone" => rate = Some(text),
                _ if arg == "sync" => {
                    notes.add(place, "sync: drip's zones are not shared between hosts");
                }
                _ => notes.add(place, format!("{title}: {arg} is not known")),
            }
        }
        let Some((name, size)) = zone.map(|zone| zone.split_once(':').unwrap_or((zone, ""))) else {
            notes.add_of_limit(
                place,
                format!("{title} has no zone=NAME:SIZE; it is left out"),
            );
            return None;
        };
        Some(Self {
            place,
            is_of_requests: title == "limit_req_zone",
            key,
            name,
            size,
            rate,
        })
    }

    /// The zone's size in bytes. Without one, `max_keys` keeps its default.
    fn bytes(&self, notes: &mut Notes) -> Option<u64> {
        let (name, size) = (self.name, self.size);
        let bytes = values::size(size).filter(|bytes| *bytes > 0);
        if bytes.is_none() {
            notes.add(
                self.place,
                format!("zone {name}: \"{size}\" is not a size; max_keys keeps its default"),
            );
        }
        bytes
    }

    /// The rate in drip's form.
    fn rate(&self) -> Result<String, String> {
        // nginx's default.
        let text = self.rate.unwrap_or("1r/s");
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
}

/// The key in drip's form.
fn key(text: &str) -> Result<KeyTemplate, String> {
    let known = text
        .replace("$binary_remote_addr", "$remote_addr")
        .replace("${binary_remote_addr}", "${remote_addr}");
    let key = known.parse::<KeyTemplate>();
    let key = key.and_then(|key| match foreign(&key) {
        Some(variable) => Err(KeyError::Unknown(variable.to_string())),
        None => Ok(key),
    });
    key.map_err(|error| {
        format!(
            "its key is \"{text}\"; {error} (networks that a map or geo exempts can be in exempt)"
        )
    })
}

/// The first variable whose value here is not that of nginx: drip's own tokens and groups of paths,
/// and certificates of clients, for which an imported file does not ask.
pub(super) fn foreign(template: &KeyTemplate) -> Option<&Variable> {
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

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
    /// The names in the settings; `None` for a zone that is left out.
    pub(super) requests: HashMap<String, Option<String>>,
    pub(super) connections: HashMap<String, ConnectionZone>,
    pub(super) sections: Vec<Section>,
    /// The places of the geos and maps that are translated.
    pub(super) translated: Vec<Place>,
    names: Names,
}

/// What became of a `limit_conn_zone`.
pub(super) enum ConnectionZone {
    /// The zone of this name in the settings.
    Limits(String),
    /// It counts all requests, so its limits are those of origins.
    Together,
    /// The same for the requests of each server.
    ByServer,
    LeftOut,
}

impl Zones {
    pub(super) fn read(http: &[Directive], notes: &mut Notes) -> Self {
        let mut zones = Self::default();
        let variables = Variables::read(http);
        for directive in named(http, "limit_req_zone") {
            zones.requests(directive, &variables, notes);
        }
        for directive in named(http, "limit_conn_zone") {
            zones.connections(directive, &variables, notes);
        }
        zones
    }

    fn requests(&mut self, directive: &Directive, variables: &Variables, notes: &mut Notes) {
        let before = notes.count();
        let Some(definition) = Definition::read(directive, notes) else {
            return;
        };
        let name = definition.name;
        if self.requests.contains_key(name) {
            return definition.is_second(notes);
        }
        let became = match definition.rate() {
            Ok(rate) => self.add(&definition, &rate, REQUEST_STATES, variables, before, notes),
            Err(problem) => {
                definition.left_out(&problem, notes);
                None
            }
        };
        self.requests.insert(name.to_owned(), became);
    }

    fn connections(&mut self, directive: &Directive, variables: &Variables, notes: &mut Notes) {
        let before = notes.count();
        let Some(definition) = Definition::read(directive, notes) else {
            return;
        };
        let name = definition.name;
        if self.connections.contains_key(name) {
            return definition.is_second(notes);
        }
        let became = match definition.key {
            "$server_name" => ConnectionZone::ByServer,
            key if !key.is_empty() && !key.contains('$') => ConnectionZone::Together,
            _ => self
                .add(
                    &definition,
                    "none",
                    CONNECTION_STATES,
                    variables,
                    before,
                    notes,
                )
                .map_or(ConnectionZone::LeftOut, ConnectionZone::Limits),
        };
        self.connections.insert(name.to_owned(), became);
    }

    /// Adds the section of a zone. Returns its name in the settings; `None` if it is left out.
    ///
    /// `states`: how many states a megabyte of nginx's zone holds. `before`: the number of notes
    /// before those on this zone.
    fn add(
        &mut self,
        definition: &Definition,
        rate: &str,
        states: u64,
        variables: &Variables,
        before: usize,
        notes: &mut Notes,
    ) -> Option<String> {
        let exempting = variables.exempting(definition.key);
        let key = match key(exempting.as_ref().map_or(definition.key, |it| &it.key)) {
            Ok(key) => key,
            Err(problem) => {
                definition.left_out(&problem, notes);
                return None;
            }
        };
        let name = self.names.unique(definition.name);
        let mut section = Section::new(format!("[zones.{name}]"));
        section.text("key", &key.to_string());
        section.text("rate", rate);
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
        Some(name)
    }
}

/// A `limit_req_zone` or `limit_conn_zone` as it is written.
struct Definition<'t> {
    place: Place,
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
            key,
            name,
            size,
            rate,
        })
    }

    /// Notes why the zone is left out.
    fn left_out(&self, why: &str, notes: &mut Notes) {
        let name = self.name;
        notes.add_of_limit(
            self.place,
            format!("zone {name} is left out, and so are its limits: {why}"),
        );
    }

    /// Notes that a zone of this name is there already.
    fn is_second(&self, notes: &mut Notes) {
        let name = self.name;
        notes.add(
            self.place,
            format!("zone {name} is defined a second time; this one is left out"),
        );
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

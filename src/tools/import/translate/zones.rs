use std::collections::HashMap;

use super::definition::{self, Definition};
use super::exempt::Exempting;
use super::page::{Names, Section, list};
use super::plans::Tiered;
use super::scope::named;
use super::tiers::Tiers;
use super::variables::Variables;
use crate::config::KeyTemplate;
use crate::tools::import::notes::{Notes, Place};
use crate::tools::import::tree::Directive;

/// States in a megabyte, as nginx documents them: of 128 bytes for requests, of 64 for connections.
const REQUEST_STATES: u32 = 8000;
const CONNECTION_STATES: u32 = 16_000;

/// The zones of `limit_req_zone` and `limit_conn_zone`, by nginx's names.
#[derive(Default)]
pub(super) struct Zones {
    pub(super) requests: HashMap<String, RequestZone>,
    pub(super) connections: HashMap<String, ConnectionZone>,
    pub(super) sections: Vec<Section>,
    /// The places of the geos and maps that are translated.
    pub(super) translated: Vec<Place>,
    names: Names,
}

/// What became of a `limit_req_zone`.
pub(super) enum RequestZone {
    /// The zone of this name in the settings.
    Limits(String),
    /// A plan of another zone, whose limits are those of this zone, too.
    InPlan,
    LeftOut,
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
        let tiers = Tiers::read(http, &variables, notes);
        for directive in named(http, "limit_req_zone") {
            zones.requests(directive, &variables, &tiers, notes);
        }
        for directive in named(http, "limit_conn_zone") {
            zones.connections(directive, &variables, notes);
        }
        zones
    }

    fn requests(
        &mut self,
        directive: &Directive,
        variables: &Variables,
        tiers: &Tiers,
        notes: &mut Notes,
    ) {
        let before = notes.count();
        let Some(definition) = Definition::read(directive, notes) else {
            return;
        };
        let name = definition.name;
        if self.requests.contains_key(name) {
            return definition.is_second(notes);
        }
        if tiers.has_plan(name) {
            self.requests.insert(name.to_owned(), RequestZone::InPlan);
            return;
        }
        let tiered = tiers.of_base(name);
        let exempting = variables.exempting(definition.key);
        let exempting = exempting.filter(|_| tiered.is_none());
        let key = match (tiered, &exempting, tiers.unclear(name)) {
            (Some(tiered), _, _) => Ok(tiered.key.clone()),
            (None, Some(exempting), _) => definition::key(&exempting.key),
            (None, None, Some(why)) => Err(why.to_owned()),
            (None, None, None) => definition::key(definition.key),
        };
        let new = NewZone {
            key,
            rate: definition.rate(),
            states: REQUEST_STATES,
            exempting,
            tiered,
            definition,
        };
        let known = self.add(new, before, notes);
        let became = known.map_or(RequestZone::LeftOut, RequestZone::Limits);
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
            key => {
                let exempting = variables.exempting(key);
                let new = NewZone {
                    key: definition::key(exempting.as_ref().map_or(key, |known| &known.key)),
                    rate: Ok(("none".to_owned(), false)),
                    states: CONNECTION_STATES,
                    exempting,
                    tiered: None,
                    definition,
                };
                let known = self.add(new, before, notes);
                known.map_or(ConnectionZone::LeftOut, ConnectionZone::Limits)
            }
        };
        self.connections.insert(name.to_owned(), became);
    }

    /// Adds the sections of a zone. Returns its name in the settings; `None` if it is left out.
    fn add(&mut self, new: NewZone, before: usize, notes: &mut Notes) -> Option<String> {
        let definition = new.definition;
        for problem in [new.key.as_ref().err(), new.rate.as_ref().err()]
            .into_iter()
            .flatten()
        {
            definition.left_out(problem, notes);
        }
        let (Ok(key), Ok(rate)) = (new.key, new.rate) else {
            return None;
        };
        let name = self.names.unique(definition.name);
        let mut section = Section::new(format!("[zones.{name}]"));
        section.text("key", &key.to_string());
        section.text("rate", &definition.noted(rate, notes));
        let plans = new.tiered.map_or(&[][..], |tiered| &tiered.plans);
        // The keys of all tiers are in this zone.
        let of_plans = plans.iter().map(|plan| plan.definition.bytes(notes));
        let of_plans = of_plans.sum::<Option<u64>>();
        if let Some((bytes, of_plans)) = definition.bytes(notes).zip(of_plans) {
            let bytes = u128::from(bytes) + u128::from(of_plans);
            let keys = bytes * u128::from(new.states) / (1 << 20);
            let keys = keys.clamp(1, u128::from(u32::MAX));
            section.fields.push(("max_keys", keys.to_string()));
        }
        section.fields.push(("ipv6_prefix", "128".to_owned()));
        if let Some(exempting) = new.exempting {
            section.fields.push(("exempt", list(&exempting.networks)));
            self.translated.extend(exempting.places);
        }
        if let Some(tiered) = new.tiered {
            tiered.note_spelling(definition.place, notes);
            self.translated.extend(&tiered.places);
        }
        section.comments = notes.since(before);
        self.sections.push(section);
        let mut names = Names::default();
        for plan in plans {
            self.sections.extend(plan.section(&name, &mut names, notes));
        }
        Some(name)
    }
}

/// A zone to be added, or why it is left out.
struct NewZone<'z, 't> {
    definition: Definition<'t>,
    key: Result<KeyTemplate, String>,
    /// The rate, and whether it had to be made slower.
    rate: Result<(String, bool), String>,
    /// How many states a megabyte of nginx's zone holds.
    states: u32,
    exempting: Option<Exempting>,
    tiered: Option<&'z Tiered<'t>>,
}

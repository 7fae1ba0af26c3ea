//! Translates `limit_req` and `limit_conn` to limits of a route or `max_in_flight` of its origin.
//!
//! `zones` translates the zones that they name. A limit is lost if it is not translated. In a dry
//! run, limits only count the requests that they would reject.

use config::toml_string;

use super::scope::Scope;
use super::zones::{Zone, Zones};
use crate::import::notes::SourceLocation;
use crate::import::tree::Directive;
use crate::import::values;

/// Largest `max_in_flight` that an origin may have.
pub(in crate::import) const MAX_IN_FLIGHT: u32 = 1_000_000_000;

/// Default status of nginx for rejected requests.
pub(in crate::import) const STATUS: u32 = 503;

/// The limits of a route.
#[derive(Clone, Debug)]
pub(in crate::import) struct Limits {
    /// The limits, in TOML syntax.
    pub(in crate::import) list: Vec<String>,
    /// Status of rejected requests.
    pub(in crate::import) status: u32,
    pub(in crate::import) dry_run: bool,
}

impl Limits {
    /// Merges the limits of both directives into one list with one status and one `dry_run`.
    ///
    /// If both directives differ, those of `limit_req` decide, unless only `limit_conn` rejects
    /// requests. `at`: source location of the `location` block.
    pub(super) fn merge(requests: LimitSet, connections: LimitSet, at: SourceLocation) -> Self {
        let only_connections_reject =
            requests.dry_run && !connections.dry_run && !connections.list.is_empty();
        let (mut kept, other) = if requests.list.is_empty() || only_connections_reject {
            (connections, requests)
        } else {
            (requests, connections)
        };
        let has_same_dry_run = kept.dry_run == other.dry_run;
        let has_other_status = kept.status != other.status && !kept.dry_run;
        if !other.list.is_empty() && (has_other_status || !has_same_dry_run) {
            let (directive, left_out) = (kept.directive, other.directive);
            let what = if has_same_dry_run {
                format!("those of {directive} are used")
            } else {
                format!("those of {left_out}, which reject nothing, are left out")
            };
            at.note(format!("{left_out} has another status or dry_run here than {directive}, and a route has one of each for all limits; {what}"));
        }
        if has_same_dry_run {
            kept.list.extend(other.list);
        }
        Self {
            list: kept.list,
            status: kept.status,
            dry_run: kept.dry_run,
        }
    }
}

/// The limits of a location by one of nginx's directives, `limit_req` or `limit_conn`.
pub(super) struct LimitSet {
    directive: &'static str,
    /// The limits, in TOML syntax.
    pub(super) list: Vec<String>,
    status: u32,
    dry_run: bool,
    /// Names of the zones of these limits, in the settings.
    zones: Vec<String>,
}

impl LimitSet {
    /// Returns an empty set with the dry run of the scope.
    fn new(directive: &'static str, scope: &Scope) -> Self {
        let dry_run = scope.get(&format!("{directive}_dry_run"));
        Self {
            directive,
            list: Vec::new(),
            status: STATUS,
            dry_run: dry_run.is_some_and(|it| it.arg(0) == "on"),
            zones: Vec::new(),
        }
    }

    /// Reads the `limit_req` directives of a location.
    pub(super) fn requests(scope: &Scope, zones: &Zones) -> Self {
        let mut set = Self::new("limit_req", scope);
        for directive in scope.all("limit_req") {
            if let Err(why) = set.add_request(directive, zones) {
                directive.at.lose(why);
            }
        }
        set.read_status(scope);
        set
    }

    /// Adds the limit of a `limit_req`.
    ///
    /// # Errors
    ///
    /// Returns the reason why the limit is lost.
    fn add_request(&mut self, directive: &Directive, zones: &Zones) -> Result<(), String> {
        let at = directive.at;
        // A delay of `None` stands for `nodelay`.
        let (mut zone, mut burst, mut delay) = (None, 0, Some(0));
        for arg in &directive.args {
            let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
            match (name, values::whole(value)) {
                ("zone", _) => zone = Some(value),
                ("nodelay", _) => delay = None,
                ("burst", Some(number)) => burst = number,
                ("delay", Some(number)) => delay = Some(number),
                ("burst" | "delay", None) => at.note(format!(
                    "limit_req: {name} is a whole number, not \"{value}\"; it is left out"
                )),
                _ => at.note(format!("limit_req: {arg} is not known; is a ; missing?")),
            }
        }
        let zone = zone.ok_or("limit_req has no zone; this limit is left out")?;
        let zone = match zones.requests.get(zone) {
            Some(Zone::Limits(name)) => name,
            Some(_) => return Err(why_untranslated(zone)),
            None => {
                let why = format!("there is no limit_req_zone {zone}; this limit is left out");
                return Err(why);
            }
        };
        let delay = match delay {
            Some(0) => String::new(),
            Some(delay) if delay <= burst => format!(", delay = {delay}"),
            // A delay above the burst delays no request.
            _ => ", nodelay = true".to_owned(),
        };
        let name = toml_string(zone);
        let limit = format!("{{ zone = {name}, burst = {burst}{delay} }}");
        self.add(zone, limit, at);
        Ok(())
    }

    /// Adds a limit. Notes it if the zone has one already.
    fn add(&mut self, zone: &str, limit: String, at: SourceLocation) {
        if self.zones.iter().any(|known| known == zone) {
            let what = format!("zone {zone} limits here already; this limit is left out");
            return at.note(what);
        }
        self.zones.push(zone.to_owned());
        self.list.push(limit);
    }

    /// Reads the status of rejected requests.
    fn read_status(&mut self, scope: &Scope) {
        let name = format!("{}_status", self.directive);
        let Some(directive) = scope.get(&name) else {
            return;
        };
        let text = directive.arg(0);
        match values::whole(text).filter(|status| (400..=599).contains(status)) {
            Some(status) => self.status = status,
            None => directive.at.note(format!(
                "{name} is a number from 400 to 599, not \"{text}\"; {STATUS} is used"
            )),
        }
    }
}

/// The `limit_conn` directives of a location.
pub(super) struct Connections {
    /// Limits of zones that count each key.
    pub(super) of_keys: LimitSet,
    /// Smallest limit of zones that count all requests, or all requests of a server.
    pub(super) max_in_flight: Option<u32>,
    /// Whether a zone of `max_in_flight` counts the requests of each server.
    pub(super) is_by_server: bool,
}

impl Connections {
    /// Reads the `limit_conn` directives of a location.
    pub(super) fn read(scope: &Scope, zones: &Zones) -> Self {
        let mut connections = Self {
            of_keys: LimitSet::new("limit_conn", scope),
            max_in_flight: None,
            is_by_server: false,
        };
        for directive in scope.all("limit_conn") {
            if let Err(why) = connections.add(directive, zones) {
                directive.at.lose(why);
            }
        }
        if !connections.of_keys.list.is_empty() {
            connections.of_keys.read_status(scope);
        }
        connections
    }

    /// Adds the limit of a `limit_conn`.
    ///
    /// # Errors
    ///
    /// Returns the reason why the limit is lost.
    fn add(&mut self, directive: &Directive, zones: &Zones) -> Result<(), String> {
        let at = directive.at;
        let [name, number] = &directive.args[..] else {
            return Err("limit_conn has a zone and a number; it is left out".to_owned());
        };
        let zone = zones.connections.get(name);
        let zone =
            zone.ok_or_else(|| format!("there is no limit_conn_zone {name}; it is left out"))?;
        let range = 1..=MAX_IN_FLIGHT;
        let count = values::whole(number).filter(|number| range.contains(number));
        let count = count.ok_or_else(|| {
            format!("limit_conn: \"{number}\" is not a number above 0; it is left out")
        })?;
        match zone {
            Zone::Limits(known) => {
                let name = toml_string(known);
                let limit = format!("{{ zone = {name}, burst = 0, in_flight = {count} }}");
                self.of_keys.add(known, limit, at);
            }
            Zone::LeftOut => return Err(why_untranslated(name)),
            Zone::Together | Zone::ByServer if self.of_keys.dry_run => {
                at.note(format!("limit_conn {name}: limit_conn_dry_run is on, and max_in_flight has no dry run; it is left out"));
            }
            Zone::Together | Zone::ByServer => {
                at.note(format!("limit_conn {name} is translated to max_in_flight: requests above it wait up to queue_timeout and then get 503, where nginx rejects them at once"));
                self.is_by_server |= matches!(zone, Zone::ByServer);
                self.max_in_flight = Some(self.max_in_flight.unwrap_or(count).min(count));
            }
        }
        Ok(())
    }
}

/// Returns the reason why a limit of a zone that was left out is lost.
fn why_untranslated(zone: &str) -> String {
    format!("zone {zone} is not translated, so this limit is left out")
}

use super::requests::LimitReq;
use super::scope::Scope;
use super::zones::{RequestZone, Zones};
use crate::config::toml_string;
use crate::tools::import::notes::{Notes, Place};
use crate::tools::import::values;

/// nginx's default status of a rejection.
const STATUS: u32 = 503;

/// The limits of a route.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// In TOML syntax.
    pub(super) list: Vec<String>,
    pub(super) status: u32,
    pub(super) dry_run: bool,
}

/// The limits of a location by one of nginx's directives, `limit_req` or `limit_conn`.
pub(super) struct LimitSet {
    directive: &'static str,
    /// In TOML syntax.
    pub(super) list: Vec<String>,
    pub(super) status: u32,
    dry_run: bool,
    /// The zones in the settings.
    zones: Vec<String>,
}

impl LimitSet {
    pub(super) fn new(directive: &'static str, dry_run: bool) -> Self {
        Self {
            directive,
            list: Vec::new(),
            status: STATUS,
            dry_run,
            zones: Vec::new(),
        }
    }

    /// The `limit_req` directives of a location.
    pub(super) fn requests(scope: &Scope, zones: &Zones, notes: &mut Notes) -> Self {
        let mut set = Self::new("limit_req", dry_run(scope, "limit_req_dry_run"));
        for directive in scope.all("limit_req") {
            let Some(limit) = LimitReq::read(directive, notes) else {
                continue;
            };
            if let Some((zone, text)) = translate(&limit, zones, notes) {
                set.add(zone, text, directive.place, notes);
            }
        }
        set.status = status(scope, "limit_req_status", notes);
        set
    }

    pub(super) fn add(&mut self, zone: &str, limit: String, place: Place, notes: &mut Notes) {
        if self.zones.iter().any(|known| known == zone) {
            return notes.add(
                place,
                format!("zone {zone} limits here already; this limit is left out"),
            );
        }
        self.zones.push(zone.to_owned());
        self.list.push(limit);
    }

    /// Adds the limits of the other directive, or notes why they are left out.
    fn merge(&mut self, other: Self, place: Place, notes: &mut Notes) {
        let (ours, theirs) = (self.directive, other.directive);
        if self.dry_run != other.dry_run {
            return notes.add(place, format!("{theirs}_dry_run is on here and {ours}_dry_run is off, and a route has one dry_run for all limits; those of {theirs}, which reject nothing, are left out"));
        }
        if self.status != other.status && !self.dry_run {
            let status = self.status;
            notes.add(place, format!("{theirs}_status is {} here and {ours}_status is {status}, and a route has one reject_status for all limits; it is {status}", other.status));
        }
        self.list.extend(other.list);
    }
}

impl Limits {
    /// Puts the limits of both directives into one list, which has one status and one `dry_run`.
    ///
    /// `place` is that of the location.
    pub(super) fn together(
        requests: LimitSet,
        connections: LimitSet,
        place: Place,
        notes: &mut Notes,
    ) -> Self {
        let (mut kept, other) = if requests.dry_run && !connections.dry_run {
            (connections, requests)
        } else {
            (requests, connections)
        };
        if kept.list.is_empty() {
            kept = other;
        } else if !other.list.is_empty() {
            kept.merge(other, place, notes);
        }
        Self {
            list: kept.list,
            status: kept.status,
            dry_run: kept.dry_run,
        }
    }
}

/// The zone in the settings, and the limit in TOML syntax.
///
/// `None` if it is left out, or part of another zone's limit.
fn translate<'z>(
    limit: &LimitReq,
    zones: &'z Zones,
    notes: &mut Notes,
) -> Option<(&'z str, String)> {
    let (zone, burst) = (limit.zone, limit.burst);
    let known = match zones.requests.get(zone) {
        Some(RequestZone::Limits(known)) => known,
        Some(RequestZone::InPlan) => return None,
        Some(RequestZone::LeftOut) => {
            notes.lose(
                limit.place,
                format!("zone {zone} is not translated, so this limit is left out"),
            );
            return None;
        }
        None => {
            notes.lose(
                limit.place,
                format!("there is no limit_req_zone {zone}; this limit is left out"),
            );
            return None;
        }
    };
    let mut text = format!("{{ zone = {}, burst = {burst}", toml_string(known));
    match limit.delay() {
        Some(0) => {}
        Some(delay) => text.extend([", delay = ", &delay.to_string()]),
        None => text += ", nodelay = true",
    }
    text += " }";
    Some((known, text))
}

/// The status of rejections by a directive.
pub(super) fn status(scope: &Scope, name: &str, notes: &mut Notes) -> u32 {
    let Some(directive) = scope.get(name) else {
        return STATUS;
    };
    let text = directive.arg(0);
    let status = values::whole(text).filter(|status| (400..=599).contains(status));
    status.unwrap_or_else(|| {
        notes.add(
            directive.place,
            format!("{name} is a number from 400 to 599, not \"{text}\"; {STATUS} is used"),
        );
        STATUS
    })
}

/// Whether a directive's limits reject nothing.
pub(super) fn dry_run(scope: &Scope, name: &str) -> bool {
    let on = scope.get(name).and_then(|directive| directive.args.first());
    on.is_some_and(|on| on == "on")
}

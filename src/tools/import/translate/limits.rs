use super::scope::Scope;
use super::zones::Zones;
use crate::config::toml_string;
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;
use crate::tools::import::values;

/// The `limit_req` directives of a location, and its related directives.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// The limits in TOML syntax.
    pub(super) list: Vec<String>,
    pub(super) status: u32,
    pub(super) dry_run: bool,
}

impl Limits {
    pub(super) fn read(scope: &Scope, zones: &Zones, notes: &mut Notes) -> Self {
        let mut taken = Vec::new();
        let mut list = Vec::new();
        for directive in scope.all("limit_req") {
            if let Some((zone, limit)) = limit(directive, zones, notes) {
                if taken.contains(&zone) {
                    notes.add(
                        directive.place,
                        format!("zone {zone} limits here already; this limit is left out"),
                    );
                } else {
                    taken.push(zone);
                    list.push(limit);
                }
            }
        }
        let status = scope.get("limit_req_status").and_then(|directive| {
            let text = directive.args.first().map_or("", String::as_str);
            let status = values::whole(text).filter(|status| (400..=599).contains(status));
            if status.is_none() {
                notes.add(
                    directive.place,
                    format!(
                        "limit_req_status is a number from 400 to 599, not \"{text}\"; 503 is used"
                    ),
                );
            }
            status
        });
        let dry_run = scope.get("limit_req_dry_run");
        Self {
            list,
            status: status.unwrap_or(503),
            dry_run: dry_run
                .is_some_and(|directive| directive.args.first().is_some_and(|arg| arg == "on")),
        }
    }
}

/// The zone, and the limit in TOML syntax.
fn limit<'z>(
    directive: &Directive,
    zones: &'z Zones,
    notes: &mut Notes,
) -> Option<(&'z str, String)> {
    let place = directive.place;
    let (mut zone, mut burst, mut delay) = (None, 0, Some(0));
    for arg in &directive.args {
        let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
        match name {
            "zone" => zone = Some(value),
            "nodelay" => delay = None,
            "burst" | "delay" => match values::whole(value) {
                Some(number) if name == "burst" => burst = number,
                Some(number) => delay = Some(number),
                None => notes.add(
                    place,
                    format!("limit_req: {name} is a whole number, not \"{value}\"; it is left out"),
                ),
            },
            _ => notes.add(
                place,
                format!("limit_req: {arg} is not known; is a ; missing?"),
            ),
        }
    }
    let Some(zone) = zone else {
        notes.add(place, "limit_req has no zone; this limit is left out");
        return None;
    };
    let known = match zones.requests.get(zone) {
        Some(Some(known)) => known,
        Some(None) => {
            notes.add(
                place,
                format!("zone {zone} is not translated, so this limit is left out"),
            );
            return None;
        }
        None => {
            notes.add(
                place,
                format!("there is no limit_req_zone {zone}; this limit is left out"),
            );
            return None;
        }
    };
    let mut limit = format!("{{ zone = {}, burst = {burst}", toml_string(known));
    match delay {
        Some(0) => {}
        Some(delay) if delay <= burst => limit.extend([", delay = ", &delay.to_string()]),
        // No request would ever wait.
        _ => limit += ", nodelay = true",
    }
    limit += " }";
    Some((known, limit))
}

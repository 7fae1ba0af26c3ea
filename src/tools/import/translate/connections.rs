use super::limits::{self, LimitSet};
use super::scope::Scope;
use super::zones::{ConnectionZone, Zones};
use crate::config::toml_string;
use crate::tools::import::notes::Notes;
use crate::tools::import::values;

/// Largest `max_in_flight` of an origin.
pub(super) const MAX_IN_FLIGHT: u32 = 1_000_000_000;

/// The `limit_conn` directives of a location.
pub(super) struct Connections {
    /// Those of zones that count each key.
    pub(super) of_keys: LimitSet,
    /// The smallest of those that count all requests, or all of a server.
    pub(super) most: Option<u32>,
    pub(super) is_by_server: bool,
}

impl Connections {
    pub(super) fn read(scope: &Scope, zones: &Zones, notes: &mut Notes) -> Self {
        let directives = scope.all("limit_conn");
        let dry_run = limits::dry_run(scope, "limit_conn_dry_run");
        let (mut most, mut is_by_server) = (None::<u32>, false);
        let mut of_keys = LimitSet::new("limit_conn", dry_run);
        for directive in directives {
            let place = directive.place;
            let [zone, number] = &directive.args[..] else {
                notes.lose(place, "limit_conn has a zone and a number; it is left out");
                continue;
            };
            let Some(known) = zones.connections.get(zone) else {
                notes.lose(
                    place,
                    format!("there is no limit_conn_zone {zone}; it is left out"),
                );
                continue;
            };
            let range = 1..=MAX_IN_FLIGHT;
            let Some(number) = values::whole(number).filter(|number| range.contains(number)) else {
                notes.lose(
                    place,
                    format!("limit_conn: \"{number}\" is not a number above 0; it is left out"),
                );
                continue;
            };
            match known {
                ConnectionZone::Limits(known) => {
                    let name = toml_string(known);
                    let limit = format!("{{ zone = {name}, burst = 0, in_flight = {number} }}");
                    of_keys.add(known, limit, place, notes);
                }
                ConnectionZone::LeftOut => notes.lose(
                    place,
                    format!("zone {zone} is not translated, so this limit is left out"),
                ),
                ConnectionZone::Together | ConnectionZone::ByServer if dry_run => notes.add(
                    place,
                    format!("limit_conn {zone}: limit_conn_dry_run is on, and max_in_flight has no dry run; it is left out"),
                ),
                counted => {
                    notes.add(place, format!("limit_conn {zone} became max_in_flight: requests above it wait up to queue_timeout and then get 503, where nginx rejects them at once"));
                    is_by_server |= matches!(counted, ConnectionZone::ByServer);
                    most = Some(most.map_or(number, |most| most.min(number)));
                }
            }
        }
        if !of_keys.list.is_empty() {
            of_keys.status = limits::status(scope, "limit_conn_status", notes);
        }
        Self {
            of_keys,
            most,
            is_by_server,
        }
    }

    /// Whether nothing is limited here.
    pub(super) fn is_empty(&self) -> bool {
        self.of_keys.list.is_empty() && self.most.is_none()
    }
}

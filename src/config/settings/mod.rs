//! Checked settings of a gateway, as the rest of the program uses them.
//!
//! [`Settings`] has one value per table of the file. The structs of these tables are in `tables`.
//! The modules here have types of single values.

mod byte_regex;
mod listen;
mod networks;
mod opening_time;
mod page;
mod plans;
mod request_inputs;
mod route_index;
mod route_match;
mod status;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;

use limit::Delay;

pub use byte_regex::ByteRegex;
pub use listen::{Listen, ListenAddress, ListenService};
pub use networks::{ClientNetworks, Networks, Peers, embedded_ipv4, has_client};
pub use opening_time::OpeningTime;
pub use page::{Media, Page, PageChoice, PageContent, PagePart, PageValue, Pages};
pub use plans::Plans;
pub(crate) use request_inputs::InputNames;
pub use request_inputs::RequestInputs;
pub use route_index::RouteIndex;
pub use route_match::{HostPattern, Matcher, MatcherInput, MatcherValue, PathPattern};
pub use status::Statuses;

use super::{Jwt, Log, NamedFile, Origin, Problem, Redis, Route, Server, Zone};

/// Checked settings from a gateway's file.
///
/// Indices are valid, names are unique, and numbers are in range.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `[server]`: addresses, workers, and timeouts and limits for clients.
    pub server: Server,
    /// `[origins.NAME]`: backends. In the order of the file; never empty.
    pub origins: Vec<Origin>,
    /// `[zones.NAME]`: sets of buckets. In the order of the file; may be empty.
    pub zones: Vec<Zone>,
    /// `[jwt.NAME]`: verification of tokens. In the order of the file; may be empty.
    pub jwt: Arc<[Jwt]>,
    /// Redis that keeps shared zones.
    pub redis: Redis,
    /// `[[routes]]`: which requests go to which origin. In the order of the file; never empty.
    pub routes: Vec<Route>,
    /// Levels, formats and destinations of the logs.
    pub log: Log,
    /// Other files that were read with the configuration file.
    pub named: Vec<NamedFile>,
    /// Warnings about legal values that are probably mistakes, sorted by location.
    pub warnings: Vec<Problem>,
    /// Values with variables of the environment, as the file writes them.
    ///
    /// The key is the list of names that lead to the value, such as `redis` and `url`.
    pub from_environment: BTreeMap<Vec<String>, String>,
}

impl Settings {
    /// Returns whether requests to the origin with this name may cost more than 1.
    ///
    /// The rate of the origin then counts units of cost.
    pub fn has_costs(&self, origin: &str) -> bool {
        let mut origins = self.origins.iter();
        let Some(index) = origins.position(|known| known.name == origin) else {
            return false;
        };
        let mut routes = self.routes.iter();
        routes.any(|route| route.origin() == Some(index) && !route.cost.is_one())
    }

    /// Returns the least `burst` per zone, among the limits in which requests wait.
    ///
    /// `None` for a zone whose requests never wait.
    pub fn least_bursts(&self) -> Vec<Option<u32>> {
        let mut least = vec![None; self.zones.len()];
        for limit in self.routes.iter().flat_map(|route| &route.limits) {
            let burst = limit.limit.burst;
            if matches!(limit.limit.delay, Delay::Above(delay) if burst > delay)
                && let Some(least) = least.get_mut(limit.zone)
            {
                *least = Some(least.map_or(burst, |least: u32| least.min(burst)));
            }
        }
        least
    }

    /// Returns the settings without the store's password, room secrets and masked keys.
    ///
    /// Masked names replace the keys of plans where a zone has `mask_keys`. This is for readers
    /// that may see the settings but not the file.
    pub fn without_secrets(&self) -> Self {
        self.without_secrets_and_keys(|zone| zone.mask_keys)
    }

    /// Returns the settings as [`without_secrets`](Self::without_secrets) does.
    ///
    /// `is_masked` decides which zones mask their keys.
    pub(super) fn without_secrets_and_keys(&self, is_masked: impl Fn(&Zone) -> bool) -> Self {
        let mut settings = self.without_room_secrets();
        settings.redis.url = settings.redis.url.without_password();
        for zone in settings.zones.iter_mut().filter(|zone| is_masked(zone)) {
            zone.plans = zone.plans.masked(&zone.name);
            // A key that consists of a text and a variable would show the text.
            settings.from_environment.retain(|path, _| {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                !matches!(path[..], ["zones", name, "plans", _, "keys", ..] if name == zone.name)
            });
        }
        settings
    }

    /// Returns the settings without the secrets of waiting rooms, which no output may have.
    pub fn without_room_secrets(&self) -> Self {
        let mut settings = self.clone();
        let rooms = settings.origins.iter_mut();
        for room in rooms.filter_map(|origin| origin.room.as_mut()) {
            room.secret = room.shown_secrets();
        }
        settings
    }

    /// Returns pairs of the earlier and the current `in_flight` in the limits of a zone.
    ///
    /// Only routes where it has changed are included. A removed limit has the highest number.
    pub fn in_flight_changes(&self, earlier: &Self, zone: &str) -> Vec<(NonZeroU32, NonZeroU32)> {
        let in_flight = |settings: &Self, route: &Route| {
            let mut limits = route.limits.iter();
            let limit = limits.find(|limit| settings.zones[limit.zone].name == zone)?;
            limit.limit.in_flight
        };
        let routes = self.routes.iter();
        let routes: HashMap<_, &Route> = routes.map(|route| (route.selector(), route)).collect();
        let changes = earlier.routes.iter().filter_map(|old_route| {
            let old_limit = in_flight(earlier, old_route)?;
            let route = routes.get(&old_route.selector());
            let limit = route.and_then(|route| in_flight(self, route));
            Some((old_limit, limit.unwrap_or(NonZeroU32::MAX)))
        });
        changes.filter(|(old, new)| old != new).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::parse;

    #[test]
    fn only_limits_in_which_requests_wait_count_for_the_least_burst_of_a_zone() {
        let zone = |name| format!("[zones.{name}]\nkey = \"$remote_addr\"\nrate = \"1r/s\"\n");
        let mut text = "[origins.app]\nservers = [\"http://127.0.0.1:1\"]\n".to_owned();
        text.extend(["queued", "at_once", "unused"].map(zone));
        let limits = [
            "zone = \"queued\", burst = 9",
            "zone = \"queued\", burst = 5, delay = 4",
            "zone = \"queued\", burst = 3, nodelay = true",
            "zone = \"queued\", burst = 0",
            "zone = \"at_once\", burst = 7, nodelay = true",
        ];
        text.extend(limits.iter().enumerate().map(|(index, limit)| {
            let path = format!("[[routes]]\npath = \"/{index}\"\norigin = \"app\"\n");
            format!("{path}limits = [{{ {limit} }}]\n")
        }));
        let settings = parse(&text, Path::new("gateway.toml"), false).unwrap();
        assert_eq!(settings.least_bursts(), [Some(5), None, None]);
    }
}

//! Translates `limit-rps`, `limit-rpm` and `limit-connections` as ingress-nginx's template does.
//!
//! Each annotation becomes a zone of the Ingress, keyed by the client's address. The burst is the
//! limit times `limit-burst-multiplier` and passes without delay. All paths of an Ingress share its
//! zones.

use config::toml_string;
use limit::Rate;

use super::annotations::Annotations;
use super::networks;
use crate::import::translate::limits::MAX_IN_FLIGHT;
use crate::import::translate::page::{Names, Section};
use crate::import::values;

/// Default of `limit-burst-multiplier`.
const BURST_MULTIPLIER: u32 = 5;

/// Number of keys in a zone of ingress-nginx, which has 5 MB, for requests and for connections.
///
/// nginx keeps 8,000 states of 128 bytes for requests in a megabyte, and 16,000 of 64 bytes for
/// connections.
const REQUEST_KEYS: u32 = 5 * 8000;
const CONNECTION_KEYS: u32 = 5 * 16_000;

/// Highest rate that a zone may have.
const MAX_RATE: &str = "1000000r/s";

/// The zones of all Ingresses.
#[derive(Default)]
pub(super) struct Zones {
    /// The tables of the zones.
    pub(super) sections: Vec<Section>,
    /// The names of the zones.
    names: Names,
}

impl Zones {
    /// Adds the zones of an Ingress. Returns its limits in TOML, and whether at least one was lost.
    ///
    /// `like`: start of the names of the zones.
    pub(super) fn add(&mut self, annotations: &Annotations, like: &str) -> (Vec<String>, bool) {
        let (mut limits, mut has_lost) = (Vec::new(), false);
        let multiplier = annotations.whole("limit-burst-multiplier");
        let multiplier = multiplier.unwrap_or(BURST_MULTIPLIER);
        let allowlist = annotations.any(&["limit-allowlist", "limit-whitelist"]);
        let exempt = allowlist.and_then(|it| networks::read(annotations, it));
        let exempt = exempt.unwrap_or_default();
        let exempt: Vec<String> = exempt.iter().map(ToString::to_string).collect();
        for (name, suffix, unit) in [
            // Connections have no rate, and so no unit.
            ("limit-connections", "connections", None),
            ("limit-rps", "rps", Some("s")),
            ("limit-rpm", "rpm", Some("m")),
        ] {
            let Some(annotation) = annotations.get(name) else {
                continue;
            };
            let text = &annotation.value;
            let Some(limit) = values::whole(text) else {
                let what = format!("\"{text}\" is not a whole number; the limit is left out");
                annotations.lose(annotation, what);
                has_lost = true;
                continue;
            };
            // 0 means no limit.
            if limit == 0 {
                continue;
            }
            let zone = self.names.unique(&format!("{like}-{suffix}"));
            let (mut rate, keys) = match unit {
                Some(unit) => (format!("{limit}r/{unit}"), REQUEST_KEYS),
                None => ("none".to_owned(), CONNECTION_KEYS),
            };
            if unit.is_some() && rate.parse::<Rate>().is_err() {
                let what = format!("the fastest rate of drip is {MAX_RATE}");
                annotations.note(annotation, what);
                MAX_RATE.clone_into(&mut rate);
            }
            let key_and_rate = ("$remote_addr", &*rate);
            let section = Section::zone(&zone, key_and_rate, Some(keys.to_string()), &exempt);
            self.sections.push(section);
            let zone = toml_string(&zone);
            limits.push(if unit.is_some() {
                let burst = limit.saturating_mul(multiplier);
                format!("{{ zone = {zone}, burst = {burst}, nodelay = true }}")
            } else {
                let in_flight = limit.min(MAX_IN_FLIGHT);
                format!("{{ zone = {zone}, burst = 0, in_flight = {in_flight} }}")
            });
        }
        (limits, has_lost)
    }
}

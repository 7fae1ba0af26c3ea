//! Effect of an outage of the store, Redis, on zones, origins and rooms, as a text for messages.

use config::{Origin, Settings, StoreKind};
use limit::WithoutPool;

/// Returns the effect of an outage of the store, as a part of a message; `None`: nothing uses it.
pub fn during_outage(settings: &Settings) -> Option<String> {
    let is_shared = |store| store != StoreKind::Memory;
    let origins = || settings.origins.iter();
    let any_closed = origins().any(is_closed);
    // Origins whose requests go on without the store.
    let going_on = || origins().filter(|origin| !is_closed(origin));
    let shares_rate = going_on().any(|origin| origin.shared_rate().is_some());
    let shares_permits = going_on().any(|origin| origin.shared_permits().is_some());
    let shared_part = match (shares_rate, shares_permits) {
        (true, true) => Some("rate and max_in_flight"),
        (true, false) => Some("rate"),
        (false, true) => Some("max_in_flight"),
        (false, false) => None,
    };
    let mut rooms = origins().filter_map(|origin| origin.room.as_ref());
    let mut effects = Vec::new();
    if settings.zones.iter().any(|zone| is_shared(zone.store)) {
        effects.push("zones follow their on_store_failure".to_owned());
    }
    if any_closed {
        effects.push("origins with on_store_failure = \"closed\" start no requests".to_owned());
    }
    if let Some(part) = shared_part {
        let other = if any_closed { "other " } else { "" };
        effects.push(format!(
            "{other}origins go on with this gateway's part of their {part}"
        ));
    }
    if rooms.any(|room| is_shared(room.store)) {
        effects.push("waiting rooms call no visitors".to_owned());
    }
    match &effects[..] {
        [] => None,
        [one] => Some(one.clone()),
        [first @ .., last] => Some(format!("{}, and {last}", first.join(", "))),
    }
}

/// Returns whether an origin starts no requests without the store once its lease has expired.
///
/// The lease is on a part of the origin's *pool*: the permits that its gateways share. Without
/// `max_in_flight` there is no pool, and the origin's rate goes on without the store.
fn is_closed(origin: &Origin) -> bool {
    origin.shared_permits().is_some() && origin.on_store_failure == WithoutPool::Closed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_settings;

    #[test]
    fn the_message_about_an_outage_names_the_effect_on_each_shared_feature() {
        let local = "rate = \"9r/s\"";
        let rate = "store = \"redis\"\nrate = \"9r/s\"";
        let permits = "store = \"redis\"\nmax_in_flight = 9";
        let closed = &format!("{permits}\non_store_failure = \"closed\"");
        let closed_rate = &format!("{rate}\non_store_failure = \"closed\"");
        let shared = "store = \"redis\"";
        let zones = "zones follow their on_store_failure";
        let starts_none = "origins with on_store_failure = \"closed\" start no requests";
        let go_on = |what| format!("origins go on with this gateway's part of their {what}");
        let all_effects = format!("{zones}, {starts_none}, and other {}", go_on("rate"));
        // Fields of the origins and of the zone, and the message.
        for (origins, zone, expected) in [
            (&[local][..], "", None),
            (&[local], shared, Some(zones.to_owned())),
            (&[rate], "", Some(go_on("rate"))),
            (&[permits], "", Some(go_on("max_in_flight"))),
            (&[permits, rate], "", Some(go_on("rate and max_in_flight"))),
            (&[closed], "", Some(starts_none.to_owned())),
            // It has no permits with a lease that could expire.
            (&[closed_rate], "", Some(go_on("rate"))),
            (
                &[closed],
                shared,
                Some(format!("{zones}, and {starts_none}")),
            ),
            (&[closed, rate], shared, Some(all_effects)),
        ] {
            let mut tables = format!(
                "[redis]\nurl = \"redis://127.0.0.1\"\n[zones.z]\nkey = \"all\"\nrate = \"1r/s\"\n{zone}\n"
            );
            for (nth, fields) in origins[1..].iter().enumerate() {
                tables +=
                    &format!("[origins.o{nth}]\nservers = [\"http://127.0.0.1:9\"]\n{fields}\n");
            }
            let route = "limits = [{ zone = \"z\" }]";
            let settings = test_settings::with_fields(&tables, origins[0], route);
            assert_eq!(during_outage(&settings), expected, "{origins:?} {zone}");
        }
    }
}

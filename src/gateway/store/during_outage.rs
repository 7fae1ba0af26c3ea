//! Effect of an outage of the store, as a text.

use config::{Origin, Settings, StoreKind};
use limit::WithoutPool;

/// Returns the effect of an outage of the store, as a part of a message; `None`: nothing uses it.
pub fn during_outage(settings: &Settings) -> Option<String> {
    let is_shared = |store| store != StoreKind::Memory;
    let origins = || settings.origins.iter();
    let any_closed = origins().any(is_closed);
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
/// Without `max_in_flight` there is no lease, and its rate goes on without the store.
fn is_closed(origin: &Origin) -> bool {
    origin.shared_permits().is_some() && origin.on_store_failure == WithoutPool::Closed
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use config;

    const ZONES: &str = "zones follow their on_store_failure";
    const CLOSED: &str = "origins with on_store_failure = \"closed\" start no requests";

    /// Returns the message about an outage, for origins and a zone with these lines.
    fn message(origins: &[&str], zone: &str) -> Option<String> {
        let origins = origins.iter().enumerate().map(|(nth, lines)| {
            format!("[origins.o{nth}]\nservers = [\"http://127.0.0.1:9\"]\n{lines}\n")
        });
        let text = format!(
            "{}[zones.z]\nkey = \"all\"\nrate = \"1r/s\"\n{zone}\n\
             [[routes]]\npath = \"/\"\norigin = \"o0\"\nlimits = [{{ zone = \"z\" }}]\n\
             [redis]\nurl = \"redis://127.0.0.1\"\n",
            origins.collect::<String>()
        );
        let settings = config::parse(&text, Path::new("gateway.toml"), true).unwrap();
        during_outage(&settings)
    }

    #[test]
    fn an_outage_message_describes_the_effects_on_shared_features() {
        let rate = "store = \"redis\"\nrate = \"9r/s\"";
        let permits = "store = \"redis\"\nmax_in_flight = 9";
        let closed = &format!("{permits}\non_store_failure = \"closed\"");
        let closed_rate = &format!("{rate}\non_store_failure = \"closed\"");
        let go_on = |what| format!("origins go on with this gateway's part of their {what}");
        let shared = "store = \"redis\"";
        assert_eq!(message(&["rate = \"9r/s\""], ""), None);
        for (origins, zone, expected) in [
            (&["rate = \"9r/s\""][..], shared, ZONES.to_owned()),
            (&[rate], "", go_on("rate")),
            (&[permits], "", go_on("max_in_flight")),
            (&[permits, rate], "", go_on("rate and max_in_flight")),
            (&[closed], "", CLOSED.to_owned()),
            // It has no permits with a lease that could expire.
            (&[closed_rate], "", go_on("rate")),
            (&[closed], shared, format!("{ZONES}, and {CLOSED}")),
            (
                &[closed, rate],
                shared,
                format!("{ZONES}, {CLOSED}, and other {}", go_on("rate")),
            ),
        ] {
            assert_eq!(
                message(origins, zone).as_deref(),
                Some(&*expected),
                "{origins:?}"
            );
        }
    }
}

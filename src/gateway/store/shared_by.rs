//! Features that gateways share through a store.

use config::{Origin, Settings, StoreKind};
use limit::WithoutPool;

/// Features that gateways share through a store, and that an outage affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedBy([bool; Shared::ALL.len()]);

/// Feature that gateways share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shared {
    Zones,
    /// Permits of origins that start no requests without the store.
    ClosedPermits,
    /// Rates of other origins.
    Rates,
    /// Permits of other origins.
    Permits,
    /// Waiting rooms of origins.
    Rooms,
}

impl Shared {
    const ALL: [Self; 5] = [
        Self::Zones,
        Self::ClosedPermits,
        Self::Rates,
        Self::Permits,
        Self::Rooms,
    ];

    /// Returns whether gateways share this feature under these settings.
    fn is_in(self, settings: &Settings) -> bool {
        let is_shared = |store| store != StoreKind::Memory;
        let mut origins = settings.origins.iter();
        match self {
            Self::Zones => settings.zones.iter().any(|zone| is_shared(zone.store)),
            Self::ClosedPermits => origins.any(is_closed),
            Self::Rates => origins.any(|it| it.shared_rate().is_some() && !is_closed(it)),
            Self::Permits => origins.any(|it| it.shared_permits().is_some() && !is_closed(it)),
            Self::Rooms => origins
                .filter_map(|it| it.room.as_ref())
                .any(|room| is_shared(room.store)),
        }
    }
}

/// Returns whether an origin starts no requests without the store once its lease has expired.
///
/// Without `max_in_flight` there is no lease, and its rate goes on without the store.
fn is_closed(origin: &Origin) -> bool {
    origin.shared_permits().is_some() && origin.on_store_failure == WithoutPool::Closed
}

impl SharedBy {
    /// Returns what is shared under these settings; `None` if nothing is.
    pub fn of(settings: &Settings) -> Option<Self> {
        let shared_by = Self(Shared::ALL.map(|it| it.is_in(settings)));
        (shared_by != Self::default()).then_some(shared_by)
    }

    /// Returns the effect of an outage of the store, as a part of a message.
    pub fn during_outage(self) -> String {
        let has = |it: Shared| self.0[it as usize];
        let part = match (has(Shared::Rates), has(Shared::Permits)) {
            (true, true) => Some("rate and max_in_flight"),
            (true, false) => Some("rate"),
            (false, true) => Some("max_in_flight"),
            (false, false) => None,
        };
        let others = if has(Shared::ClosedPermits) {
            "other origins"
        } else {
            "origins"
        };
        let part =
            part.map(|part| format!("{others} go on with this gateway's part of their {part}"));
        let fixed = |it, text: &str| has(it).then(|| text.to_owned());
        let parts = [
            fixed(Shared::Zones, "zones follow their on_store_failure"),
            fixed(
                Shared::ClosedPermits,
                "origins with on_store_failure = \"closed\" start nothing",
            ),
            part,
            fixed(Shared::Rooms, "waiting rooms call nobody"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match &parts[..] {
            [most @ .., last] if !most.is_empty() => format!("{}, and {last}", most.join(", ")),
            parts => parts.concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use config;

    const ZONES: &str = "zones follow their on_store_failure";
    const CLOSED: &str = "origins with on_store_failure = \"closed\" start nothing";

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
        SharedBy::of(&settings).map(SharedBy::during_outage)
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

use crate::config::{Settings, StoreKind};

/// Who shares through a store: whom an outage concerns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedBy {
    /// Zones alone.
    #[default]
    Zones,
    /// The gates of origins alone.
    Origins,
    /// Zones, and gates of origins.
    Both,
}

impl SharedBy {
    /// Who shares under these settings; `None` if nobody does.
    #[must_use]
    pub fn of(settings: &Settings) -> Option<Self> {
        let is_shared = |store| store != StoreKind::Memory;
        let has_zone = settings.zones.iter().any(|zone| is_shared(zone.store));
        let has_origin = settings.origins.iter().any(|it| is_shared(it.store));
        match (has_zone, has_origin) {
            (false, false) => None,
            (true, false) => Some(Self::Zones),
            (false, true) => Some(Self::Origins),
            (true, true) => Some(Self::Both),
        }
    }

    /// What happens while the store is out, as a part of a message.
    #[must_use]
    pub fn during_outage(self) -> &'static str {
        match self {
            Self::Zones => "zones follow their on_store_failure",
            Self::Origins => "origins go on with this gateway's part of their rate",
            Self::Both => {
                "zones follow their on_store_failure, and origins go on with this gateway's part of their rate"
            }
        }
    }
}

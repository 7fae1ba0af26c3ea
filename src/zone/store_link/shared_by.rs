use crate::config::{Settings, StoreKind};

/// Who shares through a store: whom an outage concerns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedBy {
    zones: bool,
    /// The gates of origins.
    origins: bool,
    /// The waiting rooms of origins.
    rooms: bool,
}

impl SharedBy {
    /// Who shares under these settings; `None` if nobody does.
    #[must_use]
    pub fn of(settings: &Settings) -> Option<Self> {
        let is_shared = |store| store != StoreKind::Memory;
        let (mut zones, mut origins) = (settings.zones.iter(), settings.origins.iter());
        let mut rooms = settings.origins.iter().filter_map(|it| it.room.as_ref());
        let shared_by = Self {
            zones: zones.any(|zone| is_shared(zone.store)),
            origins: origins.any(|it| is_shared(it.store)),
            rooms: rooms.any(|room| is_shared(room.store)),
        };
        (shared_by != Self::default()).then_some(shared_by)
    }

    /// What happens while the store is out, as a part of a message.
    #[must_use]
    pub fn during_outage(self) -> String {
        let parts = [
            (self.zones, "zones follow their on_store_failure"),
            (
                self.origins,
                "origins go on with this gateway's part of their rate",
            ),
            (self.rooms, "waiting rooms call nobody"),
        ];
        let parts = parts.iter().filter(|(is_shared, _)| *is_shared);
        let parts: Vec<&str> = parts.map(|(_, text)| *text).collect();
        match &parts[..] {
            [most @ .., last] if !most.is_empty() => format!("{}, and {last}", most.join(", ")),
            parts => parts.concat(),
        }
    }
}

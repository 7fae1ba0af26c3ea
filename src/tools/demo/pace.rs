//! The rate and burst that the scene `smooth` shows.

use config::Settings;
use limit::Rate;

/// Rate and burst of the first limit of the first route, as in force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    pub(super) rate: Rate,
    pub(super) burst: u32,
}

impl Pace {
    /// Reads the pace from the settings; `None` without a limit.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        let limit = settings.routes.first()?.limits.first()?;
        Some(Self {
            rate: settings.zones[limit.zone].rate,
            burst: limit.limit.burst,
        })
    }
}

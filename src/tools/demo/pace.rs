use config::Settings;
use limit::Rate;

/// What the demo shows of the settings in force: those of the first limit of the first route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    pub(super) rate: Rate,
    pub(super) burst: u32,
}

impl Pace {
    /// `None` without a limit.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        let limit = settings.routes.first()?.limits.first()?;
        Some(Self {
            rate: settings.zones[limit.zone].rate,
            burst: limit.limit.burst,
        })
    }
}

use std::time::Duration;

use crate::limit::Rate;
use crate::simulation::random::Random;

/// Something that fails or changes.
#[derive(Clone, Copy, Debug)]
pub(in crate::simulation) enum Fault {
    /// A gateway's file is saved with another rate for a zone.
    Retune {
        gateway: usize,
        zone: usize,
        rate: Rate,
    },
}

impl Fault {
    /// Plans what fails while requests come.
    pub(super) fn plan(
        _random: &mut Random,
        _gateways: usize,
        _zones: usize,
        _lasts: Duration,
    ) -> Vec<(Duration, Self)> {
        Vec::new()
    }

    /// Whether all requests are decided by one store that forgets nothing.
    pub(super) fn is_harmless(&self) -> bool {
        matches!(self, Self::Retune { .. })
    }
}

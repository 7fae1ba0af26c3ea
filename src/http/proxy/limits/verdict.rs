//! What the limits decided about a request.

use std::time::Duration;

use smallvec::SmallVec;

use crate::actors::{Key, NEW_KEYS, Outlook, Rejection};
use crate::config::{Route, RouteLimit};
use crate::http::gateway::Gateway;
use crate::limit::Excess;
use crate::observe::events::Limiting;
use crate::observe::metrics::{LimitStatus, Rejected};

/// The verdict of one limit about a request.
#[derive(Debug)]
pub(in super::super) struct LimitVerdict {
    /// The limit as it applied to this request.
    pub(in super::super) wanted: RouteLimit,
    /// The request's own key.
    pub(in super::super) key: Key,
    /// Whether it was counted in the bucket that unknown keys share.
    pub(in super::super) is_flood: bool,
    pub(in super::super) status: LimitStatus,
    pub(in super::super) excess: Excess,
    pub(in super::super) outlook: Outlook,
}

impl LimitVerdict {
    /// What the log says of it.
    pub(super) fn limiting<'r>(&'r self, gateway: &'r Gateway) -> Limiting<'r> {
        Limiting {
            zone: &gateway.zone(self.wanted.zone).settings().name,
            key: if self.is_flood { NEW_KEYS } else { &self.key },
            status: self.status.label(),
            excess: self.excess,
        }
    }

    /// Tells the log that the limit rejected the request.
    pub(super) fn tell_rejection(&self, gateway: &Gateway, route: &Route, rejection: &Rejection) {
        let (limiting, reason) = (self.limiting(gateway), rejection.reason.label());
        let events = gateway.events(self.wanted.zone);
        events.rejected(&limiting, reason, || route.name());
    }
}

pub(super) type Verdicts = SmallVec<[LimitVerdict; 1]>;

/// The verdicts of all limits together: the decisive one first, then the others.
#[derive(Debug, Default)]
pub(in super::super) struct LimitOutcome {
    pub(in super::super) verdicts: Verdicts,
    /// How long the request waited for its turns.
    pub(in super::super) waited: Duration,
    /// Set if the request must not continue: the reason of the only verdict.
    pub(in super::super) rejected: Option<Rejected>,
}

impl LimitOutcome {
    /// Returns the limit that set the request's status.
    ///
    /// It is the limit that rejected the request, or else the one that made it wait longest.
    pub(in super::super) fn decisive(&self) -> Option<&LimitVerdict> {
        self.verdicts.first()
    }
}

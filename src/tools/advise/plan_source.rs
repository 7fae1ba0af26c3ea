use std::borrow::Cow;

use config::Zone;
use gateway::observe::escape::unescape;
use gateway::replay::Line;

/// Where the plan of a key is known from.
pub(super) enum PlanSource {
    /// All keys are judged together.
    Nowhere,
    /// From the gateway's own log.
    Log,
    /// From a zone of a file.
    File(Box<Zone>),
}

impl PlanSource {
    /// The name of the plan of a request whose key is `key`.
    pub(super) fn of<'a>(&'a self, line: &'a Line, key: &[u8]) -> Option<Cow<'a, str>> {
        let recorded = line.recorded.as_ref();
        match self {
            Self::Nowhere => None,
            Self::Log => recorded?.plan.as_deref().map(Cow::Borrowed),
            Self::File(zone) => {
                let logged = recorded.and_then(|recorded| recorded.keyed.as_ref());
                let logged = logged.and_then(|(_, key)| unescape(key));
                let key = logged.as_deref().unwrap_or(key);
                zone.plans.name_of(key).map(Cow::Borrowed)
            }
        }
    }
}

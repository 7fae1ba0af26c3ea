use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use gateway::replay::{Collapse, Line, Recorded, Sharing};
use limit::Moment;

/// The time at the origin that is assumed where the log does not tell it.
pub(super) const ASSUMED: Duration = Duration::from_millis(100);

/// Statuses that a cache may keep without being told (RFC 9110, section 15.1), without ranges.
const SHARED: [u16; 11] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];
/// A range, and the answer to a conditional request: both can be made of what others got.
const FROM_OTHERS: [u16; 2] = [206, 304];

/// A request of a log, as far as collapsing is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request {
    /// A hash of what is requested: host, path and query.
    target: u64,
    /// In nanoseconds; `None` if the log does not tell.
    took: Option<u64>,
    /// The number of its path.
    path: Option<u32>,
    /// How long it waits for the answer of another one, in milliseconds.
    follow_limit: u32,
    sharing: Sharing,
}

impl Request {
    pub(super) fn of(line: &Line, path: Option<u32>, follow_limit: Duration) -> Self {
        // This hasher gives the same result in each run.
        let mut hasher = DefaultHasher::new();
        host(line).hash(&mut hasher);
        target(line).hash(&mut hasher);
        let recorded = line.recorded.as_ref();
        let took = recorded.and_then(took);
        Self {
            target: hasher.finish(),
            took: took.map(|took| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)),
            path,
            follow_limit: u32::try_from(follow_limit.as_millis()).unwrap_or(u32::MAX),
            sharing: recorded.map_or(Sharing::Leads, sharing),
        }
    }

    pub(super) fn leads(&self) -> bool {
        self.sharing == Sharing::Leads
    }

    pub(super) fn took(&self) -> Option<Duration> {
        self.took.map(Duration::from_nanos)
    }

    pub(super) fn path(&self) -> Option<u32> {
        self.path
    }

    pub(super) fn departs<const N: usize>(
        &self,
        collapse: &mut Collapse<N>,
        now: Moment,
    ) -> [bool; N] {
        let took = self.took().unwrap_or(ASSUMED);
        let follow_limit = Duration::from_millis(self.follow_limit.into());
        collapse.departs(now, self.target, self.sharing, took, follow_limit)
    }
}

/// Host and path of a request, and whether the log surely names the path; `None` if it does not.
///
/// A CSV line without a path is read as one of `/`.
pub(super) fn name<'a>(line: &'a Line) -> Option<(Name<'a>, bool)> {
    let is_known = match &line.recorded {
        Some(recorded) if recorded.target.is_empty() => return None,
        Some(_) => true,
        None => line.path != "/",
    };
    let name = Name {
        host: host(line),
        path: &line.path,
    };
    Some((name, is_known))
}

/// Host and path of a request.
pub(super) struct Name<'a> {
    /// Empty if the log has none.
    pub(super) host: Cow<'a, str>,
    pub(super) path: &'a str,
}

fn host<'a>(line: &'a Line) -> Cow<'a, str> {
    let host = line.recorded.as_ref().map_or("", |it| &*it.host);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        host.to_ascii_lowercase().into()
    } else {
        host.into()
    }
}

fn target<'a>(line: &'a Line) -> &'a str {
    line.recorded.as_ref().map_or(&line.path, |it| &it.target)
}

/// The time at the origin, or that of the whole request.
fn took(recorded: &Recorded) -> Option<Duration> {
    let whole = Some(recorded.took).filter(|took| !took.is_zero());
    recorded.at_origin.or(whole)
}

fn sharing(recorded: &Recorded) -> Sharing {
    let is_head = match &*recorded.method {
        // A log without methods.
        "" | "GET" => false,
        "HEAD" => true,
        _ => return Sharing::Alone,
    };
    match recorded.status {
        Some(status) if FROM_OTHERS.contains(&status) => Sharing::Follows,
        Some(status) if !SHARED.contains(&status) => Sharing::Alone,
        _ if is_head => Sharing::Follows,
        _ => Sharing::Leads,
    }
}

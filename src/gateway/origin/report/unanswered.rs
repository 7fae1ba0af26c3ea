//! Requests without a response yet, and the usual latency of an origin, for the headline.
//!
//! A request is *late* if it waits much longer than usual for its response. A *holder* is a client
//! with requests in flight on one route and in one phase.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use limit::Moment;

use super::sample::{Holder, OriginSample, Unanswered, Usual};
use crate::http::gateway::Gateway;
use crate::origin::{InFlightTable, Origin, Phase, Sender};
use crate::status::plain::Plain;

/// Number of seconds from which the usual values are computed.
const KEPT: usize = 600;
/// Number of latest seconds that are left out, because the headline is about them.
const HEADLINE_SECONDS: usize = 3;
/// Minimum number of seconds with responses for the usual values.
const MIN_SECONDS: usize = 3;
/// Minimum number of responses for the usual values.
const MIN_ANSWERS: u64 = 10;
/// Minimum wait of a late request for its response.
const LATE: Duration = Duration::from_secs(3);
/// Time between two samples above which the gateway is assumed to have been stopped.
const PAUSE: Duration = Duration::from_secs(2);

/// Multiple of the usual latency after which a request is late.
const LATE_FACTOR: f64 = 3.0;

/// Values of the last ten minutes at one origin.
#[derive(Debug, Default)]
pub(crate) struct Past {
    seconds: VecDeque<Second>,
    /// Instant at which a response last began, or no request was unanswered.
    answered: Moment,
    /// Instant of the last sample.
    sampled: Moment,
}

/// Values of one second.
#[derive(Debug)]
struct Second {
    /// Number of responses.
    answers: u64,
    /// Latencies to the head of a response, in seconds; `None`: there was none.
    p95: Option<f64>,
    p99: Option<f64>,
    /// Number of late requests.
    late: u64,
}

/// Requests in flight at an origin: those of the servers that were added so far.
pub(crate) struct Requests {
    usual: Option<Usual>,
    /// A request that waits longer than this for its response is late.
    late_after: Duration,
    /// Number of late requests.
    late: u64,
    /// Number of requests of each sender in each phase, and the start of the oldest one.
    holders: HashMap<(Sender, Phase), (u64, Moment)>,
}

impl Past {
    /// Begins to collect the requests of a second. `response_timeout`: that of the origin.
    pub(crate) fn begin(&self, response_timeout: Duration) -> Requests {
        let usual = self.usual();
        let late_after = usual.map_or(response_timeout / 2, |usual| {
            LATE.max(Duration::from_secs_f64(LATE_FACTOR * usual.p95))
        });
        Requests {
            usual,
            late_after,
            late: 0,
            holders: HashMap::new(),
        }
    }

    /// Adds the unanswered requests and the usual values to the sample of an origin.
    ///
    /// The sample has its responses of this second already.
    pub(crate) fn add_to(
        &mut self,
        requests: &Requests,
        gateway: &Gateway,
        origin: &Origin,
        sample: &mut OriginSample,
        now: Moment,
    ) {
        let unanswered = requests.unanswered();
        let answers = sample.codes.values().sum();
        if answers > 0 || unanswered.is_none() || now.since(self.sampled) > PAUSE {
            self.answered = now;
        }
        self.sampled = now;
        self.seconds.push_back(Second {
            answers,
            p95: sample.latency.p95,
            p99: sample.latency.p99,
            late: requests.late,
        });
        if self.seconds.len() > KEPT + HEADLINE_SECONDS {
            self.seconds.pop_front();
        }
        sample.usual = requests.usual;
        sample.unanswered = unanswered.map(|(count, oldest)| Unanswered {
            requests: count,
            oldest: now.since(oldest).as_secs_f64(),
            late: requests.late,
            silence: now.since(self.answered).as_secs_f64(),
        });
        sample.holder = requests.holder(gateway, origin, now);
    }

    /// Computes the usual values; `None` before they are known.
    fn usual(&self) -> Option<Usual> {
        let count = self.seconds.len().saturating_sub(HEADLINE_SECONDS);
        let seconds = || self.seconds.iter().take(count);
        let mut latencies: Vec<_> = seconds().filter_map(|second| second.p95).collect();
        let answers: u64 = seconds().map(|second| second.answers).sum();
        if latencies.len() < MIN_SECONDS || answers < MIN_ANSWERS {
            return None;
        }
        let mut late: Vec<_> = seconds().map(|second| second.late).collect();
        let longest = seconds().filter_map(|second| second.p99);
        Some(Usual {
            p95: median(&mut latencies, f64::total_cmp),
            late: median(&mut late, Ord::cmp),
            longest: longest.max_by(f64::total_cmp).unwrap_or_default(),
            span: count as u64,
        })
    }
}

/// Median of some numbers, at least one.
fn median<T: Copy>(numbers: &mut [T], order: impl Fn(&T, &T) -> std::cmp::Ordering) -> T {
    let middle = numbers.len() / 2;
    *numbers.select_nth_unstable_by(middle, order).1
}

impl Requests {
    /// Adds the requests of one more server.
    pub(crate) fn add_server(&mut self, server: &InFlightTable, now: Moment) {
        server.for_each(|request| {
            let since = request.since;
            let (count, oldest) = (self.holders)
                .entry((request.sender, request.phase))
                .or_insert((0, since));
            *count += 1;
            *oldest = since.min(*oldest);
            let is_late = request.phase == Phase::Answer && now.since(since) >= self.late_after;
            self.late += u64::from(is_late);
        });
    }

    /// Number of requests without a response, and the start of the oldest one.
    fn unanswered(&self) -> Option<(u64, Moment)> {
        let holders = self.holders.iter();
        let waiting = holders.filter(|((_, phase), _)| *phase == Phase::Answer);
        let counted = waiting.map(|(_, counted)| *counted);
        counted.reduce(|(count, oldest), (more, since)| (count + more, oldest.min(since)))
    }

    /// Sender with the most requests in flight on one route and in one phase.
    fn holder(&self, gateway: &Gateway, origin: &Origin, now: Moment) -> Option<Holder> {
        // Of two with as many requests, the one with the older request.
        let holders = self.holders.iter();
        let (&(sender, phase), &(requests, oldest)) = holders
            .max_by_key(|(_, (requests, oldest))| (*requests, std::cmp::Reverse(*oldest)))?;
        let address = sender.client?;
        let settings = gateway.settings();
        let route = settings.routes.get(sender.route?)?;
        let limits = route.limits.iter().map(|limit| limit.zone);
        let mut zones = limits.chain(origin.settings().share);
        let address = address.to_string();
        let masked = zones.find_map(|zone| settings.zones[zone].masked(address.as_bytes()));
        Some(Holder {
            client: Plain::new(&masked.unwrap_or(address)),
            route: Plain::new(&route.name()),
            phase,
            requests,
            of: self.holders.values().map(|(count, _)| count).sum(),
            oldest: now.since(oldest).as_secs_f64(),
        })
    }
}

//! The requests whose answers have not begun, and what was usual at an origin before.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::http::gateway::Gateway;
use crate::limit::Moment;
use crate::origin::{AtServer, Origin, Phase, Sender};
use crate::status::views::{Holder, OriginSample, Plain, Unanswered, Usual};

/// Number of seconds from which the usual values are computed.
const KEPT: usize = 600;
/// Number of latest seconds that are left out, because the headline is about them.
const NOW: usize = 3;
/// Least number of seconds with answers, and of answers, before the usual values are known.
const KNOWN: (usize, u64) = (3, 10);
/// A request is not late before this.
const LATE: Duration = Duration::from_secs(3);
/// After so long between two samples, the machine stood still, and not the origin.
const PAUSE: Duration = Duration::from_secs(2);

/// What the last ten minutes were like at one origin.
#[derive(Debug, Default)]
pub(super) struct Past {
    seconds: VecDeque<Second>,
    /// When an answer last began, or nothing was to be answered.
    answered: Moment,
    sampled: Moment,
}

#[derive(Debug)]
struct Second {
    answers: u64,
    p95: Option<f64>,
    p99: Option<f64>,
    late: u64,
}

/// What was found in the table of an origin's servers.
#[derive(Default)]
struct Found {
    all: u64,
    requests: u64,
    late: u64,
    oldest: Option<Moment>,
    holders: HashMap<(Sender, Phase), (u64, Moment)>,
}

impl Past {
    /// Adds the requests without an answer, and what was usual, to the sample of an origin.
    ///
    /// The sample has its answers of this second already.
    pub(super) fn look(
        &mut self,
        gateway: &Gateway,
        origin: &Origin,
        sample: &mut OriginSample,
        now: Moment,
    ) {
        let usual = self.usual();
        let late_after = usual.map_or(origin.settings().response_timeout / 2, |usual| {
            LATE.max(Duration::from_secs_f64(3.0 * usual.p95))
        });
        let mut found = Found::default();
        for server in origin.servers(now) {
            server.requests.each(|it| found.add(it, late_after, now));
        }
        let answers = sample.codes.values().sum();
        if answers > 0 || found.requests == 0 || now.since(self.sampled) > PAUSE {
            self.answered = now;
        }
        self.sampled = now;
        self.seconds.push_back(Second {
            answers,
            p95: sample.latency.p95,
            p99: sample.latency.p99,
            late: found.late,
        });
        if self.seconds.len() > KEPT + NOW {
            self.seconds.pop_front();
        }
        sample.usual = usual;
        sample.unanswered = found.oldest.map(|oldest| Unanswered {
            requests: found.requests,
            oldest: now.since(oldest).as_secs_f64(),
            late: found.late,
            silence: now.since(self.answered).as_secs_f64(),
        });
        sample.holder = found.holder(gateway, origin, now);
    }

    fn usual(&self) -> Option<Usual> {
        let before = self.seconds.len().saturating_sub(NOW);
        let seconds = || self.seconds.iter().take(before);
        let mut latencies: Vec<_> = seconds().filter_map(|second| second.p95).collect();
        let answers: u64 = seconds().map(|second| second.answers).sum();
        if latencies.len() < KNOWN.0 || answers < KNOWN.1 {
            return None;
        }
        let mut late: Vec<_> = seconds().map(|second| second.late).collect();
        let longest = seconds().filter_map(|second| second.p99);
        Some(Usual {
            p95: median(&mut latencies, f64::total_cmp),
            late: median(&mut late, Ord::cmp),
            longest: longest.max_by(f64::total_cmp).unwrap_or_default(),
            span: before as u64,
        })
    }
}

/// The median of some numbers, which are not empty.
fn median<T: Copy>(numbers: &mut [T], order: impl Fn(&T, &T) -> std::cmp::Ordering) -> T {
    let middle = numbers.len() / 2;
    *numbers.select_nth_unstable_by(middle, order).1
}

impl Found {
    fn add(&mut self, request: &AtServer, late_after: Duration, now: Moment) {
        self.all += 1;
        let since = request.since;
        let (requests, oldest) = (self.holders)
            .entry((request.sender, request.phase))
            .or_insert((0, since));
        *requests += 1;
        *oldest = since.min(*oldest);
        if request.phase == Phase::Answer {
            self.requests += 1;
            self.late += u64::from(now.since(since) >= late_after);
            self.oldest = Some(self.oldest.map_or(since, |oldest| oldest.min(since)));
        }
    }

    /// Who has the most of all requests in flight, on one route and with one thing to wait for.
    fn holder(&self, gateway: &Gateway, origin: &Origin, now: Moment) -> Option<Holder> {
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
            of: self.all,
            oldest: now.since(oldest).as_secs_f64(),
        })
    }
}

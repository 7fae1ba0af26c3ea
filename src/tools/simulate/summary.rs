//! Counts the outcomes of all requests, and of the requests of each key.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use config::short_key;
use foldhash::fast::RandomState;
use gateway::replay::{Outcome, Spread};

use crate::display::{self, share};

/// Maximum number of keys that are counted separately.
///
/// Requests of further keys are counted together.
const MAX_KEYS: usize = 1 << 20;
/// Maximum number of keys that the text lists.
const MAX_SHOWN: usize = 10;

/// Counts of all requests, and of the requests of each key.
#[derive(Default)]
pub(super) struct Summary {
    requests: u64,
    passed: u64,
    rejected: u64,
    /// Requests rejected by a gate; `None` if no request was at a gate.
    by_gate: Option<u64>,
    /// Requests that no route matches.
    pub(super) unrouted: u64,
    /// Waits of delayed requests, in nanoseconds.
    waits: Spread,
    keys: HashMap<Box<[u8]>, KeyOutcomes, RandomState>,
    /// Requests of keys beyond [`MAX_KEYS`].
    uncounted: u64,
}

/// Outcomes of the requests of one key. Compared by the rejections first, then by the waits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct KeyOutcomes {
    /// Includes requests that no route matches: a 404 is no better for the client than a rejection.
    rejected: u64,
    /// Sum of all waits, in nanoseconds.
    waited: u64,
}

impl Summary {
    /// Counts a request. `outcome`: `None` if no route matches the request.
    pub(super) fn add(&mut self, outcome: Option<&Outcome>) {
        self.requests += 1;
        if let Some(gate) = outcome.and_then(|outcome| outcome.at_gate) {
            let rejected = u64::from(gate.rejected.is_some());
            self.by_gate = Some(self.by_gate.unwrap_or_default() + rejected);
        }
        match outcome.map(Outcome::delay) {
            None => self.unrouted += 1,
            Some(None) => self.rejected += 1,
            Some(Some(Duration::ZERO)) => self.passed += 1,
            Some(Some(delay)) => self.waits.add(nanos(delay)),
        }
    }

    /// Counts a request for its key. `outcome`: as in [`Self::add`].
    pub(super) fn add_for_key(&mut self, key: &[u8], outcome: Option<&Outcome>) {
        let key = &*short_key(key);
        let has_room = self.keys.len() < MAX_KEYS;
        let outcomes = match self.keys.get_mut(key) {
            Some(outcomes) => outcomes,
            None if has_room => self.keys.entry(key.into()).or_default(),
            None => return self.uncounted += 1,
        };
        match outcome.and_then(Outcome::delay) {
            None => outcomes.rejected += 1,
            Some(delay) => outcomes.waited = outcomes.waited.saturating_add(nanos(delay)),
        }
    }

    /// Formats the counts as lines below the `name` of the file, and the most limited keys.
    pub(super) fn text(&self, name: &str) -> String {
        let with_percent = |part: u64| {
            let percent = share(part, self.requests) * 100.0;
            format!("{part} ({percent:.1} %)")
        };
        let mut lines = vec![
            // The name is the heading of the column of numbers.
            ("", name.to_owned()),
            ("requests", self.requests.to_string()),
            ("passed at once", with_percent(self.passed)),
            ("delayed", with_percent(self.waits.count())),
            ("rejected", with_percent(self.rejected)),
        ];
        let by_gate = self.by_gate.map(with_percent);
        lines.extend(by_gate.map(|text| ("  by an origin's gate", text)));
        lines.extend([
            ("without a route", with_percent(self.unrouted)),
            (
                "wait of the delayed, p50",
                seconds(self.waits.quantile(0.5)),
            ),
            ("p99", seconds(self.waits.quantile(0.99))),
            ("longest", seconds(self.waits.peak())),
        ]);
        let width = name.chars().count().max(20) + 1;
        let line = |(what, number): &(&str, String)| format!("{what:<26}{number:>width$}\n");
        let mut text = lines.iter().map(line).collect::<Vec<_>>().concat();
        self.add_keys(&mut text);
        if self.unrouted > 0 {
            text.push_str("(For keys, requests without a route count as rejected.)\n");
        }
        if self.uncounted > 0 {
            let uncounted = self.uncounted;
            text += &format!(
                "{uncounted} requests have keys beyond the {MAX_KEYS} that are counted one by one\n"
            );
        }
        text
    }

    /// Adds the keys with the most rejections, and among equal ones those with the longest wait.
    fn add_keys(&self, text: &mut String) {
        let keys = self.keys.iter();
        let is_limited = |key: &(_, &KeyOutcomes)| *key.1 != KeyOutcomes::default();
        let mut limited: Vec<_> = keys.filter(is_limited).collect();
        limited.sort_by_key(|(key, outcomes)| (Reverse(**outcomes), *key));
        let title = format!("{} of {} keys are limited", limited.len(), self.keys.len());
        *text += &match limited[..] {
            [] => format!("\n{title}\n"),
            _ => format!("\n{title:<42}{:>10}{:>16}\n", "rejected", "waited in all"),
        };
        for (key, KeyOutcomes { rejected, waited }) in limited.iter().take(MAX_SHOWN) {
            let (key, waited) = (display::key(key), seconds(*waited));
            *text += &format!("  {key:<40}{rejected:>10}{waited:>16}\n");
        }
        if limited.len() > MAX_SHOWN {
            *text += &format!("  and {} more\n", limited.len() - MAX_SHOWN);
        }
    }
}

/// Formats nanoseconds as seconds.
fn seconds(nanos: u64) -> String {
    format!("{:.3} s", Duration::from_nanos(nanos).as_secs_f64())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

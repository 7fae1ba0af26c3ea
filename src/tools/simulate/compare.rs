//! Compares how each key fares under several files.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

use config::short_key;
use foldhash::fast::RandomState;
use gateway::replay::{Outcome, Spread};

use crate::shown;

/// Maximum number of keys that are followed one by one.
///
/// Requests of further keys are only counted together.
const MAX_KEYS: usize = 1 << 20;
/// Maximum number of keys shown for each side.
const SHOWN: usize = 10;

/// The outcome of all requests under one file.
#[derive(Default)]
pub(super) struct Total {
    requests: u64,
    passed: u64,
    delayed: u64,
    rejected: u64,
    /// Those of the rejected that a gate rejected; `None` if no request was at a gate.
    by_gate: Option<u64>,
    unrouted: u64,
    waits: Spread,
}

/// The outcome of the requests of one key under one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Fate {
    /// Includes requests that no route takes: a client that gets 404 is no better off.
    rejected: u64,
    /// Sum over all requests, in nanoseconds.
    waited: u64,
}

/// The outcome for each key under each of several files.
pub(super) struct Keys {
    files: usize,
    fates: HashMap<Box<[u8]>, Box<[Fate]>, RandomState>,
    /// Requests of keys beyond [`MAX_KEYS`].
    beyond: u64,
}

impl Total {
    pub fn add(&mut self, outcome: Option<&Outcome>) {
        self.requests += 1;
        if let Some(gate) = outcome.and_then(|outcome| outcome.at_gate) {
            let rejected = u64::from(gate.rejected.is_some());
            self.by_gate = Some(self.by_gate.unwrap_or_default() + rejected);
        }
        match outcome.map(Outcome::delay) {
            None => self.unrouted += 1,
            Some(None) => self.rejected += 1,
            Some(Some(Duration::ZERO)) => self.passed += 1,
            Some(Some(delay)) => {
                self.delayed += 1;
                self.waits.add(nanos(delay));
            }
        }
    }

    /// Requests that no route takes.
    pub(super) fn unrouted(&self) -> u64 {
        self.unrouted
    }
}

impl Keys {
    pub(super) fn new(files: usize) -> Self {
        Self {
            files,
            fates: HashMap::default(),
            beyond: 0,
        }
    }

    /// Adds the outcome of one request of `key` under each file.
    pub fn add(&mut self, key: &[u8], outcomes: &[Option<Outcome>]) {
        let key = &*short_key(key);
        let fates = if let Some(fates) = self.fates.get_mut(key) {
            fates
        } else if self.fates.len() < MAX_KEYS {
            let new = vec![Fate::default(); self.files];
            self.fates.entry(key.into()).or_insert(new.into())
        } else {
            self.beyond += 1;
            return;
        };
        for (fate, outcome) in fates.iter_mut().zip(outcomes) {
            match outcome.as_ref().map(Outcome::delay) {
                None | Some(None) => fate.rejected += 1,
                Some(Some(delay)) => fate.waited = fate.waited.saturating_add(nanos(delay)),
            }
        }
    }

    /// Reports which keys are rejected most, and which wait longest, under the only file.
    fn tell_most_limited(&self, text: &mut String) {
        let fates = self.fates.iter();
        let fates = fates.filter_map(|(key, fates)| Some((key, fates.first()?)));
        let limited = fates.filter(|(_, fate)| **fate != Fate::default());
        let mut limited: Vec<_> = limited.collect();
        limited.sort_by_key(|(key, fate)| (std::cmp::Reverse(**fate), *key));
        let of_all = format!("{} of {} keys are limited", limited.len(), self.fates.len());
        let _ = if limited.is_empty() {
            writeln!(text, "\n{of_all}")
        } else {
            writeln!(
                text,
                "\n{of_all:<42}{:>10}{:>16}",
                "rejected", "waited in all"
            )
        };
        for (key, fate) in limited.iter().take(SHOWN) {
            let key = shown::key(key);
            let waited = seconds(fate.waited);
            let _ = writeln!(text, "  {key:<40}{:>10}{waited:>16}", fate.rejected);
        }
        if limited.len() > SHOWN {
            let _ = writeln!(text, "  and {} more", limited.len() - SHOWN);
        }
    }

    /// Reports which keys are better and worse off under file number `nth` than under the first.
    ///
    /// `name` and `first` are the names of these files.
    fn tell(&self, text: &mut String, nth: usize, name: &str, first: &str) {
        let (mut better, mut worse, mut same) = (Vec::new(), Vec::new(), 0u64);
        for (key, fates) in &self.fates {
            let (Some(before), Some(after)) = (fates.first(), fates.get(nth)) else {
                continue;
            };
            // Fewer rejections is better. If those are equal, less waiting is better.
            match after.cmp(before) {
                std::cmp::Ordering::Less => better.push((key, *before, *after)),
                std::cmp::Ordering::Greater => worse.push((key, *before, *after)),
                std::cmp::Ordering::Equal => same += 1,
            }
        }
        let _ = writeln!(
            text,
            "\nunder {name}, against {first}: {} keys are better off, {} worse, {same} the same",
            better.len(),
            worse.len()
        );
        for (title, mut keys) in [("better off", better), ("worse off", worse)] {
            if keys.is_empty() {
                continue;
            }
            keys.sort_by_key(|(key, before, after)| {
                let less = before.rejected.abs_diff(after.rejected);
                let shorter = before.waited.abs_diff(after.waited);
                (std::cmp::Reverse((less, shorter)), *key)
            });
            let _ = writeln!(
                text,
                "  {title:<40}{:>10}{:>10}{:>16}{:>12}",
                "rejected", "now", "waited in all", "now"
            );
            for (key, before, after) in keys.iter().take(SHOWN) {
                let key = shown::key(key);
                let _ = writeln!(
                    text,
                    "  {key:<40}{:>10}{:>10}{:>16}{:>12}",
                    before.rejected,
                    after.rejected,
                    seconds(before.waited),
                    seconds(after.waited)
                );
            }
            if keys.len() > SHOWN {
                let _ = writeln!(text, "  and {} more", keys.len() - SHOWN);
            }
        }
    }
}

/// A summary of the requests under each file, by its name. The others are compared with the first.
pub(super) fn summary(totals: &[(&str, &Total)], keys: &Keys) -> String {
    let mut text = String::new();
    let longest = totals.iter().map(|(name, _)| name.chars().count()).max();
    let wide = longest.unwrap_or(0).max(20) + 1;
    // Writing to a String cannot fail.
    let mut line = |what: &str, of: &dyn Fn(&str, &Total) -> String| {
        let _ = write!(text, "{what:<26}");
        for (name, total) in totals {
            let _ = write!(text, "{:>wide$}", of(name, total));
        }
        text.push('\n');
    };
    line("", &|name, _| name.to_owned());
    line("requests", &|_, total| total.requests.to_string());
    line("passed at once", &|_, total| of(total.passed, total));
    line("delayed", &|_, total| of(total.delayed, total));
    line("rejected", &|_, total| of(total.rejected, total));
    if totals.iter().any(|(_, total)| total.by_gate.is_some()) {
        line("  by an origin's gate", &|_, total| {
            of(total.by_gate.unwrap_or_default(), total)
        });
    }
    line("without a route", &|_, total| of(total.unrouted, total));
    line("wait of the delayed, p50", &|_, total| {
        seconds(total.waits.at(0.5))
    });
    line("p99", &|_, total| seconds(total.waits.at(0.99)));
    line("longest", &|_, total| seconds(total.waits.peak()));
    let Some((first, _)) = totals.first() else {
        return text;
    };
    if totals.len() == 1 {
        keys.tell_most_limited(&mut text);
    }
    for (nth, (name, _)) in totals.iter().enumerate().skip(1) {
        keys.tell(&mut text, nth, name, first);
    }
    if totals.iter().any(|(_, total)| total.unrouted > 0) {
        text.push_str("(For keys, requests without a route count as rejected.)\n");
    }
    if keys.beyond > 0 {
        let _ = writeln!(
            text,
            "{} requests have keys beyond the {MAX_KEYS} that are counted one by one",
            keys.beyond
        );
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "shares are for people")]
fn of(part: u64, total: &Total) -> String {
    let share = if total.requests == 0 {
        0.0
    } else {
        part as f64 * 100.0 / total.requests as f64
    };
    format!("{part} ({share:.1} %)")
}

fn seconds(nanos: u64) -> String {
    format!("{:.3} s", Duration::from_nanos(nanos).as_secs_f64())
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

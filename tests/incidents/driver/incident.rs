//! An incident, from its begin to the calm after it.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::quiet::{check_none, is_calm, loud_lines};
use super::rule::{Rule, Severity};
use super::watch::{Seen, Watch};
use super::{general, lines};
use crate::support::{Gateway, Metrics, all_pauses, note_pauses, now};

/// Duration of calm traffic before each incident.
const CALM_BEFORE: Duration = Duration::from_secs(3);
/// Maximum duration for which a gateway measures its first seconds.
const FIRST_SECONDS: u64 = 10;
/// Time after which the log must report the end of a warning.
const ENDS_WITHIN: u64 = 16;
const LOOK: Duration = Duration::from_millis(100);

/// An incident at a gateway, which must follow a rule.
pub struct Incident<'a> {
    gateway: &'a Gateway,
    rule: &'a Rule,
    watch: Watch,
    began: Instant,
    /// Metrics at its begin.
    before: Option<Metrics>,
    /// Patterns that only the test knows, such as addresses.
    more: Vec<String>,
    reported: Option<Value>,
    /// Whether the log must report its end.
    waits_for_end: bool,
}

/// Returns the time since `began` in which this process had no processor time.
///
/// The gateway may have missed the same time.
pub fn pauses(began: Instant) -> Duration {
    2 * all_pauses(began, now())
}

/// Returns how long an incident lasts after it was reported: `DRIP_INCIDENT_SECONDS`, default 0.
pub fn lasts() -> Duration {
    let seconds = env::var("DRIP_INCIDENT_SECONDS").ok();
    let seconds = seconds.map(|it| it.parse().expect("a whole number"));
    Duration::from_secs(seconds.unwrap_or(0))
}

impl<'a> Incident<'a> {
    /// Waits for calm, and begins the incident by `action`.
    pub fn begin(gateway: &'a Gateway, rule: &'a Rule, action: impl FnOnce()) -> Self {
        note_pauses();
        let mut incident = Self::since(gateway, rule, now());
        incident.wait_calm(incident.began, FIRST_SECONDS);
        let calm_since = now();
        thread::sleep(CALM_BEFORE);
        let seen = incident.watch.seen();
        for Seen { at, headline, .. } in seen {
            let is_calm = Severity::of(&headline) < Severity::Warn;
            assert!(at < calm_since || is_calm, "before: {headline:#}");
        }
        let loud = loud_lines(gateway, calm_since);
        assert!(loud.is_empty(), "before the incident: {loud:#?}");
        incident.before = Some(gateway.metrics());
        incident.began = now();
        action();
        incident
    }

    /// Returns an incident that has existed since `began`, without calm before it.
    pub fn since(gateway: &'a Gateway, rule: &'a Rule, began: Instant) -> Self {
        Self {
            gateway,
            rule,
            watch: Watch::start(gateway.site.admin),
            began,
            before: None,
            more: Vec::new(),
            reported: None,
            waits_for_end: false,
        }
    }

    /// Adds a pattern that the headline must contain.
    pub fn saying(mut self, pattern: impl Into<String>) -> Self {
        self.more.push(pattern.into());
        self
    }

    /// Also waits for the log line that reports the end of the incident.
    pub fn waiting_for_end(mut self) -> Self {
        self.waits_for_end = true;
        self
    }

    /// Waits until the gateway reports the incident as its rule says. Returns the headline.
    pub fn reported(&mut self) -> Value {
        let limit = Duration::from_secs(self.rule.within);
        let mut headline = None;
        loop {
            let took = self.began.elapsed();
            let seen = self.seen().into_iter();
            let mut all = seen.map(|it| it.headline);
            headline = headline
                .or_else(|| all.find(|headline| self.rule.lacks(headline, &self.more).is_empty()));
            let lacks = self.lacks(headline.as_ref());
            if let Some(headline) = headline.as_ref().filter(|_| lacks.is_empty()) {
                println!("reported after {took:.1?}: {}", headline["title"]);
                self.reported = Some(headline.clone());
                if let Some(check) = &self.rule.check {
                    check.hold_of(&self.gateway.site.file());
                }
                thread::sleep(lasts());
                return headline.clone();
            }
            let limit = limit + pauses(self.began);
            let last = self.watch.last(self.began).unwrap_or_default();
            assert!(took < limit, "in {limit:.1?}: {lacks:#?}\n{last:#}");
            thread::sleep(LOOK);
        }
    }

    /// Returns what is not reported yet. `headline`: the one that satisfies the rule.
    fn lacks(&self, headline: Option<&Value>) -> Vec<String> {
        let mut lacks = Vec::new();
        if headline.is_none() {
            let last = self.watch.last(self.began);
            let of_last = last.map(|last| self.rule.lacks(&last, &self.more));
            lacks.extend(of_last.unwrap_or_default());
            lacks.push("no headline satisfies all of the rule".to_owned());
        }
        if let Some(line) = &self.rule.log {
            let lines = self.gateway.log_lines().into_iter();
            let mut lines = lines.filter(|(at, _)| *at >= self.began);
            if !lines.any(|(_, it)| line.is(&it)) {
                lacks.push(format!("no line: {line:?}"));
            }
        }
        if !self.rule.metrics.is_empty() {
            let metrics = self.gateway.metrics();
            for series in self.rule.metrics {
                let value = |metrics: &Metrics| metrics.value(series.name, series.labels);
                let before = self.before.as_ref().and_then(value);
                if !series.is.holds(before, value(&metrics)) {
                    lacks.push(format!("{series:?} is {:?}", value(&metrics)));
                }
            }
        }
        lacks
    }

    /// Returns all headlines since the begin.
    pub fn seen(&self) -> Vec<Seen> {
        let seen = self.watch.seen().into_iter();
        seen.filter(|it| it.at >= self.began).collect()
    }

    /// Returns the current headline.
    pub fn latest(&self) -> Value {
        let since = now();
        loop {
            if let Some(last) = self.watch.last(since) {
                return last;
            }
            thread::sleep(LOOK);
        }
    }

    /// Ends the incident by `action`, waits for calm, and checks all headlines and lines.
    pub fn end(self, action: impl FnOnce()) {
        let ended = now();
        action();
        self.wait_calm(ended, self.rule.calm);
        self.judge(ended);
    }

    /// Checks all headlines and lines of an incident that is not over.
    pub fn leave(self) {
        let ended = now();
        self.judge(ended);
    }

    fn wait_calm(&self, since: Instant, within: u64) {
        loop {
            let last = self.watch.last(since);
            // The last sample may still be one from before the incident.
            if last.as_ref().is_some_and(is_calm) {
                return;
            }
            let limit = Duration::from_secs(within) + pauses(since);
            let last = last.unwrap_or_default();
            assert!(since.elapsed() < limit, "no calm in {limit:.1?}: {last:#}");
            thread::sleep(LOOK);
        }
    }

    fn judge(&self, ended: Instant) {
        let mut wrong = Vec::new();
        for Seen {
            at,
            headline,
            stuck,
        } in self.seen()
        {
            let mut found = general::forbidden(&headline, stuck);
            let forbidden = self.rule.forbidden(&headline, at < ended);
            found.extend(forbidden);
            if !found.is_empty() {
                wrong.push(format!("{found:#?}\n{headline:#}"));
            }
        }
        check_none(wrong);
        let Some(reported) = &self.reported else {
            return;
        };
        let mut lines = self.gateway.log_lines();
        lines.retain(|(at, _)| *at >= self.began);
        let too_early = lines::ended(&lines, reported, ended);
        let is_in_time = too_early.is_empty();
        assert!(is_in_time, "its end is logged too early: {too_early:#?}");
        self.check_begin(reported, ended);
        if self.waits_for_end {
            self.wait_for_end(reported, ended);
        }
    }

    /// Checks the log lines about begins.
    ///
    /// The line may be that of an earlier incident of this cause, if that had not ended in the log.
    fn check_begin(&self, reported: &Value, ended: Instant) {
        let cause = reported["cause"].as_str().unwrap_or_default();
        let all = self.gateway.log_lines();
        let last_end = lines::ended(&all, reported, ended).pop();
        let since_end = all.iter().rev().map(|(_, line)| line);
        let mut since_end = since_end.take_while(|line| Some(*line) != last_end);
        let has_begun = since_end.any(|line| lines::begins(line, cause));
        assert!(has_begun, "no line says that {cause} began");
        let since = all.into_iter().filter(|(at, _)| *at >= self.began);
        let since: Vec<_> = since.map(|(_, line)| line).collect();
        let headlines: Vec<_> = self.seen().into_iter().map(|it| it.headline).collect();
        let wrong = lines::began(&since, &headlines);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Waits for the log line that reports the end of the incident.
    fn wait_for_end(&self, reported: &Value, ended: Instant) {
        while lines::ended(&self.gateway.log_lines(), reported, now()).is_empty() {
            let limit = Duration::from_secs(ENDS_WITHIN) + pauses(ended);
            assert!(ended.elapsed() < limit, "it never ended: {reported:#}");
            thread::sleep(LOOK);
        }
    }
}

//! Warnings that began and ended: the history of headlines and their log lines.
//!
//! A *warning* is a headline about a problem. It lasts as long as a rule finds its *topic*, which
//! is its cause and the zone or origin that it is about, even if another warning is the headline
//! meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use super::change;
use super::finding::Severity;
use super::sample::{EndedHeadline, Headline, PastHeadline};
use super::words::{seconds, whole};
use crate::status::plain::Plain;
use crate::status::sample::ChangeSample;

/// Maximum number of kept warnings.
const MAX_KEPT: usize = 200;

/// Maximum gap within one warning, in seconds.
///
/// A warning that comes back earlier has not ended. So an intermittent cause is one entry, with one
/// log line at its begin and one at its end.
const MAX_GAP: f64 = 10.0;

/// Duration for which an ended warning is shown, in seconds, as long as the plots reach back.
const SHOW_ENDED_FOR: f64 = 600.0;

/// The past warnings and the present one, each as it was at its worst.
///
/// A headline that is no warning is not kept: it would push incidents out.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Warnings, the newest first.
    history: VecDeque<PastHeadline>,
}

/// Change of a warning: it began, became bad, or ended for good.
#[derive(Debug, PartialEq)]
pub(super) enum WarningChange {
    Began(Headline),
    Worsened(Headline),
    Ended(PastHeadline),
}

impl Past {
    /// Returns the kept warnings, the newest first.
    pub(super) fn history(&self) -> impl Iterator<Item = &PastHeadline> {
        self.history.iter()
    }

    /// Returns the begin of the warning `headline`, which was recorded last; `None`: it is none.
    pub(super) fn since(&self, headline: &Headline) -> Option<f64> {
        let is_present = |past: &&PastHeadline| past.until.is_none() && past.is_same(headline);
        let present = self.history.iter().find(is_present);
        present
            .filter(|_| headline.finding.is_warning())
            .map(|past| past.since)
    }

    /// Returns the warning that ended last; `None` while there is another one, which may hide it.
    pub(super) fn ended(&self, time: f64, headline: &Headline) -> Option<EndedHeadline> {
        if headline.finding.is_warning() {
            return None;
        }
        let ended = self.history.iter().filter_map(|it| Some((it.until?, it)));
        let (at, last) = ended.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        (time - at <= SHOW_ENDED_FOR).then(|| EndedHeadline {
            at,
            title: Plain::new(&last.headline.finding.title),
        })
    }

    /// Records the headline of a second. Returns the warnings that began, became bad or ended.
    ///
    /// A warning does not end while another one only precedes it. A warning that begins soon after
    /// a `change` of the file names the change as long as it lasts.
    pub(super) fn note(
        &mut self,
        time: f64,
        headline: &mut Headline,
        change: Option<&ChangeSample>,
    ) -> Vec<WarningChange> {
        let mut changes = Vec::new();
        for past in self.history.iter_mut().filter(|past| !past.has_ended) {
            if headline.found.contains(&past.headline.finding.topic()) {
                past.until = None;
                continue;
            }
            let until = *past.until.get_or_insert(time);
            if time - until >= MAX_GAP {
                past.has_ended = true;
                changes.push(WarningChange::Ended(past.clone()));
            }
        }
        if headline.finding.is_warning() {
            let is_present = |past: &&mut PastHeadline| !past.has_ended && past.is_same(headline);
            let known = self.history.iter_mut().find(is_present);
            let after = match &known {
                Some(known) => known.after.clone(),
                None => change::describe(headline, change, time),
            };
            let after = after.filter(|after| !change::is_superseded(after, change, time));
            if let Some(after) = &after {
                change::add(headline, after);
            }
            if let Some(known) = known {
                known.after = after;
                if known.prolong(headline) {
                    changes.push(WarningChange::Worsened(headline.clone()));
                }
            } else {
                changes.push(WarningChange::Began(headline.clone()));
                self.history.push_front(PastHeadline {
                    since: time,
                    until: None,
                    count: headline.finding.count,
                    headline: headline.clone(),
                    has_ended: false,
                    after,
                });
            }
        }
        self.history.truncate(MAX_KEPT);
        changes
    }
}

impl PastHeadline {
    /// Returns whether `headline` is the same warning.
    fn is_same(&self, headline: &Headline) -> bool {
        self.headline.finding.topic() == headline.finding.topic()
    }

    /// Prolongs the warning by one second. Returns whether it has become bad.
    fn prolong(&mut self, headline: &Headline) -> bool {
        self.until = None;
        self.count += headline.finding.count;
        let severity = self.headline.finding.severity;
        if headline.finding.cmp_gravity(&self.headline.finding).is_ge() {
            self.headline = headline.clone();
        }
        severity < self.headline.finding.severity
    }
}

/// Writes a log line about a warning, at the level of its severity.
macro_rules! log_warning {
    ($level:ident, $verb:literal, $finding:expr) => {
        tracing::$level!(
            cause = $finding.cause.label(),
            about = $finding.about.as_ref().map(Plain::as_str),
            evidence = $finding.evidence,
            remedy = $finding.remedy,
            concat!($verb, ": {}"),
            $finding.title
        )
    };
}

impl WarningChange {
    /// Writes the log line.
    pub(super) fn log(&self) {
        match self {
            Self::Began(Headline { finding, .. }) if finding.severity == Severity::Bad => {
                log_warning!(error, "began", finding);
            }
            Self::Began(Headline { finding, .. }) => log_warning!(warn, "began", finding),
            Self::Worsened(Headline { finding, .. }) => log_warning!(error, "worse", finding),
            Self::Ended(past) => {
                let finding = &past.headline.finding;
                let lasted = past.until.unwrap_or(past.since) - past.since;
                let lasted = Duration::try_from_secs_f64(lasted).unwrap_or_default();
                let requests = (past.count > 0).then(|| whole(past.count));
                tracing::info!(
                    cause = finding.cause.label(),
                    about = finding.about.as_ref().map(Plain::as_str),
                    lasted = seconds(lasted.as_secs_f64()),
                    requests,
                    "ended: {}",
                    finding.title
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::status::headline::finding::{Cause, Finding, Suspicion};

    /// A headline about `api`, which is a warning if its severity is one.
    fn headline(cause: Cause, severity: Severity, weight: f64) -> Headline {
        let finding = Finding {
            title: cause.label().to_owned(),
            weight,
            count: 2,
            ..Finding::about(&"api".into(), cause, severity)
        };
        let found = finding.is_warning().then(|| finding.topic());
        Headline {
            found: found.into_iter().collect(),
            finding,
            ..Headline::default()
        }
    }

    fn warn(cause: Cause) -> Headline {
        headline(cause, Severity::Warn, 1.0)
    }

    fn bad(cause: Cause) -> Headline {
        headline(cause, Severity::Bad, 1.0)
    }

    fn fine() -> Headline {
        headline(Cause::Fine, Severity::Fine, 0.0)
    }

    /// Cause, begin and end of each warning, the newest first.
    fn history(past: &Past) -> Vec<(&str, f64, Option<f64>)> {
        let warnings = past.history();
        warnings
            .map(|it| (it.headline.finding.cause.label(), it.since, it.until))
            .collect()
    }

    /// Records a headline in a second without a change before it.
    fn note(past: &mut Past, time: f64, headline: &Headline) -> Vec<WarningChange> {
        past.note(time, &mut headline.clone(), None)
    }

    /// Records the headline of each second. Returns the changes of warnings, such as
    /// `3 began waiting`.
    fn play(
        past: &mut Past,
        seconds: Range<u32>,
        headline: impl Fn(u32) -> Headline,
    ) -> Vec<String> {
        let mut changes = Vec::new();
        for second in seconds {
            for change in note(past, f64::from(second), &headline(second)) {
                let (verb, finding) = match change {
                    WarningChange::Began(headline) => ("began", headline.finding),
                    WarningChange::Worsened(headline) => ("worse", headline.finding),
                    WarningChange::Ended(past) => ("ended", past.headline.finding),
                };
                changes.push(format!("{second} {verb} {}", finding.cause.label()));
            }
        }
        changes
    }

    #[test]
    fn an_incident_stays_whatever_is_fine_after_it() {
        let mut past = Past::default();
        play(&mut past, 0..30, |_| bad(Cause::OriginFailing));
        play(&mut past, 30..3000, |second| {
            let cause = [Cause::Fine, Cause::Waiting][second as usize % 2];
            headline(cause, Severity::Fine, 0.0)
        });
        assert_eq!(history(&past), [("origin_failing", 0.0, Some(30.0))]);
        assert_eq!(past.history().next().map(|it| it.count), Some(60));
    }

    #[test]
    fn an_intermittent_warning_begins_and_ends_once() {
        let mut past = Past::default();
        let came = play(&mut past, 0..60, |second| match second % 3 {
            0 => warn(Cause::Rejecting),
            1 => warn(Cause::ServerOut),
            _ => fine(),
        });
        assert_eq!(came, ["0 began rejecting", "1 began server_out"]);
        let ended = play(&mut past, 60..80, |_| fine());
        assert_eq!(ended, ["68 ended rejecting", "69 ended server_out"]);
        // A later warning is another incident.
        let again = play(&mut past, 100..101, |_| warn(Cause::Rejecting));
        assert_eq!(again, ["100 began rejecting"]);
        let all = [
            ("rejecting", 100.0, None),
            ("server_out", 1.0, Some(59.0)),
            ("rejecting", 0.0, Some(58.0)),
        ];
        assert_eq!(history(&past), all);
    }

    #[test]
    fn a_warning_that_another_one_precedes_has_not_ended() {
        let mut past = Past::default();
        let less_urgent = warn(Cause::FileError);
        let mut more_urgent = bad(Cause::OriginFailing);
        more_urgent.found.extend(less_urgent.found.clone());
        let changes = play(&mut past, 0..90, |second| match second {
            0..10 | 40..60 => less_urgent.clone(),
            10..40 => more_urgent.clone(),
            _ => fine(),
        });
        let expected = [
            "0 began file_error",
            "10 began origin_failing",
            "50 ended origin_failing",
            "70 ended file_error",
        ];
        assert_eq!(changes, expected);
        let all = [
            ("origin_failing", 10.0, Some(40.0)),
            ("file_error", 0.0, Some(60.0)),
        ];
        assert_eq!(history(&past), all);
    }

    #[test]
    fn a_warning_that_becomes_bad_is_worse_once() {
        let changes = play(&mut Past::default(), 0..20, |second| {
            let severity = Severity::bad_if(second % 4 == 3);
            headline(Cause::Rejecting, severity, 1.0)
        });
        assert_eq!(changes, ["0 began rejecting", "3 worse rejecting"]);
    }

    #[test]
    fn an_entry_is_as_it_was_at_its_worst() {
        let mut past = Past::default();
        for (second, weight) in [(0, 1.0), (1, 9.0), (2, 3.0)] {
            let mut headline = headline(Cause::Rejecting, Severity::Warn, weight);
            headline.finding.title = weight.to_string();
            note(&mut past, f64::from(second), &headline);
        }
        assert_eq!(past.history[0].headline.finding.title, "9");
    }

    #[test]
    fn a_warning_says_since_when_and_for_a_while_that_it_has_ended() {
        let mut past = Past::default();
        let (bad, other, fine) = (bad(Cause::Rejecting), bad(Cause::StoreOut), fine());
        // Records a headline. Returns its begin, and the end of the last warning.
        let mut report = |time, headline: &Headline| {
            note(&mut past, time, headline);
            let ended = past.ended(time, headline);
            let ended = ended.map(|it| (it.at, it.title.to_string()));
            (past.since(headline), ended)
        };
        let ended = |at| (None, Some((at, "rejecting".to_owned())));
        assert_eq!(report(1.0, &fine), (None, None));
        assert_eq!(report(2.0, &bad), (Some(2.0), None));
        assert_eq!(report(3.0, &fine), ended(3.0));
        // The same warning again.
        assert_eq!(report(9.0, &bad), (Some(2.0), None));
        assert_eq!(report(10.0, &fine), ended(10.0));
        assert_eq!(report(13.0, &fine), ended(10.0));
        assert_eq!(report(14.0, &other), (Some(14.0), None));
        assert_eq!(report(30.0, &other), (Some(14.0), None));
        assert_eq!(report(50.0, &bad), (Some(50.0), None));
        assert_eq!(report(60.0, &fine), ended(60.0));
        assert_eq!(report(700.0, &fine), (None, None));
    }

    #[test]
    fn the_history_is_bounded() {
        let mut past = Past::default();
        for nth in 0..300 {
            let mut headline = bad(Cause::Rejecting);
            headline.finding.about = Some(format!("zone{nth}").as_str().into());
            headline.found = vec![headline.finding.topic()];
            note(&mut past, f64::from(nth) * 20.0, &headline);
        }
        assert_eq!(past.history().count(), MAX_KEPT);
    }

    fn change(ago: f64, what: &str) -> ChangeSample {
        ChangeSample {
            ago,
            what: vec![what.into()],
        }
    }

    /// Records a headline about the zone `api`. Returns its evidence and its remedy.
    fn record(
        past: &mut Past,
        time: f64,
        (cause, suspicion): (Cause, Suspicion),
        change: Option<&ChangeSample>,
    ) -> (String, String) {
        let mut headline = match cause {
            Cause::Fine => fine(),
            _ => warn(cause),
        };
        headline.is_of_zone = true;
        headline.finding.suspicion = suspicion;
        "9 of 10.".clone_into(&mut headline.finding.evidence);
        "Raise `rate`.".clone_into(&mut headline.finding.remedy);
        past.note(time, &mut headline, change);
        (headline.finding.evidence, headline.finding.remedy)
    }

    fn texts(evidence: &str, remedy: &str) -> (String, String) {
        (evidence.to_owned(), remedy.to_owned())
    }

    #[test]
    fn a_warning_names_the_change_before_it_as_long_as_it_lasts() {
        use Suspicion::{Named, Suspected, SuspectedAlone, Unnamed};
        let rate = change(1.2, "zones.api.rate 20r/s -> 20r/m");
        let later = change(0.1, "zones.api.max_keys 1 -> 2");
        let mut past = Past::default();
        let mut record = |time, cause, change| record(&mut past, time, cause, change);
        let after = "9 of 10. It began 2 s after zones.api.rate 20r/s -> 20r/m.";
        let back = "Take the change back if it was not meant.";
        let prefixed = texts(after, &format!("{back} Raise `rate`."));
        let found = record(1.0, (Cause::Rejecting, Suspected), Some(&rate));
        assert_eq!(found, prefixed);
        // The same warning, whatever changes later. A plan is no remedy for a wrong rate.
        let found = record(2.0, (Cause::Rejecting, SuspectedAlone), Some(&later));
        assert_eq!(found, texts(after, back));
        for time in [3.0, 20.0] {
            record(time, (Cause::Fine, Named), None);
        }
        let found = record(300.0, (Cause::Rejecting, Suspected), None);
        assert_eq!(found, texts("9 of 10.", "Raise `rate`."));
        // Reverting a rate is no remedy for a full disk.
        let found = record(400.0, (Cause::LogLost, Named), Some(&rate));
        assert_eq!(found, texts(after, "Raise `rate`."));
        let found = record(500.0, (Cause::Paused, Unnamed), Some(&rate));
        assert_eq!(found, texts("9 of 10.", "Raise `rate`."));
    }

    #[test]
    fn a_change_of_something_else_is_not_to_be_taken_back() {
        for other in [
            "zones.other.rate 1r/s -> 2r/s",
            "log.access \"a\" -> \"b\"",
            "origins.app.rate 1r/s -> 2r/s",
        ] {
            let change = change(60.0, other);
            let cause = (Cause::Rejecting, Suspicion::Suspected);
            let (evidence, remedy) = record(&mut Past::default(), 100.0, cause, Some(&change));
            assert_eq!(evidence, format!("9 of 10. It began 60 s after {other}."));
            assert_eq!(remedy, "Raise `rate`.");
        }
    }

    #[test]
    fn a_change_that_was_taken_back_is_not_named_from_the_next_sample_on() {
        let mut past = Past::default();
        let cause = (Cause::Rejecting, Suspicion::Suspected);
        let mut record = |time, change: &ChangeSample| record(&mut past, time, cause, Some(change));
        let wrong = |ago| change(ago, "zones.api.rate 20r/s -> 20r/m");
        let named = record(100.0, &wrong(1.0));
        assert_eq!(record(101.0, &wrong(2.0)), named);
        let back = change(0.5, "zones.api.rate 20r/m -> 20r/s");
        let without = texts("9 of 10.", "Raise `rate`.");
        assert_eq!(record(102.0, &back), without);
        let found = record(103.0, &change(1.5, "zones.api.rate 20r/m -> 20r/s"));
        assert_eq!(found, without);
    }
}

//! Warnings that began and ended: the history of headlines and their log lines.

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

/// Duration for which an ended warning is shown, in seconds. The plots show as much.
const ENDED_LATELY: f64 = 600.0;

/// The past warnings and the present one, each as it was at its worst.
///
/// A headline that is no warning is not kept: it would push incidents out.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The newest first.
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
    /// Kept warnings, the newest first.
    pub(super) fn history(&self) -> impl Iterator<Item = &PastHeadline> {
        self.history.iter()
    }

    /// Begin of the warning that was recorded last.
    pub(super) fn since(&self, headline: &Headline) -> Option<f64> {
        let is_present = |it: &&PastHeadline| it.until.is_none() && it.is_of(headline);
        let present = self.history.iter().find(is_present);
        present
            .filter(|_| headline.finding.is_warning())
            .map(|it| it.since)
    }

    /// Warning that ended last. `None` while there is another warning, which may hide it.
    pub(super) fn ended(&self, time: f64, headline: &Headline) -> Option<EndedHeadline> {
        if headline.finding.is_warning() {
            return None;
        }
        let ended = self.history.iter().filter_map(|it| Some((it.until?, it)));
        let (at, last) = ended.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        (time - at <= ENDED_LATELY).then(|| EndedHeadline {
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
        for it in self.history.iter_mut().filter(|it| !it.has_ended) {
            if headline.found.contains(&it.headline.finding.topic()) {
                it.until = None;
                continue;
            }
            let until = *it.until.get_or_insert(time);
            if time - until >= MAX_GAP {
                it.has_ended = true;
                changes.push(WarningChange::Ended(it.clone()));
            }
        }
        if headline.finding.is_warning() {
            let is_present = |it: &&mut PastHeadline| !it.has_ended && it.is_of(headline);
            let known = self.history.iter_mut().find(is_present);
            let after = match &known {
                Some(known) => known.after.clone(),
                None => change::describe(headline, change, time),
            };
            let after = after.filter(|it| !change::is_superseded(it, change, time));
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
    fn is_of(&self, headline: &Headline) -> bool {
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

    fn of(cause: Cause, severity: Severity, weight: f64) -> Headline {
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

    /// Cause, begin and end of each warning, the newest first.
    fn history(past: &Past) -> Vec<(&str, f64, Option<f64>)> {
        let each = past.history();
        each.map(|it| (it.headline.finding.cause.label(), it.since, it.until))
            .collect()
    }

    /// Records a headline in a second without a change before it.
    fn note(past: &mut Past, time: f64, headline: &Headline) -> Vec<WarningChange> {
        past.note(time, &mut headline.clone(), None)
    }

    /// Records the headline of each second. Returns the changes of warnings, with their seconds.
    fn play(
        past: &mut Past,
        seconds: Range<u32>,
        headline: impl Fn(u32) -> Headline,
    ) -> Vec<(u32, String)> {
        let mut turns = Vec::new();
        for second in seconds {
            for turn in note(past, f64::from(second), &headline(second)) {
                let text = match turn {
                    WarningChange::Began(headline) => {
                        format!("began {}", headline.finding.cause.label())
                    }
                    WarningChange::Worsened(headline) => {
                        format!("worse {}", headline.finding.cause.label())
                    }
                    WarningChange::Ended(past) => {
                        format!("ended {}", past.headline.finding.cause.label())
                    }
                };
                turns.push((second, text));
            }
        }
        turns
    }

    fn turns<const N: usize>(all: [(u32, &str); N]) -> Vec<(u32, String)> {
        all.map(|(second, text)| (second, text.to_owned())).into()
    }

    #[test]
    fn an_incident_stays_whatever_is_fine_after_it() {
        let mut past = Past::default();
        play(&mut past, 0..30, |_| {
            of(Cause::OriginFailing, Severity::Bad, 1.0)
        });
        play(&mut past, 30..3000, |second| {
            of(
                [Cause::Fine, Cause::Waiting][second as usize % 2],
                Severity::Fine,
                0.0,
            )
        });
        assert_eq!(history(&past), [("origin_failing", 0.0, Some(30.0))]);
        assert_eq!(past.history().next().map(|it| it.count), Some(60));
    }

    #[test]
    fn an_intermittent_warning_begins_and_ends_once() {
        let mut past = Past::default();
        let came = play(&mut past, 0..60, |second| match second % 3 {
            0 => of(Cause::Rejecting, Severity::Warn, 1.0),
            1 => of(Cause::ServerOut, Severity::Warn, 1.0),
            _ => of(Cause::Fine, Severity::Fine, 0.0),
        });
        let expected = turns([(0, "began rejecting"), (1, "began server_out")]);
        assert_eq!(came, expected);
        let ended = play(&mut past, 60..80, |_| of(Cause::Fine, Severity::Fine, 0.0));
        let expected = turns([(68, "ended rejecting"), (69, "ended server_out")]);
        assert_eq!(ended, expected);
        // A later warning is another incident.
        let again = play(&mut past, 100..101, |_| {
            of(Cause::Rejecting, Severity::Warn, 1.0)
        });
        assert_eq!(again, turns([(100, "began rejecting")]));
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
        let under = of(Cause::FileError, Severity::Warn, 1.0);
        let mut over = of(Cause::OriginFailing, Severity::Bad, 1.0);
        over.found.extend(under.found.clone());
        let played = play(&mut past, 0..90, |second| match second {
            0..10 | 40..60 => under.clone(),
            10..40 => over.clone(),
            _ => of(Cause::Fine, Severity::Fine, 0.0),
        });
        let expected = turns([
            (0, "began file_error"),
            (10, "began origin_failing"),
            (50, "ended origin_failing"),
            (70, "ended file_error"),
        ]);
        assert_eq!(played, expected);
        let all = [
            ("origin_failing", 10.0, Some(40.0)),
            ("file_error", 0.0, Some(60.0)),
        ];
        assert_eq!(history(&past), all);
    }

    #[test]
    fn a_warning_that_becomes_bad_is_worse_once() {
        let played = play(&mut Past::default(), 0..20, |second| {
            let severity = Severity::bad_if(second % 4 == 3);
            of(Cause::Rejecting, severity, 1.0)
        });
        let expected = turns([(0, "began rejecting"), (3, "worse rejecting")]);
        assert_eq!(played, expected);
    }

    #[test]
    fn an_entry_is_as_it_was_at_its_worst() {
        let mut past = Past::default();
        for (second, weight) in [(0, 1.0), (1, 9.0), (2, 3.0)] {
            let mut headline = of(Cause::Rejecting, Severity::Warn, weight);
            headline.finding.title = weight.to_string();
            note(&mut past, f64::from(second), &headline);
        }
        let worst = past.history().next();
        assert_eq!(
            worst.map(|it| it.headline.finding.title.as_str()),
            Some("9")
        );
    }

    #[test]
    fn a_warning_says_since_when_and_for_a_while_that_it_has_ended() {
        let mut past = Past::default();
        let (bad, fine) = (
            of(Cause::Rejecting, Severity::Bad, 1.0),
            of(Cause::Fine, Severity::Fine, 0.0),
        );
        let mut reported = |time, headline: &Headline| {
            note(&mut past, time, headline);
            let ended = past.ended(time, headline);
            let ended = ended.map(|it| (it.at, it.title.to_string()));
            (past.since(headline), ended)
        };
        let ended = |at| (None, Some((at, "rejecting".to_owned())));
        assert_eq!(reported(1.0, &fine), (None, None));
        assert_eq!(reported(2.0, &bad), (Some(2.0), None));
        assert_eq!(reported(3.0, &fine), ended(3.0));
        // The same warning again.
        assert_eq!(reported(9.0, &bad), (Some(2.0), None));
        assert_eq!(reported(10.0, &fine), ended(10.0));
        assert_eq!(reported(13.0, &fine), ended(10.0));
        let other = of(Cause::StoreOut, Severity::Bad, 1.0);
        assert_eq!(reported(14.0, &other), (Some(14.0), None));
        assert_eq!(reported(30.0, &other), (Some(14.0), None));
        assert_eq!(reported(50.0, &bad), (Some(50.0), None));
        assert_eq!(reported(60.0, &fine), ended(60.0));
        assert_eq!(reported(700.0, &fine), (None, None));
    }

    #[test]
    fn the_history_is_bounded() {
        let mut past = Past::default();
        for nth in 0..300 {
            let mut headline = of(Cause::Rejecting, Severity::Bad, 1.0);
            headline.finding.about = Some(format!("zone{nth}").as_str().into());
            headline.found = vec![headline.finding.topic()];
            note(&mut past, f64::from(nth) * 20.0, &headline);
        }
        assert_eq!(past.history().count(), MAX_KEPT);
    }

    const BACK: &str = "Take the change back if it was not meant.";

    fn change(ago: f64, what: &str) -> ChangeSample {
        ChangeSample {
            ago,
            what: vec![what.into()],
        }
    }

    /// Records a headline about the zone `api`. Returns its evidence and its remedy.
    fn said(
        past: &mut Past,
        time: f64,
        (cause, suspicion): (Cause, Suspicion),
        change: Option<&ChangeSample>,
    ) -> (String, String) {
        let severity = match cause {
            Cause::Fine => Severity::Fine,
            _ => Severity::Warn,
        };
        let mut headline = of(cause, severity, 1.0);
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
        let mut said = |time, cause, change| said(&mut past, time, cause, change);
        let after = "9 of 10. It began 2 s after zones.api.rate 20r/s -> 20r/m.";
        let prefixed = texts(after, &format!("{BACK} Raise `rate`."));
        assert_eq!(
            said(1.0, (Cause::Rejecting, Suspected), Some(&rate)),
            prefixed
        );
        // The same warning, whatever changes later. A plan is no remedy for a wrong rate.
        let found = said(2.0, (Cause::Rejecting, SuspectedAlone), Some(&later));
        assert_eq!(found, texts(after, BACK));
        for time in [3.0, 20.0] {
            said(time, (Cause::Fine, Named), None);
        }
        let found = said(300.0, (Cause::Rejecting, Suspected), None);
        assert_eq!(found, texts("9 of 10.", "Raise `rate`."));
        // Reverting a rate is no remedy for a full disk.
        let found = said(400.0, (Cause::LogLost, Named), Some(&rate));
        assert_eq!(found, texts(after, "Raise `rate`."));
        let found = said(500.0, (Cause::Paused, Unnamed), Some(&rate));
        assert_eq!(found, texts("9 of 10.", "Raise `rate`."));
    }

    #[test]
    fn a_change_of_something_else_is_not_to_be_taken_back() {
        let others = ["zones.other.rate 1r/s -> 2r/s", "log.access \"a\" -> \"b\""];
        for other in others.into_iter().chain(["origins.app.rate 1r/s -> 2r/s"]) {
            let change = change(60.0, other);
            let cause = (Cause::Rejecting, Suspicion::Suspected);
            let (evidence, remedy) = said(&mut Past::default(), 100.0, cause, Some(&change));
            assert_eq!(evidence, format!("9 of 10. It began 60 s after {other}."));
            assert_eq!(remedy, "Raise `rate`.");
        }
    }

    #[test]
    fn a_change_that_was_taken_back_is_not_named_from_the_next_sample_on() {
        let mut past = Past::default();
        let cause = (Cause::Rejecting, Suspicion::Suspected);
        let mut said = |time, change: &ChangeSample| said(&mut past, time, cause, Some(change));
        let wrong = |ago| change(ago, "zones.api.rate 20r/s -> 20r/m");
        let named = said(100.0, &wrong(1.0));
        assert_eq!(said(101.0, &wrong(2.0)), named);
        let back = change(0.5, "zones.api.rate 20r/m -> 20r/s");
        let without = texts("9 of 10.", "Raise `rate`.");
        assert_eq!(said(102.0, &back), without);
        let found = said(103.0, &change(1.5, "zones.api.rate 20r/m -> 20r/s"));
        assert_eq!(found, without);
    }
}

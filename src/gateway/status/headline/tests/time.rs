//! Tests of the headline from second to second, and of ended warnings.
//!
//! `fine` is a second in which nothing is wrong: 10 requests pass the zone `per_client` to the
//! origin `api`.

use super::*;
use crate::zone::report::sample::OnlyKey;

/// Returns the causes of these warnings.
fn causes(history: &[sample::PastHeadline]) -> Vec<&str> {
    let findings = history.iter().map(|past| &past.headline.finding);
    findings.map(|finding| finding.cause.label()).collect()
}

#[test]
fn the_history_has_each_warning_once_as_it_was_at_its_worst() {
    let mut fed = EditorFixture::new();
    let headlines = fed.headlines.clone();
    assert_eq!(headlines.view().headline.finding.cause.label(), "idle");
    fed.feed(&fine(), 20);
    let mut dead = fine();
    dead.origins[0].healthy = 0;
    fed.feed(&dead, 5);
    fed.feed(&fine(), 20);
    let history = headlines.view().history;
    let only = &history[0];
    assert_eq!((only.since, only.until), (21.0, Some(26.0)));
    assert_eq!(causes(&history), ["origin_failing"]);
    let mut errors = fine();
    errors.origins[0].codes = counts(&[("5xx", 10)]);
    fed.feed(&errors, 10);
    fed.feed(&fine(), 5);
    let last = &headlines.view().history[0].headline.finding;
    assert_eq!(last.title, "Origin api answers 100 % with 5xx", "its worst");
    let now = headlines.view().headline.finding.title;
    assert_ne!(now, last.title, "it decays");
    fed.feed(&fine(), 5);
    assert_eq!(headlines.view().headline.finding.cause.label(), "fine");
    let history = headlines.view().history;
    assert_eq!(causes(&history), ["origin_errors", "origin_failing"]);
    assert_eq!(history[0].count, 100);
}

/// An incident that has ended is not in the present tense for more than five seconds.
#[test]
fn an_ended_incident_is_not_in_the_present_tense() {
    let incidents: [fn(&mut Sample); 6] = [
        |now| now.zones[0].rejected = 60,
        |now| now.zones[0].left = 60,
        |now| now.origins[0].codes = counts(&[("5xx", 10)]),
        |now| now.origins[0].errors = counts(&[("timeout", 10)]),
        |now| now.origins[0].left = 60,
        |now| now.zones[0].new_keys = 200,
    ];
    for incident in incidents {
        let mut fed = EditorFixture::new();
        let mut second = fine();
        incident(&mut second);
        fed.feed(&second, 20);
        let during = fed.headlines.view().headline;
        assert!(during.finding.is_warning(), "{during:?}");
        fed.feed(&fine(), 4);
        let after = fed.headlines.view().headline;
        assert_eq!(after.finding.cause.label(), "fine", "{after:?}");
    }
}

/// A pace is that of the last second, not the mean of a longer time.
#[test]
fn a_rate_covers_only_the_last_seconds() {
    let headlines = Headlines::default();
    let mut editor = Editor::new(headlines.clone());
    for seq in 1..=20 {
        let mut sample = Sample { seq, ..fine() };
        sample.zones[0].rejected = if seq < 17 { 200 } else { 60 };
        editor.edit(&mut sample);
    }
    let headline = headlines.view().headline;
    assert_eq!(headline.finding.title, "per_client rejects 60 a second");
}

#[test]
fn a_cause_that_has_ended_stays_as_long_as_its_rejections_are_counted() {
    type Change = fn(&mut ZoneSample);
    fn only_key(zone: &mut ZoneSample, is_constant: bool) {
        zone.only_key = Some(OnlyKey {
            key: "all".into(),
            is_constant,
            requests: 400,
        });
    }
    let rejecting = |change: Change| {
        let mut second = fine();
        let zone = &mut second.zones[0];
        zone.rejected = 30;
        zone.rejections = counts(&[("burst", 30)]);
        zone.rejected_now = heavy("all", 1.0);
        change(zone);
        second
    };
    let proxy: Change = |zone| zone.untrusted_proxy = Some("10.0.0.7".into());
    let constant_key: Change = |zone| only_key(zone, true);
    // A cause, and the text about it.
    let causes = [
        (proxy, "counts all clients behind 10.0.0.7 as one"),
        (constant_key, "All requests share one key: all"),
    ];
    let one_client = rejecting(|_| {});
    let another_key = rejecting(|zone| only_key(zone, false));
    for (cause, says) in causes {
        // The load ends; the cause is corrected, in a second with rejections; the key is another.
        for ends_with in [&fine(), &one_client, &another_key] {
            let headlines = Headlines::default();
            let mut editor = Editor::new(headlines.clone());
            let mut seconds = vec![rejecting(cause); 5];
            seconds.push(ends_with.clone());
            seconds.extend(vec![fine(); 3]);
            let mut reported = Vec::new();
            for (seq, second) in (100..).zip(seconds) {
                editor.edit(&mut Sample { seq, ..second });
                let finding = headlines.view().headline.finding;
                let (evidence, remedy) = (finding.evidence, finding.remedy);
                reported.push(format!("{} {evidence} {remedy}", finding.title));
            }
            let (calm, during) = reported.split_last().expect("some seconds");
            assert!(calm.contains("Answers come as usual"), "{calm}");
            for reported in during {
                let has = |text| reported.contains(text);
                let is_of_rejections = has("rejected") || has("rejects");
                assert!(!is_of_rejections || !has("One client"), "{reported}");
            }
            let reports = during.iter().filter(|text| text.contains(says)).count();
            assert!(reports >= 6, "{says}: {reported:#?}");
        }
    }
}

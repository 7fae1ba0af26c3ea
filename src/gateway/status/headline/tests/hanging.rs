//! Tests of origins that hang or are slow, and of clients that hold their permits.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use super::*;
use crate::origin::Phase;
use crate::origin::report::sample::{Holder, Unanswered, Usual};

/// Usual times of responses, from 300 seconds.
const USUAL: Usual = Usual {
    p95: 0.04,
    late: 0,
    longest: 0.2,
    span: 300,
};

/// Sets the requests at the origin, the late ones of them, and the time without a response.
fn silent(now: &mut Sample, requests: u64, late: u64, silence: f64, usual: Option<Usual>) {
    now.codes.clear();
    let origin = &mut now.origins[0];
    origin.codes.clear();
    origin.in_flight = requests;
    origin.unanswered = Some(Unanswered {
        requests,
        oldest: silence + 1.0,
        late,
        silence,
    });
    origin.usual = usual;
}

/// Sets the waiters and the rejections of a gate with 20 permits.
fn gated(now: &mut Sample, depth: u64, rejected: u64) {
    now.origins[0].gate = Some(GateSample {
        depth,
        max_in_flight: both(20),
        blocked: [(Plain::from("in_flight"), 1.0)].into(),
        rejected: counts(&[("max_queue", rejected)]),
        ..GateSample::default()
    });
}

/// A client that has both requests in flight.
fn held(now: &mut Sample, phase: Phase) {
    now.origins[0].in_flight = 2;
    now.origins[0].holder = Some(Holder {
        client: "127.0.0.9".into(),
        route: "/upload".into(),
        phase,
        requests: 2,
        of: 2,
        oldest: 12.0,
    });
}

/// Texts that no headline may have while an origin does not respond: advice that harms it, or calm.
const HARMS: &[&str] = &["max_in_flight", "aise", "fine", "No requests are waiting"];

#[test]
fn a_hanging_origin_is_reported_before_the_queue_it_causes() {
    reported("bad origin_hangs api", |now| {
        silent(now, 604, 600, 61.0, Some(USUAL));
    })
    .says("api has answered nothing for 61 s … 604 requests … the oldest for 62 s")
    .says("within 40 ms … what api waits for")
    .not(HARMS);
    // The same with permits: 20 requests are at the origin, and others are rejected.
    reported("bad origin_hangs api", |now| {
        silent(now, 20, 20, 4.0, Some(USUAL));
        gated(now, 100, 30);
    })
    .says("nothing for 4.0 s … 100 requests wait at its gate … rejects")
    .not(HARMS);
    // The first seconds of a gateway: the usual values are not known yet.
    reported("bad origin_hangs api", |now| {
        silent(now, 2, 2, 40.0, None);
        gated(now, 5, 0);
    })
    .says("What is usual for it is not known yet.")
    .not(HARMS);
    // Too few requests to report a hang. But no text advises to raise a limit or says that all is
    // well.
    reported("warn waiting api", |now| {
        let longest = 9.0;
        silent(now, 1, 1, 3.0, Some(Usual { longest, ..USUAL }));
        gated(now, 1, 0);
        let gate = now.origins[0].gate.as_mut().unwrap();
        gate.max_in_flight.now = Some(1);
    })
    .says("has answered nothing for some seconds: find out why")
    .not(HARMS);
    // The first second: the gate is full already, and the last responses were in this second.
    reported("bad rejecting api", |now| {
        silent(now, 20, 0, 0.0, Some(USUAL));
        gated(now, 100, 50);
    })
    .says("leaves requests without an answer: find out why")
    .not(HARMS);
    // A gate with only a rate, before an origin that has not responded yet.
    reported("bad rejecting api", |now| {
        silent(now, 5, 0, 1.0, None);
        gated(now, 10, 50);
        let gate = now.origins[0].gate.as_mut().unwrap();
        gate.max_in_flight = ConfiguredAndEffective::default();
        gate.rate = both(5.0);
        gate.blocked = [(Plain::from("pace"), 1.0)].into();
    })
    .says("leaves requests without an answer: find out why")
    .not(&["aise", "`rate`"]);
    // The first second of an origin that takes half a second: nobody knows what is usual.
    reported("bad rejecting api", |now| {
        silent(now, 2, 0, 0.4, None);
        gated(now, 10, 50);
        now.origins[0].unanswered.as_mut().unwrap().oldest = 0.4;
    })
    .not(&["without an answer"]);
    // Long polls that take as long as before: none is late before a minute.
    reported("none idle", |now| {
        let mut usual = USUAL;
        (usual.p95, usual.longest) = (20.0, 21.0);
        silent(now, 200, 0, 5.0, Some(usual));
    })
    .says("api has answered nothing for 5.0 s")
    .not(&["No requests are waiting"]);
    // One report that takes as long as such reports usually take.
    reported("none idle", |now| silent(now, 1, 1, 8.0, Some(USUAL)))
        .says("api has answered nothing for 8.0 s")
        .not(&["No requests are waiting"]);
}

#[test]
fn an_origin_that_answers_late_or_waits_for_a_client_has_its_headlines() {
    // Some routes hang, and others respond.
    reported("warn origin_hangs api", |now| {
        silent(now, 12, 11, 0.0, Some(USUAL));
        now.codes = counts(&[("2xx", 10)]);
        now.origins[0].codes = counts(&[("2xx", 10)]);
    })
    .says("leaves 11 requests without an answer")
    .not(HARMS);
    // Long polls beside other requests.
    reported("fine fine", |now| {
        silent(now, 12, 11, 0.0, Some(Usual { late: 10, ..USUAL }));
        now.codes = counts(&[("2xx", 10)]);
        now.origins[0].codes = counts(&[("2xx", 10)]);
    });
    reported("warn origin_hangs api", |now| {
        now.origins[0].usual = Some(USUAL);
        now.origins[0].latency.p95 = Some(1.5);
    })
    .says("slower than usual … within 1.5 s, before within 40 ms")
    .not(HARMS);
    // Three times a few milliseconds is not slow.
    reported("fine fine", |now| {
        let p95 = 0.004;
        now.origins[0].usual = Some(Usual { p95, ..USUAL });
        now.origins[0].latency.p95 = Some(0.02);
    });
    reported("bad rejecting api", |now| {
        gated(now, 0, 10);
        held(now, Phase::Upload);
    })
    .says("2 of 2 requests in flight are of 127.0.0.9 on /upload")
    .says("the oldest for 12 s: it uploads slowly … `request_buffer` … api is not at fault")
    .not(&["`max_in_flight`"]);
    reported("warn waiting api", |now| {
        gated(now, 10, 0);
        held(now, Phase::Reader);
    })
    .says("it reads slowly … `response_buffer`")
    .not(&["raise its `max_in_flight`"]);
}

/// Rejections of a hang are counted for three seconds after its end.
#[test]
fn nothing_is_to_be_raised_while_rejections_of_a_hang_are_counted() {
    let mut hanging = fine();
    silent(&mut hanging, 20, 20, 4.0, Some(USUAL));
    gated(&mut hanging, 100, 30);
    let mut back = fine();
    back.origins[0].usual = Some(USUAL);
    gated(&mut back, 0, 0);
    let mut last = back.clone();
    gated(&mut last, 0, 30);
    let mut fed = EditorFixture::new();
    fed.feed(&hanging, 10);
    for second in [&last, &back, &back] {
        fed.feed(second, 1);
        let reported = fed.headlines.view().headline;
        assert_eq!(reported.finding.cause.label(), "rejecting", "{reported:?}");
        assert!(!reported.finding.remedy.contains("aise"), "{reported:?}");
    }
    fed.feed(&back, 1);
    assert_eq!(fed.headlines.view().headline.finding.cause.label(), "fine");
}

#[test]
fn a_change_is_not_to_be_taken_back_while_uploads_hold_the_permits() {
    let mut second = fine();
    gated(&mut second, 0, 10);
    second.change = Some(crate::status::sample::ChangeSample {
        ago: 60.0,
        what: vec!["origins.api.max_in_flight 30 -> 20".into()],
    });
    let remedy = |second: &Sample| {
        let mut fed = EditorFixture::new();
        fed.feed(second, 5);
        fed.headlines.view().headline.finding.remedy
    };
    assert!(remedy(&second).starts_with("Take the change back"));
    held(&mut second, Phase::Upload);
    assert!(remedy(&second).starts_with("Set `request_buffer`"));
}

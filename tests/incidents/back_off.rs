//! Incidents of a slow origin behind a gate that backs off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::clients::{Background, STEADY, get, steady};
use super::driver::{Incident, RULE, Rule, Severity, pauses};
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, now, one_origin};

const USUAL: u64 = 50;
const SLOW: u64 = 3000;
/// Permits grow by a tenth per second: from 2 to 40 in 32 s.
const ALL_BACK_WITHIN: Duration = Duration::from_secs(60);

/// A gate with 40 permits, traffic below its limits, and the response time in milliseconds.
struct Scene {
    gateway: Gateway,
    millis: Arc<AtomicU64>,
    _traffic: Background,
    _origin: Origin,
}

impl Scene {
    /// Starts the scene. `max_queue` bounds the wait of a request.
    fn start(max_queue: usize) -> Self {
        let millis = Arc::new(AtomicU64::new(USUAL));
        let now = Arc::clone(&millis);
        let origin = Origin::answering(move |exchange| {
            thread::sleep(Duration::from_millis(now.load(Ordering::SeqCst)));
            exchange.reply(b"ok")
        });
        let gate = format!(
            "max_in_flight = 40\nmax_queue = {max_queue}\n[origins.app.backoff]\nslow = \"500ms\"\nfloor = \"5%\""
        );
        let gateway = Gateway::start(&one_origin(origin.address, "", &gate));
        let traffic = steady(&gateway, STEADY, |nth| {
            get(format!("/?key=user{}", nth % 20))
        });
        Self {
            gateway,
            millis,
            _traffic: traffic,
            _origin: origin,
        }
    }

    fn take(&self, millis: u64) {
        self.millis.store(millis, Ordering::SeqCst);
    }
}

/// Returns whether a headline reports rejected requests or a slow or failing origin.
fn reports_damage(headline: &Value) -> bool {
    let also = headline["also"].as_array().into_iter().flatten();
    let titles = [&headline["title"], &headline["remedy"]];
    let mut titles = titles.into_iter().chain(also).filter_map(Value::as_str);
    titles.any(|it| {
        ["get 503", "takes", "rejects", "gets its full rate back"]
            .iter()
            .any(|part| it.contains(part))
    })
}

const BACKING_OFF: Rule = Rule {
    cause: Some("backing_off"),
    severity: Severity::Bad,
    about: Some("app"),
    says: &[
        r" % of requests get 503: app takes 3\.",
        r" before\); ",
        " of 40 permits",
    ],
    helps: &["gets its full rate back"],
    ..RULE
};

#[test]
fn a_slow_origin_is_reported_in_red_with_its_damage_until_it_is_fast_again() {
    let scene = Scene::start(20);
    let mut incident = Incident::begin(&scene.gateway, &BACKING_OFF, || scene.take(SLOW));
    let received = incident.reported();
    for also in received["also"].as_array().expect("a list") {
        assert!(!also.as_str().expect("a title").starts_with("Origin app"));
    }
    scene.take(USUAL);
    let back = now();
    let wait = |within: Duration, is_it: &dyn Fn(&Value) -> bool| loop {
        let last = incident.latest();
        if is_it(&last) {
            return;
        }
        let limit = within + pauses(back);
        assert!(back.elapsed() < limit, "{last:#}");
    };
    // The last slow answers end this long after the origin is fast again.
    let slow_answers = Duration::from_millis(SLOW);
    wait(slow_answers + Duration::from_secs(RULE.calm), &|it| {
        let title = it["title"].as_str().expect("a title");
        let grows = "Origin app answers in time again; its gate grows back: ";
        !reports_damage(it) && it["severity"] != "bad" && title.starts_with(grows)
    });
    if day_or_night(false, true) {
        // The gate still lets fewer requests through than configured; the headline says only that.
        wait(ALL_BACK_WITHIN, &|it| {
            assert!(!reports_damage(it), "{it:#}");
            it["cause"] == "fine"
        });
    }
}

/// Permits are restored as far as measured: all of them, or those of an earlier cut.
const GIVEN_BACK: Rule = Rule {
    // It is detected only after responses that take as long with few permits as with many.
    within: 15,
    cause: Some("backing_off"),
    severity: Severity::Bad,
    says: &["fewer at once did not make "],
    helps: &["Find out what the origin waits for"],
    ..RULE
};

#[test]
fn cuts_that_make_no_answer_faster_are_undone_and_reported() {
    // Otherwise clients would disconnect before they are answered, and nothing would be measured.
    let scene = Scene::start(2);
    let mut incident = Incident::begin(&scene.gateway, &GIVEN_BACK, || scene.take(SLOW / 3));
    incident.reported();
    incident.leave();
}

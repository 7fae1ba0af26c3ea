//! An origin that becomes slow, behind a gate that then lets fewer requests through at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::clients::{Background, STEADY, get, steady};
use super::driver::{RULE, Rule, Severity, lasts};
use super::scene::{CALM_WITHIN, SEEN_WITHIN, begin, follows, reported, wait};
use crate::support::night::day_or_night;
use crate::support::operator::json;
use crate::support::{Gateway, Origin, now, one_origin};

const PLACES: usize = 40;
const USUAL: Duration = Duration::from_millis(50);
/// Places grow by a tenth a second: from 2 to 40 in 32 s.
const ALL_BACK_WITHIN: Duration = Duration::from_secs(60);

const SLOW: Duration = Duration::from_secs(3);

/// A gate with [`PLACES`], traffic below its limits, and what makes the origin slow.
struct Scene {
    gateway: Gateway,
    is_slow: Arc<AtomicBool>,
    _traffic: Background,
    _origin: Origin,
}

impl Scene {
    /// `max_queue` bounds how long a request waits. `slow`: how long an answer takes while the origin is slow.
    fn start(max_queue: usize, slow: Duration) -> Self {
        let is_slow = Arc::<AtomicBool>::default();
        let now_slow = Arc::clone(&is_slow);
        let origin = Origin::answering(move |exchange| {
            let is_slow = now_slow.load(Ordering::SeqCst);
            thread::sleep(if is_slow { slow } else { USUAL });
            exchange.reply(b"ok")
        });
        let gateway = Gateway::start(&one_origin(
            origin.address,
            "",
            &format!(
                "max_in_flight = {PLACES}\nmax_queue = {max_queue}\n[origins.app.backoff]\nslow = \"500ms\"\nfloor = \"5%\""
            ),
        ));
        let traffic = steady(&gateway, STEADY, |nth| {
            get(format!("/?key=user{}", nth % 20))
        });
        begin(&gateway);
        Self {
            gateway,
            is_slow,
            _traffic: traffic,
            _origin: origin,
        }
    }

    fn be_slow(&self, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::SeqCst);
    }

    fn headline(&self) -> Value {
        json(&self.gateway, "/api/headline")["headline"].clone()
    }
}

/// Whether it says that requests are rejected, or that the origin is slow or in need.
fn tells_damage(headline: &Value) -> bool {
    let also = headline["also"].as_array().into_iter().flatten();
    let titles = [&headline["title"], &headline["remedy"]];
    let mut titles = titles.into_iter().chain(also).filter_map(Value::as_str);
    titles.any(|it| {
        ["get 503", "takes", "rejects", "gets its full rate back"]
            .iter()
            .any(|part| it.contains(part))
    })
}

#[test]
fn an_origin_that_becomes_slow_is_told_in_red_with_its_damage_and_not_after_it_is_fast_again() {
    let scene = Scene::start(20, SLOW);
    scene.be_slow(true);
    let rule = Rule {
        cause: Some("backing_off"),
        severity: Severity::Bad,
        says: &[
            r" % of requests get 503: app takes 3\.",
            r" before\); ",
            " of 40 places",
        ],
        helps: &["gets its full rate back"],
        ..RULE
    };
    let told = reported(&scene.gateway, &rule);
    assert_eq!(told["about"], "app");
    for also in told["also"].as_array().expect("a list") {
        assert!(!also.as_str().expect("a title").starts_with("Origin app"));
    }
    scene.be_slow(false);
    let back = now();
    let grows_back = |it: &Value| {
        let title = it["title"].as_str().expect("a title");
        title.starts_with("Origin app answers in time again; its gate grows back: ")
    };
    wait(
        back,
        CALM_WITHIN,
        "end of the damage",
        || scene.headline(),
        |it| !tells_damage(it) && it["severity"] != "bad" && grows_back(it),
    );
    if day_or_night(true, false) {
        return;
    }
    // The gate still lets less through than the file says; that is all it says.
    wait(
        back,
        ALL_BACK_WITHIN,
        "all places",
        || scene.headline(),
        |it| {
            assert!(!tells_damage(it), "{it:#}");
            it["cause"] == "fine"
        },
    );
}

#[test]
fn places_that_make_no_answer_faster_are_given_back_and_the_headline_says_so() {
    // Else clients would leave before they have waited and been answered, and no answer would be measured.
    let slow = day_or_night(SLOW / 3, SLOW);
    let scene = Scene::start(2, slow);
    scene.be_slow(true);
    // They are given back as far as they were measured: all, or those of an earlier cut.
    let rule = Rule {
        cause: Some("backing_off"),
        severity: Severity::Bad,
        says: &["fewer at once did not make "],
        helps: &["Find out what the origin waits for"],
        ..RULE
    };
    // It is seen only after answers that take as long with few places as with many.
    let limit = SEEN_WITHIN + 5 * slow;
    wait(
        now(),
        limit,
        "places given back",
        || scene.headline(),
        |it| follows(it, &rule),
    );
    thread::sleep(lasts());
}

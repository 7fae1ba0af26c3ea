//! Tests of RFC 9111, with cases that http-tests/cache-tests checks of a shared cache, and others.

mod accel_expires;
mod age;
mod freshness;
mod stale;
mod vary;

use std::time::Duration;

use super::*;
use crate::collapse::tests::collapse;

/// Sun, 06 Nov 1994 08:49:37 GMT: the instant at which all requests here leave for the origin.
const ASKED: Moment = Moment::from_nanos(784_111_777_000_000_000);
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const MINUTE_LATER: &str = "Sun, 06 Nov 1994 08:50:37 GMT";
const MINUTE_BEFORE: &str = "Sun, 06 Nov 1994 08:48:37 GMT";

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns the verdict on a response with this status and these fields, each as `name: value`.
fn judge_with(collapse: &Collapse, status: u16, lines: &[&str]) -> Verdict {
    judge_after(collapse, status, lines, Duration::ZERO)
}

/// Like [`judge_with`], for a response that arrives `took` after its request.
fn judge_after(collapse: &Collapse, status: u16, lines: &[&str], took: Duration) -> Verdict {
    let fields: Vec<(&[u8], &[u8])> = lines
        .iter()
        .map(|line| line.split_once(':').expect("name: value"))
        .map(|(name, value)| (name.as_bytes(), value.trim().as_bytes()))
        .collect();
    let head = Head {
        status,
        fields: &fields,
        sent: ASKED,
        arrived: ASKED + took,
    };
    head.judge(collapse)
}

/// Returns the verdict on a response with status 200 and these fields.
fn judge(lines: &[&str]) -> Verdict {
    judge_with(&collapse(3600, 0), 200, lines)
}

fn control(value: &str) -> String {
    format!("Cache-Control: {value}")
}

fn terms(lines: &[&str]) -> Terms {
    match judge(lines) {
        Verdict::Shared(terms) => terms,
        other => panic!("{lines:?}: {other:?}"),
    }
}

/// Returns for how many seconds new requests get a response with these fields; 0: it is not shared.
fn fresh_for(lines: &[&str]) -> u64 {
    match judge(lines) {
        Verdict::Shared(terms) => ends(terms, &collapse(3600, 0)).0,
        _ => 0,
    }
}

/// Checks how long answers with one of these values of `Cache-Control` are fresh.
#[track_caller]
fn controls_are_fresh_for(expected: u64, values: &str) {
    for value in values.split('|') {
        assert_eq!(fresh_for(&[&control(value)]), expected, "{value}");
    }
}

/// Returns three times in seconds from the arrival of an answer.
///
/// They are the time for which it is fresh, for which it may be used while it is refreshed, and for
/// which it may be used if the origin fails.
fn ends(terms: Terms, collapse: &Collapse) -> (u64, u64, u64) {
    let windows = terms.windows(collapse, ASKED);
    let ends = [windows.fresh, windows.revalidate, windows.error];
    ends.map(|end| end.since(ASKED).as_secs()).into()
}

#[test]
fn statuses_that_are_cacheable_by_default_are_shared() {
    let shared = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];
    for status in 200..=599 {
        for lines in [
            &[][..],
            &["Cache-Control: max-age=3600"],
            &["Cache-Control: public, max-age=3600"],
            &["Cache-Control: must-understand, max-age=3600"],
            &["Cache-Control: no-store", "Set-Cookie: a=b"],
        ] {
            let found = judge_with(&collapse(1, 0), status, lines);
            let is_cacheable = shared.contains(&status);
            let is_shared = matches!(found, Verdict::Shared(_));
            assert_eq!(
                is_shared,
                is_cacheable && lines.len() < 2,
                "{status} {lines:?}"
            );
            // Of other answers, the next client may get another response, unless the origin failed.
            let is_failure = found == Verdict::Failed;
            assert_eq!(is_failure, !is_cacheable && status >= 500, "{status}");
        }
    }
}

#[test]
fn a_failure_stays_one_whatever_its_fields_say() {
    for lines in [
        &["Cache-Control: no-store"][..],
        &["Set-Cookie: a=b"],
        &["Vary: *"],
        &["Cache-Control: max-age=0"],
    ] {
        let found = judge_with(&collapse(1, 0), 503, lines);
        assert_eq!(found, Verdict::Failed, "{lines:?}");
    }
}

#[test]
fn private_no_store_and_no_cache_are_for_one_request() {
    let values = "private|private, max-age=3600|max-age=10000, no-store|No-StOrE|\
        max-age=10000, No-CaChE|no-cache=\"a\"|no-cache=\"a, b\", max-age=3600|\
        private=\"set-cookie\", max-age=3600|s-maxage=60, private|\
        must-understand, no-store, max-age=3600|public ,\tprivate=\"x-field, max-age\"|\
        x=\"a, b\", no-store|x=\"a\\\", b\", no-store|x=\"without an end, no-store|\
        x=\u{e9}, no-store|,,no-cache,,|no-store=1";
    for line in values.split('|').map(control) {
        assert_eq!(judge(&[&line]), Verdict::Unshareable, "{line}");
        let late = ["Cache-Control: max-age=60", "Expires: 0", &line];
        assert_eq!(judge(&late), Verdict::Unshareable, "{line}");
    }
    let several = [
        "CACHE-control: max-age=60",
        "X: y",
        "Cache-Control: private",
    ];
    assert_eq!(judge(&several), Verdict::Unshareable);
    let values = "public, immutable, no-transform, x=\"no-store, private\"|no-storex, xprivate|";
    for line in values.split('|').map(control) {
        assert!(matches!(judge(&[&line]), Verdict::Shared(_)), "{line}");
    }
}

#[test]
fn an_answer_that_sets_a_cookie_or_has_no_end_is_for_one_request() {
    for line in [
        "Set-Cookie: a=b",
        "set-cookie: a=b; Path=/",
        "SET-COOKIE: ",
        "Content-Type: text/event-stream",
        "content-type: Multipart/X-Mixed-Replace ;boundary=x",
        "Content-Type: application/stream+json",
    ] {
        let public = ["Cache-Control: public, max-age=60", line];
        assert_eq!(judge(&public), Verdict::Unshareable, "{line}");
    }
}

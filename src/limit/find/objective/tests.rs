//! Tests of objectives, such as `p95<400ms, errors<0.5%`: conditions on the responses of an origin.

use super::*;
use crate::fixtures::ms;
use ResponseVerdict::{Bad, Good, Nothing, TurnedBad};

fn objective(text: &str) -> Objective {
    text.parse().unwrap()
}

#[test]
fn reads_objectives_and_prints_them() {
    for (text, printed) in [
        ("p95<400ms, errors<0.5%", "p95<400ms, errors<0.5%"),
        (" p99.9 head < 2s ", "p99.9<2s"),
        (
            "p50 whole<1m,4xx<2%,5xx<0.1%",
            "p50 whole<1m, 4xx<2%, 5xx<0.1%",
        ),
        ("p95<400ms,p95 whole<2s", "p95<400ms, p95 whole<2s"),
        ("P95 < 150 ms", "p95<150ms"),
        (
            "P99.9 Whole < 2  s, ERRORS < 0.5 %",
            "p99.9 whole<2s, errors<0.5%",
        ),
    ] {
        assert_eq!(objective(text).to_string(), printed, "{text}");
        assert_eq!(objective(printed), objective(text));
    }
}

#[test]
fn says_which_condition_is_wrong_and_what_to_write() {
    // Objective, and a part of the message that it gets.
    for (text, says) in [
        ("", "at least one condition"),
        ("p95", "has no bound"),
        ("p95=400ms", "has no bound"),
        ("mean<400ms", "no known figure"),
        ("p<400ms", "no known figure"),
        ("p95 body<400ms", "no known figure"),
        ("p95 head whole<400ms", "no known figure"),
        ("mean>150ms", "no known figure"),
        ("p 95<150ms", "no known figure"),
        ("p0<1s", "no possible percentile"),
        ("p100<1s", "no possible percentile"),
        ("p99.999<1s", "no possible percentile"),
        ("p95<0.4s", "no time after <"),
        ("p95<=150", "no time after <"),
        ("p95<150 MS", "no time after <"),
        ("p95<1 50ms", "no time after <"),
        ("p95<0", "above 0 and at most 10m"),
        ("p95<11m", "above 0 and at most 10m"),
        ("errors<0%", "no share after <"),
        ("errors<100%", "no share after <"),
        ("errors<1", "no share after <"),
        ("p95<=150ms", "write < in place of <=: p95<150ms"),
        ("p95 ≤ 150ms", "in place of <=: p95 < 150ms"),
        (
            "p95>150ms",
            "an objective is an upper bound: write p95<150ms",
        ),
        ("errors >= 1%", "write errors < 1%"),
        ("p95<150ms;errors<1%", "write a comma between conditions"),
        ("p95<150ms errors<1%", "write a comma"),
        ("p95<=150ms;errors>1%", "write a comma"),
        ("p95<150ms;", "write a comma"),
    ] {
        let error = text.parse::<Objective>().unwrap_err().to_string();
        assert!(error.contains(text) && error.contains(says), "{error}");
    }
    // Objective, the condition that the message names, and a part of the message.
    for (text, condition, says) in [
        (" ", "", "at least one condition"),
        ("p95<400ms,", "", "has no bound"),
        ("errors<1%, p95<400", "p95<400", "no time after <"),
        ("p95<1s, p95 head<2s", "p95 head<2s", "has a bound already"),
        (
            "p1<1s,p2<1s,p3<1s,p4<1s,p5<1s,p6<1s,p7<1s,p8<1s,p9<1s",
            "p9<1s",
            "at most 8",
        ),
    ] {
        let error = text.parse::<Objective>().unwrap_err().to_string();
        assert!(error.contains(condition) && error.contains(says), "{error}");
    }
}

#[test]
fn an_error_is_no_fast_answer() {
    let all_kinds = objective("p95<400ms, p95 whole<2s, errors<1%, 4xx<5%");
    let head = |millis, status| {
        let took = ms(millis);
        AnswerEvent::Head { took, status }
    };
    let whole = |millis| {
        let (took, status) = (ms(millis), 200);
        AnswerEvent::Whole { took, status }
    };
    let failed = |had_head| AnswerEvent::Failed { had_head };
    let left = |had_head, millis| {
        let took = ms(millis);
        AnswerEvent::Abandoned { had_head, took }
    };
    // Event, and its verdict by each of the four conditions.
    for (event, verdicts) in [
        (head(399, 200), [Good, Nothing, Good, Good]),
        (head(400, 200), [Bad, Nothing, Good, Good]),
        (head(1, 503), [Bad, Nothing, Bad, Good]),
        (head(1, 404), [Good, Nothing, Good, Bad]),
        (whole(1999), [Nothing, Good, Nothing, Nothing]),
        (whole(2000), [Nothing, Bad, Nothing, Nothing]),
        (failed(false), [Bad, Bad, Bad, Good]),
        (failed(true), [Nothing, Bad, TurnedBad, Nothing]),
        (left(false, 500), [Bad, Nothing, Nothing, Nothing]),
        (left(true, 3000), [Nothing, Bad, Nothing, Nothing]),
    ] {
        let found = all_kinds
            .conditions()
            .iter()
            .map(|condition| condition.verdict(event));
        assert!(found.eq(verdicts), "{event:?}");
    }
    assert_eq!(all_kinds.longest(), ms(2000));
    assert_eq!(objective("errors<1%").longest(), MAX_ANSWER);
}

use std::time::Duration;

use super::*;
use crate::limit::find::{
    AbortReason, Figure, FigureReading, FindReport, Found, Level, Measured, Objective, Outcome,
    Purpose, StepRecord, StepVerdict,
};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn objective() -> Objective {
    "p95<400ms, errors<0.5%".parse().unwrap()
}

fn rate(text: &str) -> Level {
    Level::Rate(text.parse().unwrap())
}

fn step(level: Level, verdict: StepVerdict, p95: u64, errors: f64) -> StepRecord {
    let conditions = objective().conditions().to_vec();
    let values = [Figure::Time(MS(p95)), Figure::Share(errors)];
    let figures = conditions.into_iter().zip(values);
    let figures = figures.map(|(condition, value)| Measured {
        condition,
        value: Some(value),
    });
    StepRecord {
        level,
        purpose: Purpose::Climb,
        verdict,
        broken: None,
        figures: figures.collect(),
        watched: Vec::new(),
        waited: Some(MS(310)),
        at_once: 18,
        answers: 1000,
        took: Duration::from_secs(20),
        back_to: None,
    }
}

fn report(outcome: Outcome) -> FindReport {
    FindReport {
        outcomes: vec![outcome],
        steps: vec![step(rate("50r/s"), StepVerdict::Good, 81, 0.0)],
        requests: 41_200,
        took: Duration::from_secs(541),
    }
}

fn found() -> Found {
    Found {
        level: rate("212r/s"),
        low: rate("202r/s"),
        high: rate("223r/s"),
        at_once: 18,
        at_edge: Some(24),
        is_upper_bound: false,
    }
}

#[test]
fn a_step_is_one_line() {
    let good = step(rate("50r/s"), StepVerdict::Good, 81, 0.0);
    let mut broke = step(rate("223r/s"), StepVerdict::Broke, 1620, 0.002);
    broke.took = Duration::from_secs(3);
    broke.broken = Some("p95<400ms".to_owned());
    broke.back_to = Some(rate("201r/s"));
    let mut back = step(Level::Places(3), StepVerdict::Broke, 53, 0.0);
    back.back_to = Some(Level::Places(2));
    let mut places = step(Level::Places(24), StepVerdict::Good, 190, 0.0001);
    places.purpose = Purpose::Confirm;
    places.took = Duration::from_secs(60);
    let mut nothing = step(rate("52.5r/s"), StepVerdict::Idle, 1, 0.0);
    nothing.figures[0].value = None;
    nothing.waited = None;
    let mut watched = step(rate("50r/s"), StepVerdict::Good, 81, 0.0);
    watched.watched = vec![FigureReading {
        bound: "node_load1<8".parse().unwrap(),
        worst: Some(7.314),
    }];
    let all = [good, broke, back, places, nothing, watched];
    let lines: Vec<String> = all.iter().map(line).collect();
    let expected = [
        "  50r/s  ok     p95  81 ms  errors 0 %     waited  310 ms   20 s",
        " 223r/s  broke  p95 1.62 s  errors 0.2 %                     3 s  p95<400ms broke, back to 201r/s at once",
        "3 at once  broke  p95  53 ms  errors 0 %                      20 s  at once back to 2 places",
        "24 at once  ok     p95 190 ms  errors < 0.1 %  waited  310 ms   60 s  confirmed",
        "52.5r/s  idle   p95    -    errors 0 %                      20 s  too few requests waited",
        "  50r/s  ok     p95  81 ms  errors 0 %     node_load1 7.31    waited  310 ms   20 s",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn what_was_found_is_lines_for_the_file() {
    let objective = objective();
    let facts = Facts {
        origin: "app",
        objective: &objective,
        when: "2026-12-01 14:20",
    };
    let text = fragment(&facts, &report(Outcome::Found(found())));
    assert_eq!(
        text,
        "\
[origins.app]
rate = \"212r/s\"          # 202r/s to 223r/s, 2026-12-01 14:20, 9 minutes, 41,200 requests
max_in_flight = 24       # the origin had 18 at once here, 24 at the edge
[origins.app.backoff]
slow = \"400ms\"
"
    );
    let parsed: toml::Table = text.parse().unwrap();
    assert_eq!(
        parsed["origins"]["app"]["max_in_flight"].as_integer(),
        Some(24)
    );
    let odd = Facts {
        origin: "a.b \"c\"",
        ..facts
    };
    let parsed: toml::Table = fragment(&odd, &report(Outcome::Found(found())))
        .parse()
        .unwrap();
    assert!(parsed["origins"]["a.b \"c\""].is_table());
    let places = Found {
        level: Level::Places(12),
        low: Level::Places(11),
        high: Level::Places(13),
        ..found()
    };
    let mut both = report(Outcome::Found(found()));
    both.outcomes.push(Outcome::Found(places));
    let text = fragment(&facts, &both);
    assert!(
        text.contains("rate = \"212r/s\"") && text.contains("max_in_flight = 12 "),
        "{text}"
    );
    assert_eq!(
        fragment(&facts, &report(Outcome::AtLeast(rate("180r/s")))),
        ""
    );
}

#[test]
fn an_upper_bound_that_held_is_at_least() {
    let objective = objective();
    let facts = Facts {
        origin: "app",
        objective: &objective,
        when: "2026-12-01 14:20",
    };
    let top = Found {
        is_upper_bound: true,
        at_edge: None,
        ..found()
    };
    let places = Found {
        level: Level::Places(30),
        ..top
    };
    let mut both = report(Outcome::Found(top));
    both.outcomes.push(Outcome::Found(places));
    let measured = "at least: the upper bound held, 2026-12-01 14:20, 9 minutes, 41,200 requests";
    let text = fragment(&facts, &both);
    assert!(
        text.contains(&format!("rate = \"212r/s\"          # {measured}\n")),
        "{text}"
    );
    assert!(
        text.contains(&format!("max_in_flight = 30       # {measured}\n")),
        "{text}"
    );
    assert!(!text.contains(" to "), "{text}");
}

#[test]
fn a_conclusion_says_what_holds_and_what_helps() {
    let say = |outcome| conclusion(&outcome, &objective());
    assert_eq!(
        say(Outcome::Found(found())),
        "212r/s keeps p95<400ms, errors<0.5%; the end of the origin is between 202r/s and 223r/s"
    );
    assert_eq!(
        say(Outcome::AtLeast(rate("180r/s"))),
        "at least 180r/s; nobody asked for more"
    );
    let held_back = |level, by| say(Outcome::HeldBack { level, by });
    assert_eq!(
        held_back(rate("76r/s"), Some(Level::Places(4))),
        "at least 76r/s; max_in_flight = 4 held requests back before the pace did: raise it, or \
         find both"
    );
    assert_eq!(
        held_back(Level::Places(5), Some(rate("20r/s"))),
        "at least 5 at once; rate = 20r/s held requests back before max_in_flight did: raise it, \
         or find both"
    );
    assert_eq!(
        say(Outcome::Unknown(rate("100r/s"))),
        "nothing is known: nobody asked for enough at 100r/s"
    );
    assert_eq!(
        say(Outcome::Aborted(
            AbortReason::FileChanged,
            Some(rate("180r/s"))
        )),
        "ended: the configuration file changed; start again; 180r/s held before"
    );
    let top = Found {
        is_upper_bound: true,
        ..found()
    };
    assert!(say(Outcome::Found(top)).contains("may take more"));
}

//! Tests of the text, the lines for the file, and the JSON of experiments.

use std::num::NonZeroUsize;
use std::time::Duration;

use limit::find::{
    AbortReason, Figure, FindReport, Found, HeldBack, Level, Measured, Objective, Outcome, Purpose,
    StepRecord, StepVerdict,
};

use super::*;

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
        hung: false,
        figures: figures.collect(),
        waited: Some(MS(310)),
        at_once: 18,
        answers: 1000,
        took: Duration::from_secs(20),
        back_to: None,
    }
}

fn report(outcome: Outcome) -> FindReport {
    FindReport {
        outcome: Some(outcome),
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
    let mut back = step(Level::Permits(3), StepVerdict::Broke, 53, 0.0);
    back.back_to = Some(Level::Permits(2));
    let mut permits = step(Level::Permits(24), StepVerdict::Good, 190, 0.0001);
    permits.purpose = Purpose::Confirm;
    permits.took = Duration::from_secs(60);
    let mut nothing = step(rate("52.5r/s"), StepVerdict::Idle, 1, 0.0);
    nothing.figures[0].value = None;
    nothing.waited = None;
    let mut recovered = step(rate("50r/s"), StepVerdict::Good, 81, 0.0);
    recovered.purpose = Purpose::Recover;
    let mut late = step(rate("50r/s"), StepVerdict::Good, 811, 0.0);
    late.purpose = Purpose::Recover;
    let all = [good, broke, back, permits, nothing, recovered, late];
    let lines: Vec<String> = all.iter().map(line).collect();
    let expected = [
        "  50r/s  ok     p95  81 ms  errors 0 %     waited  310 ms   20 s",
        " 223r/s  broke  p95 1.62 s  errors 0.2 %                     3 s  p95<400ms broke, back to 201r/s at once",
        "3 at once  broke  p95  53 ms  errors 0 %                      20 s  at once back to 2 permits",
        "24 at once  ok     p95 190 ms  errors < 0.1 %  waited  310 ms   60 s  confirmed",
        "52.5r/s  idle   p95    -    errors 0 %                      20 s  too few requests waited",
        "  50r/s  ok     p95  81 ms  errors 0 %     waited  310 ms   20 s  recovered",
        "  50r/s  ok     p95 811 ms  errors 0 %     waited  310 ms   20 s  recovered: its last 5 s were good",
    ];
    assert_eq!(lines, expected);
}

/// Returns the lines for a file with these settings, after an experiment at `origin`.
fn fragment_for(origin: &str, file: ConfiguredLimits, found: Found) -> String {
    let facts = Facts {
        origin,
        file,
        objective: &objective(),
        when: "2026-12-01 14:20",
    };
    fragment(&facts, &report(Outcome::Found(found)))
}

/// A result of which the upper bound held.
fn found_upper_bound() -> Found {
    Found {
        is_upper_bound: true,
        at_edge: None,
        ..found()
    }
}

#[test]
fn the_result_is_written_as_lines_that_name_replaced_settings() {
    let file = ConfiguredLimits {
        rate: Some("40r/s".parse().unwrap()),
        max_in_flight: NonZeroUsize::new(64),
        backoff: Some(Some(Duration::from_secs(1))),
    };
    assert_eq!(
        fragment_for("app", file, found()),
        "\
# In [origins.app] of the configuration file, replace rate = \"40r/s\":
rate = \"212r/s\"          # 202r/s to 223r/s, 2026-12-01 14:20, 9 minutes, 41,200 requests
# In [origins.app] of the configuration file, replace max_in_flight = 64:
max_in_flight = 18       # the origin had 18 at once at this rate, 24 where it broke
# In [origins.app.backoff] of the configuration file, replace slow = \"1s\":
slow = \"400ms\"           # back-off: fewer at once while more than 10 % of answers take longer than the objective allows
"
    );
    let with_backoff = |slow| {
        let backoff = Some(slow);
        let file = ConfiguredLimits {
            backoff,
            ..ConfiguredLimits::default()
        };
        fragment_for("app", file, found())
    };
    let text = with_backoff(None);
    for part in [
        "[origins.app] of the configuration file, add rate",
        "add max_in_flight",
        "# In [origins.app.backoff] of the configuration file, add slow:\nslow = ",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let text = with_backoff(Some(MS(400)));
    assert!(!text.contains("backoff"), "{text}");
    let facts = Facts {
        origin: "app",
        file: ConfiguredLimits::default(),
        objective: &objective(),
        when: "",
    };
    let nothing = report(Outcome::AtLeast(rate("180r/s")));
    assert_eq!(fragment(&facts, &nothing), "");
}

#[test]
fn a_table_that_the_file_does_not_have_is_written_whole() {
    let text = fragment_for("app", ConfiguredLimits::default(), found());
    let table =
        "# At the end of the configuration file, add:\n[origins.app.backoff]\nslow = \"400ms\" ";
    assert!(text.contains(table), "{text}");
    let text = fragment_for("a.b", ConfiguredLimits::default(), found());
    let parsed: toml::Table = text.parse().unwrap();
    let slow = &parsed["origins"]["a.b"]["backoff"]["slow"];
    assert_eq!(slow.as_str(), Some("400ms"));
}

#[test]
fn a_number_in_flight_that_broke_the_objective_is_not_advised() {
    let advised = |at_once, at_edge| {
        let found = Found {
            at_once,
            at_edge,
            ..found()
        };
        let text = fragment_for("app", ConfiguredLimits::default(), found);
        let line = text.lines().find(|it| it.starts_with("max_in_flight"));
        // The line is `max_in_flight = 18`, and a comment.
        let value = line.and_then(|it| it.split_whitespace().nth(2));
        value.map(|it| it.parse::<u32>().unwrap())
    };
    assert_eq!(advised(18, Some(60)), Some(18));
    assert_eq!(advised(0, Some(60)), Some(1));
    for (at_once, at_edge) in [(60, Some(60)), (70, Some(60)), (18, None)] {
        assert_eq!(advised(at_once, at_edge), None, "{at_once} {at_edge:?}");
    }
    let permits = Found {
        level: Level::Permits(12),
        low: Level::Permits(11),
        high: Level::Permits(13),
        ..found()
    };
    let text = fragment_for("app", ConfiguredLimits::default(), permits);
    let has_only_permits = text.contains("max_in_flight = 12 ") && !text.contains("rate = ");
    assert!(has_only_permits, "{text}");
}

#[test]
fn an_upper_bound_that_held_is_at_least_and_lowers_nothing() {
    for (rate, is_advised) in [("300r/s", false), ("212r/s", true), ("100r/s", true)] {
        let file = ConfiguredLimits {
            rate: Some(rate.parse().unwrap()),
            ..ConfiguredLimits::default()
        };
        let text = fragment_for("app", file, found_upper_bound());
        assert_eq!(text.contains("rate = "), is_advised, "{rate}: {text}");
        // These lines depend on the settings of the file, not on the result.
        let text = fragment_for("app", file, found());
        assert!(text.contains("rate = "), "{rate}: {text}");
    }
    let level = Level::Permits(30);
    let measured = "at least: the upper bound held, 2026-12-01 14:20, 9 minutes, 41,200 requests";
    for (found, begin) in [
        (found_upper_bound(), "rate = \"212r/s\"          # "),
        (
            Found {
                level,
                ..found_upper_bound()
            },
            "max_in_flight = 30       # ",
        ),
    ] {
        let text = fragment_for("app", ConfiguredLimits::default(), found);
        let line = format!("{begin}{measured}\n");
        assert!(text.contains(&line) && !text.contains(" to "), "{text}");
    }
}

#[test]
fn a_conclusion_names_the_level_that_holds_and_the_remedy() {
    let say = |outcome| conclusion(&outcome, &objective());
    let held_back = |level, by| Outcome::HeldBack(HeldBack { level, by });
    let changed = AbortReason::FileChanged;
    for (outcome, expected) in [
        (
            Outcome::Found(found()),
            "212r/s keeps p95<400ms, errors<0.5%; the end of the origin is between 202r/s and 223r/s",
        ),
        (
            Outcome::AtLeast(rate("180r/s")),
            "at least 180r/s; nobody asked for more",
        ),
        (
            held_back(rate("76r/s"), Some(Level::Permits(4))),
            "at least 76r/s; max_in_flight = 4 held requests back before the pace did: raise it",
        ),
        (
            held_back(Level::Permits(5), Some(rate("20r/s"))),
            "at least 5 at once; rate = 20r/s held requests back before max_in_flight did: raise it",
        ),
        (
            Outcome::Unknown(rate("100r/s")),
            "nothing is known: nobody asked for enough at 100r/s",
        ),
        (
            Outcome::Aborted(changed, Some(rate("180r/s"))),
            "ended: the configuration file changed; start again; 180r/s held before",
        ),
    ] {
        assert_eq!(say(outcome), expected);
    }
    assert!(say(Outcome::Found(found_upper_bound())).contains("may take more"));
}

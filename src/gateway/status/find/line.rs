//! Lines of text for the steps of an experiment of `drip find`.
//!
//! A step runs an origin at one *level*, its rate or its number of permits, and measures whether
//! each condition of the *objective* is kept.

use std::time::Duration;

use limit::find::{Figure, Level, Measured, Purpose, StepRecord, StepVerdict};

/// Formats a step: `  50r/s  ok     p95  81 ms  errors 0 %   waited  310 ms   20 s`.
pub fn line(step: &StepRecord) -> String {
    let verdict = match step.verdict {
        StepVerdict::Good => "ok",
        StepVerdict::Broke => "broke",
        StepVerdict::Idle | StepVerdict::HeldBack => "idle",
        StepVerdict::Undecided => "ended",
    };
    let figures: Vec<String> = step.figures.iter().map(figure).collect();
    let waited = step.waited.filter(|_| step.verdict != StepVerdict::Broke);
    let waited = waited.map_or(String::new(), |wait| format!("waited {:>7}", latency(wait)));
    let level = level(step.level);
    let took = duration(step.took);
    let line = format!(
        "{level:>7}  {verdict:<5}  {}  {waited:<14}  {took:>5}  {}",
        figures.join("  "),
        remark(step)
    );
    line.trim_end().to_owned()
}

/// Formats a level for people: `212r/s`, `24 at once`.
pub(super) fn level(level: Level) -> String {
    match level {
        Level::Rate(rate) => rate.to_string(),
        Level::Permits(permits) => format!("{permits} at once"),
    }
}

/// Formats the measured value of a condition.
fn figure(measured: &Measured) -> String {
    let name = measured.condition.name();
    match measured.value {
        Some(Figure::Time(time)) => format!("{name} {:>6}", latency(time)),
        Some(Figure::Share(share)) => format!("{name} {:<6}", percent(share)),
        None => format!("{name}    -  "),
    }
}

/// Formats the reason for the verdict of a step.
fn remark(step: &StepRecord) -> String {
    let broken = if step.hung {
        Some("the origin does not answer".to_owned())
    } else {
        (step.broken.as_ref()).map(|it| format!("{it} broke"))
    };
    match (step.purpose, step.verdict) {
        (_, StepVerdict::Broke) => {
            let return_level = step.back_to.map(describe_return);
            let parts: Vec<_> = broken.into_iter().chain(return_level).collect();
            parts.join(", ")
        }
        // The whole step was not good, so its end was.
        (Purpose::Recover, StepVerdict::Good) if step.figures.iter().any(Measured::is_beyond) => {
            "recovered: its last 5 s were good".to_owned()
        }
        (Purpose::Recover, StepVerdict::Good) => "recovered".to_owned(),
        (Purpose::Confirm, StepVerdict::Good) => "confirmed".to_owned(),
        (_, StepVerdict::Idle) => "too few requests waited".to_owned(),
        (_, StepVerdict::HeldBack) => match step.level {
            Level::Rate(_) => "max_in_flight held requests back".to_owned(),
            Level::Permits(_) => "rate held requests back".to_owned(),
        },
        _ => String::new(),
    }
}

/// Formats the level that the search returns to.
fn describe_return(to: Level) -> String {
    match to {
        Level::Rate(rate) => format!("back to {rate} at once"),
        Level::Permits(permits) => format!("at once back to {permits} permits"),
    }
}

/// Formats a latency: `81 ms`, `1.25 s`, `0.4 ms`.
fn latency(latency: Duration) -> String {
    let seconds = latency.as_secs_f64();
    if seconds >= 10.0 {
        format!("{seconds:.0} s")
    } else if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 0.001 || seconds == 0.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{:.1} ms", seconds * 1e3)
    }
}

/// Formats a share: `0 %`, `0.2 %`, `12 %`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 10.0 {
        format!("{percent:.0} %")
    } else if percent >= 0.1 {
        format!("{percent:.1} %")
    } else {
        "< 0.1 %".to_owned()
    }
}

/// Formats a duration: `20 s`, `9 minutes`.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round();
    if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} minutes", seconds / 60.0)
    }
}

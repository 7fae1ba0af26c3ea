use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use super::crowd::VisitorCrowd;
use super::run::RoomResult;
use super::tally::PlaceTime;
use super::visit::SimulatedVisit;
use crate::limit::{Moment, RoomLimits, show_duration};
use crate::tools::shown::{percent, share};
use crate::tools::simulate::rows::write_span;

/// A file, and the result of the run under it.
pub(super) struct Column<'a> {
    /// The name of the file.
    pub(super) file: &'a str,
    /// The name of the origin.
    pub(super) origin: &'a str,
    pub(super) limits: RoomLimits,
    pub(super) result: RoomResult,
}

/// What became of a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VisitOutcome {
    /// It came in without a wait.
    WalkedIn,
    /// It waited and came in.
    Came,
    /// It left while it waited.
    NeverBack,
    /// It waits at the end of the run.
    Waits,
}

impl VisitOutcome {
    fn of(visit: &SimulatedVisit) -> Self {
        match (visit.entered, visit.called) {
            (Some(_), None) => Self::WalkedIn,
            (Some(_), Some(_)) => Self::Came,
            (None, _) if !visit.returns => Self::NeverBack,
            (None, _) => Self::Waits,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::WalkedIn => "walked_in",
            Self::Came => "came",
            Self::NeverBack => "never_back",
            Self::Waits => "waits",
        }
    }
}

impl Column<'_> {
    fn count(&self, outcome: VisitOutcome) -> String {
        let visits = &self.result.visits;
        let is_one = |visit: &&SimulatedVisit| VisitOutcome::of(visit) == outcome;
        let count = visits.iter().filter(is_one).count();
        of(count as u64, visits.len() as u64)
    }

    fn places(&self, part: impl Fn(&PlaceTime) -> f64) -> String {
        let places = &self.result.tally.places;
        if places.all > 0.0 {
            percent((part(places) / places.all).clamp(0.0, 1.0))
        } else {
            "-".to_owned()
        }
    }
}

/// A summary of the runs under each file.
pub(super) fn summary(crowd: &VisitorCrowd, columns: &[Column<'_>]) -> String {
    let mut text = title(crowd, columns);
    let longest = columns.iter().map(|column| column.file.chars().count());
    let wide = longest.max().unwrap_or_default().max(20) + 1;
    // Writing to a String cannot fail.
    let mut line = |what: &str, of: &dyn Fn(&Column<'_>) -> String| {
        let _ = write!(text, "{what:<38}");
        for column in columns {
            let _ = write!(text, "{:>wide$}", of(column));
        }
        text.push('\n');
    };
    line("", &|it| it.file.to_owned());
    line("sessions", &|it| {
        let sessions = it.limits.sessions;
        sessions.map_or_else(|| "not bounded".to_owned(), |it| it.to_string())
    });
    line("admit", &|it| match it.limits.admit {
        rate if rate.is_unlimited() => "none".to_owned(),
        rate => rate.to_string(),
    });
    line("idle, claim", &|it| {
        let [idle, claim] = [it.limits.idle, it.limits.claim].map(show_duration);
        format!("{idle}, {claim}")
    });
    line("visitors", &|it| it.result.visits.len().to_string());
    line("let in at once", &|it| it.count(VisitOutcome::WalkedIn));
    line("let in after a wait", &|it| it.count(VisitOutcome::Came));
    line("never came back", &|it| it.count(VisitOutcome::NeverBack));
    if columns.iter().any(|it| it.result.tally.still_waiting() > 0) {
        line("waiting after a day", &|it| it.count(VisitOutcome::Waits));
    }
    line("waiting at most", &|it| {
        it.result.tally.max_waiting.to_string()
    });
    line("wait of those who waited, p50", &|it| wait(it, 0.5));
    line("p95", &|it| wait(it, 0.95));
    line("longest", &|it| wait(it, 1.0));
    line("told at first, right within 25 %", &|it| {
        it.result.tally.told_right().map_or("-".to_owned(), percent)
    });
    line("let in a second", &|it| {
        let pace = it.result.tally.admissions();
        pace.map_or("-".to_owned(), |it| format!("{it:.1}"))
    });
    line("the last one is in after", &|it| {
        it.result
            .tally
            .all_in_after()
            .map_or("-".to_owned(), seconds)
    });
    line("turns lost", &|it| it.result.tally.counts.lost.to_string());
    if columns.iter().any(|it| it.result.tally.late > 0) {
        line("  by visitors who came back", &|it| {
            it.result.tally.late.to_string()
        });
    }
    line("polls a second at most", &|it| {
        it.result.tally.max_polls().to_string()
    });
    if columns.iter().any(|it| it.result.tally.places.all > 0.0) {
        line("places while somebody waits: used", &|it| {
            it.places(|places| places.used)
        });
        line("  idle after the last request", &|it| {
            it.places(|places| places.idle)
        });
        line("  kept for those who are called", &|it| {
            it.places(|places| places.kept)
        });
        line("  free", &|it| {
            it.places(|places| places.all - places.used - places.idle - places.kept)
        });
    }
    text
}

fn title(crowd: &VisitorCrowd, columns: &[Column<'_>]) -> String {
    let mut origins: Vec<_> = columns.iter().map(|column| column.origin).collect();
    origins.dedup();
    let when = match crowd.within {
        Duration::ZERO => "at once".to_owned(),
        within => format!("within {}", show_duration(within)),
    };
    let early = crowd.early.map(show_duration);
    let early = early.map_or_else(String::new, |early| {
        format!(", from {early} before it opens")
    });
    let leave = match crowd.leave {
        0.0 => String::new(),
        leave => format!("; of those who wait, {} never come back", percent(leave)),
    };
    format!(
        "{} visitors come to {} {when}{early}\neach is inside for {} on average{leave}\n\n",
        crowd.visitors,
        origins.join(" and "),
        show_duration(crowd.stay),
    )
}

fn wait(column: &Column<'_>, part: f64) -> String {
    let waits = &column.result.tally.waits;
    if waits.count() == 0 {
        return "-".to_owned();
    }
    seconds(Duration::from_nanos(waits.at(part)))
}

fn seconds(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

fn of(part: u64, whole: u64) -> String {
    format!("{part} ({:.1} %)", share(part, whole) * 100.0)
}

/// Writes a line of CSV for each visitor to standard output.
pub(super) fn rows(visits: &[SimulatedVisit]) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    writeln!(out, "time,number,outcome,told_wait,true_wait,entered,left")?;
    for visit in visits {
        let outcome = VisitOutcome::of(visit).label();
        write_span(&mut out, since_begin(visit.came))?;
        write!(out, ",{},{outcome}", visit.number)?;
        let called = visit.called.map(|called| called.since(visit.came));
        let moments = [visit.entered, visit.left].map(|it| it.map(since_begin));
        for span in [visit.told, called].into_iter().chain(moments) {
            out.write_all(b",")?;
            if let Some(span) = span {
                write_span(&mut out, span)?;
            }
        }
        writeln!(out)?;
    }
    out.flush()
}

fn since_begin(moment: Moment) -> Duration {
    moment.since(VisitorCrowd::BEGIN)
}

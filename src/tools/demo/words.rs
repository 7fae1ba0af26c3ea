use std::fmt::Write as _;

use gateway::server::live_page;
use limit::Delay;

use super::aim::Aim;
use super::tally::Total;

/// Names the other scene at the end.
pub(super) const OTHER_SCENE: &str =
    "next: `drip demo --scene fair` shows a backend that one client floods and nine do not";

/// An introduction for users who see the demo for the first time.
pub(super) fn introduction(aim: &Aim) -> String {
    let servers = aim.servers.iter().map(ToString::to_string);
    let mut text = format!(
        "drip demo: bursts in, an even stream out\n\n\
         \x20 a crowd      sends up to 30 requests at once to the gateway on http://{}\n\
         \x20 the gateway  {}\n\
         \x20 an origin    stands in for your backend on {} and times what reaches it\n",
        aim.gateway,
        promise(aim),
        servers.collect::<Vec<_>>().join(" and "),
    );
    if let Some(admin) = aim.admin {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "  try it       http://{}/ is the gateway, {} its live page",
            aim.gateway,
            live_page(admin)
        );
    }
    text + "  a bar below  is a tenth of a second: ▁ one request, █ eight or more\n"
}

/// Describes what the gateway does to the route.
fn promise(aim: &Aim) -> String {
    let every = milliseconds(aim.rate.interval().as_secs_f64(), 1).replace(".0 ", " ");
    let (burst, status) = (aim.limit.burst, aim.reject_status);
    if aim.dry_run {
        return "lets everything go on and only counts: the route has dry_run = true".to_owned();
    }
    match aim.limit.delay {
        Delay::Never => format!(
            "lets {} go on at once and one more every {every}; the rest get {status}",
            u64::from(burst) + 1
        ),
        Delay::Above(0) => format!(
            "lets one go on every {every}; up to {burst} wait for their turn, the rest get {status}"
        ),
        Delay::Above(delay) => format!(
            "lets {} go on at once, then one every {every}; up to {} wait, the rest get {status}",
            u64::from(delay) + 1,
            burst.saturating_sub(delay)
        ),
    }
}

/// The summary at the end.
pub(super) fn summary(seconds: u64, total: &Total) -> String {
    let (came, left, rejected) = (total.came, total.left, total.rejected);
    let mut line = format!(
        "{seconds} s: {came} arrived, {left} left, {rejected} rejected, {} still waiting",
        total.waiting
    );
    if total.failed > 0 {
        let _ = write!(line, ", {} failed", total.failed);
    }
    if let Some((_, off)) = total.gaps.evenness() {
        let off = milliseconds(off, 2);
        let _ = write!(
            line,
            "; while some waited, departures kept the pace to ±{off}"
        );
    }
    line
}

/// Formats seconds as milliseconds.
pub(super) fn milliseconds(seconds: f64, decimals: usize) -> String {
    format!("{:.decimals$} ms", seconds * 1000.0)
}

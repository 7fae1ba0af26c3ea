//! Rules for clients that disconnect while their requests wait or run.
//!
//! A rule reads the samples of the last seconds, and returns its finding: cause, evidence and
//! remedy, in words for the operator. The headline is the most urgent finding.

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{part, percent, seconds};
use crate::gate::report::permits::{full_key, permit_shortage, slow_client, withheld_of_full};
use crate::gate::report::rules::binding_setting;
use crate::origin::report::sample::OriginSample;
use crate::status::plain::Plain;
use crate::zone::report::sample::ZoneSample;

/// Minimum share of disconnected clients for a headline.
const MIN_SHARE: f64 = 0.2;
/// Minimum number of disconnected clients for a headline.
const MIN_CLIENTS: u64 = 3;

/// State of a waiting request when its client disconnects, for the evidence.
const WAITING: &str = "waited, or just after its turn";

/// Rule: clients disconnect before the slots of their requests in a zone.
pub(super) fn leaving_zone(recent: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let name = &zone.name;
    let sum = |count: fn(&ZoneSample) -> u64| recent.total(zone, count);
    let (left, went_on) = (sum(|zone| zone.left), sum(ZoneSample::out));
    let disconnected = DisconnectedClients {
        left,
        all: left + went_on,
        after: recent.longest(zone, |it| it.left_after),
    };
    let share = disconnected.share(recent)?;
    // The clients disconnected because of the pause. Neither `max_wait` nor `rate` helps.
    if recent.was_resumed(zone) {
        return None;
    }
    let full = full_key(recent, zone);
    let faster = match zone.rate.filter(|_| full.is_none()) {
        None => String::new(),
        Some(_) if went_on == 0 => ", or raise `rate`".to_owned(),
        Some(rate) => {
            let sufficient = rate * part(left + went_on, went_on);
            format!(", or raise `rate` to {}", format_rate(sufficient))
        }
    };
    let what = format!("leave {name} before their turn");
    let remedy = disconnected.advise_max_wait("", &faster, full.and_then(withheld_of_full));
    Some(disconnected.finding(recent, (name, share), (&what, WAITING), remedy))
}

/// Rule: clients disconnect before the slots of their requests at a gate.
pub(super) fn leaving_gate(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    // The requests wait for the origin to come back. Another finding reports that.
    if gate.outage.is_some() {
        return None;
    }
    let name = &origin.name;
    let left = recent.total(origin, |it| it.gate.as_ref().map_or(0, |gate| gate.left));
    let went_on = recent.ended_at_origin(origin) + recent.total(origin, |it| it.left);
    let disconnected = DisconnectedClients {
        left,
        all: left + went_on,
        after: recent.longest(origin, |it| it.gate.as_ref()?.left_after),
    };
    let share = disconnected.share(recent)?;
    let backs_off = gate.backing_off.as_ref().is_some_and(|it| !it.shadow);
    let slow = slow_client(recent, origin).map(|(_, remedy)| remedy);
    let permit_shortage = || permit_shortage(recent, origin, gate)?.remedy;
    let elsewhere = slow.or_else(permit_shortage);
    let faster = if backs_off || elsewhere.is_some() {
        String::new()
    } else {
        let limit = binding_setting(recent, origin, gate);
        format!(", or, if {name} can do more, raise its {limit}")
    };
    let what = format!("leave the gate of {name} before their turn");
    let remedy = disconnected.advise_max_wait(" for its routes", &faster, elsewhere);
    Some(disconnected.finding(recent, (name, share), (&what, WAITING), remedy))
}

/// Rule: clients disconnect while an origin works on their requests.
pub(super) fn leaving_origin(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let name = &origin.name;
    let left = recent.total(origin, |it| it.left);
    let disconnected = DisconnectedClients {
        left,
        all: left + recent.ended_at_origin(origin),
        after: recent.longest(origin, |it| it.left_after),
    };
    let share = disconnected.share(recent)?;
    let what = format!("of clients leave before {name} answers");
    let remedy = format!(
        "Origin {name} is slower than its clients wait: find out what it waits for; see Origins and its own log. More rate would not help. If answers are to take so long, let the clients wait longer."
    );
    Some(disconnected.finding(recent, (name, share), (&what, "was at the origin"), remedy))
}

/// Disconnected clients, among all clients whose requests reached the same stage.
struct DisconnectedClients {
    /// Number of disconnected clients.
    left: u64,
    /// Number of all clients whose requests reached the stage.
    all: u64,
    /// Median wait of the disconnected clients, in seconds.
    after: Option<f64>,
}

impl DisconnectedClients {
    /// Returns the share of clients that disconnected, if they are enough to report.
    ///
    /// `None` while all connections are in use, and just after: clients waited in the kernel and
    /// gave up before any delay here.
    fn share(&self, recent: &Recent<'_>) -> Option<f64> {
        let share = part(self.left, self.all);
        (self.left >= MIN_CLIENTS && share >= MIN_SHARE && !recent.was_full()).then_some(share)
    }

    /// Advises to limit the wait to the duration that clients accept.
    ///
    /// `scope`: where to set `max_wait`. `faster`: a remedy that shortens the waits. `elsewhere`: a
    /// remedy for another cause of the waits. Each may be empty.
    fn advise_max_wait(&self, scope: &str, faster: &str, elsewhere: Option<String>) -> String {
        let max_wait = self.after.map_or("`max_wait`".to_owned(), |after| {
            format!("`max_wait = \"{}\"`", format_max_wait(after))
        });
        let elsewhere = elsewhere.map_or(String::new(), |remedy| format!(" {remedy}"));
        format!(
            "Set {max_wait}{scope}{faster}: requests that would wait longer are rejected at once.{elsewhere}"
        )
    }

    /// Builds the finding about a zone or origin.
    ///
    /// `what`: how this share of the clients left. `during`: state of their requests then.
    fn finding(
        &self,
        recent: &Recent<'_>,
        (about, share): (&Plain, f64),
        (what, during): (&str, &str),
        remedy: String,
    ) -> Finding {
        let after = self.after.map_or(String::new(), |after| {
            format!(", after about {}", seconds(after))
        });
        let left = recent.share_of(self.left, self.all, "request");
        Finding {
            weight: share,
            title: format!("{} {what}{after}", percent(share)),
            evidence: format!(
                "{left}: the client closed its connection while its request {during}."
            ),
            remedy,
            ..Finding::about(about, Cause::Leaving, Severity::bad_if(share >= 0.5))
        }
    }
}

/// Formats a duration for the file: whole seconds, or tenths below two seconds.
///
/// Rounded down, because clients disconnect at exactly this duration. The duration is a quantile,
/// which is not exact.
fn format_max_wait(seconds: f64) -> String {
    // 0.3 tenths of a second make up for the error of the quantile.
    let tenths = (seconds * 10.0 + 0.3).floor().max(1.0);
    // Exactly one second is shown whole, too.
    if tenths >= 20.0 || (10.0..11.0).contains(&tenths) {
        format!("{:.0}s", (tenths / 10.0).floor())
    } else {
        format!("{:.0}ms", tenths * 100.0)
    }
}

/// Formats a rate for the file: requests a second, or a minute if that is less than one.
fn format_rate(a_second: f64) -> String {
    if a_second < 1.0 {
        format!("{:.0}r/m", (a_second * 60.0).ceil())
    } else {
        format!("{:.0}r/s", a_second.ceil())
    }
}

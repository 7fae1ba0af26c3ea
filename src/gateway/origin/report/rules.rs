//! Rules of the headline for origins that fail, return errors, or have a server out.
//!
//! A rule reads the samples of the last seconds, and returns a finding if something is wrong: what,
//! the evidence, and the remedy. A server that is *out* gets no requests. `hanging` has the rule
//! for origins that respond late or not at all.

use super::sample::OriginSample;
use crate::origin::FailureKind;
use crate::status::headline::finding::{Cause, Finding, Severity, Suspicion};
use crate::status::headline::recent::{Recent, of_class, sum};
use crate::status::headline::words::{count, listed, part, percent, seconds, waiting, whole};
use crate::status::plain::Plain;

/// Share of 5xx responses that is worth a headline. From half on, the finding is bad.
const ERRORS: f64 = 0.05;
/// Share of requests without a response that is worth a headline.
const UNANSWERED: f64 = 0.1;
/// Latency from which the evidence of the rule for errors mentions it, in seconds.
const LONG: f64 = 0.1;
/// Minimum number of failures for a headline, if other requests get good responses.
const FEW: u64 = 3;

/// Returns the numbers of responses, of 5xx responses, and of requests without a response.
fn answers(recent: &Recent<'_>, origin: &OriginSample) -> (u64, u64, u64) {
    let codes = recent.counts(origin, |it| Some(&it.codes));
    let failed = recent.total(origin, |it| sum(&it.errors));
    (sum(&codes), of_class(&codes, "5xx"), failed)
}

/// Sentence for the last failure of an origin. Begins with a blank; empty without a failure.
fn last_failure(origin: &OriginSample) -> String {
    let last = origin.last_failure.as_ref();
    last.map_or(String::new(), |text| format!(" Last: {text}."))
}

/// Duration of refused connections that may be a restart, in seconds.
const RESTART: f64 = 10.0;

/// Explains why an origin fails. Returns the end of the title, the evidence, and the remedy.
fn explain_failure(origin: &OriginSample) -> (&'static str, String, String) {
    let name = &origin.name;
    let last = last_failure(origin);
    let failure = origin.failure.as_ref().map(|it| (it.kind, it));
    match failure {
        Some((FailureKind::Refused, failure)) => {
            let remedy = if failure.lasts < RESTART && !failure.is_held {
                format!(
                    "If it only restarts, as in a deploy, set `hold = \"10s\"` in [origins.{name}]: its requests wait instead of getting 502. If not, start it."
                )
            } else {
                "Start it, or see which program listens on its port.".to_owned()
            };
            let lasts = seconds(failure.lasts.max(1.0));
            let evidence = format!(" {} has refused connections for {lasts}.", failure.server);
            (": it refuses connections", evidence, remedy)
        }
        Some((FailureKind::Lookup, _)) => (
            ": its name does not resolve",
            last,
            format!("Correct the name in `servers` of [origins.{name}], or repair the resolver."),
        ),
        Some((FailureKind::Certificate, _)) => {
            // The text for a refused certificate has two sentences: the error and the remedy.
            let (error, remedy) = last.rsplit_once(". ").unwrap_or((&last, "See the log."));
            let error = error.trim_end_matches('.');
            (": a certificate is refused", format!("{error}."), remedy.to_owned())
        }
        Some((FailureKind::ClientCert, _)) => (
            ": it refuses the certificate of the gateway",
            last,
            format!(
                "Name a certificate that its servers accept, and its key, in `client_cert` and `client_key` of [origins.{name}]."
            ),
        ),
        Some((FailureKind::Other, _)) | None => (
            "",
            last,
            "Repair the origin or the way to it; see Origins and the log. More rate would not help."
                .to_owned(),
        ),
    }
}

/// Sentence for the number of requests that got stale responses instead of new ones.
fn stale(recent: &Recent<'_>, origin: &OriginSample) -> String {
    let stale = recent.counts(origin, |it| Some(&it.shared.as_ref()?.shared.requests));
    match stale.get(&Plain::from("stale")) {
        Some(1) => " Meanwhile, 1 request got a stale answer.".to_owned(),
        Some(stale) => format!(" Meanwhile, {} requests got stale answers.", whole(*stale)),
        None => String::new(),
    }
}

/// Rule: an origin fails.
pub(crate) fn failing(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    holding(origin).or_else(|| unanswered(recent, origin))
}

/// Rule: requests of an origin are held until it comes back.
fn holding(origin: &OriginSample) -> Option<Finding> {
    let gate = origin.gate.as_ref()?;
    let outage = gate.outage.as_ref()?;
    let (name, depth) = (&origin.name, gate.depth);
    let (lasts, hold) = (seconds(outage.lasts), &outage.hold);
    Some(Finding {
        weight: part(depth, 1),
        title: format!("Origin {name} is down; {} for it, up to {hold}", waiting(depth)),
        evidence: format!("It is down for {lasts}: {}.", outage.error),
        remedy: "Bring the origin back: its requests leave then, in their order. Those that have waited for `hold` get the answer that they would get without it."
            .to_owned(),
        ..Finding::about(name, Cause::OriginFailing, Severity::Bad)
    })
}

/// Rule: requests of an origin get no response.
fn unanswered(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let (answered, _, failed) = answers(recent, origin);
    let attempts = answered + failed;
    let name = &origin.name;
    let none_in_use = origin.servers > 0 && origin.healthy == 0;
    let most_fail = failed > 0 && failed >= answered;
    // If other servers respond, the failing server is the news: failed requests went on to them.
    let some_fail = failed >= FEW
        && part(failed, attempts) >= UNANSWERED
        && !(1..origin.servers).contains(&servers_in_trouble(recent, origin));
    // Without traffic, the last request predicts the result of the next one.
    let last_failed = attempts == 0 && origin.servers > 0 && origin.failing == origin.servers;
    if !(none_in_use || most_fail || some_fail || last_failed) {
        return None;
    }
    let (why, evidence, remedy) = explain_failure(origin);
    let title = if none_in_use {
        format!("Origin {name} has no server in use{why}")
    } else if last_failed {
        format!("Origin {name} did not answer the last request{why}")
    } else if most_fail {
        format!("Origin {name} does not answer{why}")
    } else {
        format!("Origin {name} leaves requests without an answer")
    };
    let kinds = recent.counts(origin, |it| Some(&it.errors));
    let kinds: Vec<_> = kinds
        .iter()
        .map(|(kind, count)| format!("{} {kind}", whole(*count)))
        .collect();
    let failures_sentence = if failed > 0 {
        let span = recent.seconds();
        let (failed, attempts) = (whole(failed), count(attempts, "attempt"));
        let kinds = listed(&kinds);
        format!("{failed} of {attempts} got no answer in the last {span:.0} s: {kinds}.")
    } else if none_in_use {
        "Its requests get 503 until a server is in use again.".to_owned()
    } else {
        "No request has been sent to it since.".to_owned()
    };
    let severity = Severity::bad_if(none_in_use || most_fail);
    Some(Finding {
        weight: part(failed, attempts),
        title,
        evidence: failures_sentence + &evidence + &stale(recent, origin),
        remedy,
        count: sum(&origin.errors),
        suspicion: Suspicion::Suspected,
        ..Finding::about(name, Cause::OriginFailing, severity)
    })
}

/// Rule: an origin returns errors.
pub(crate) fn errors(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let (answered, bad, _) = answers(recent, origin);
    let share = part(bad, answered);
    if bad < FEW || share < ERRORS {
        return None;
    }
    let name = &origin.name;
    let p95 = origin.latency.p95.filter(|p95| *p95 >= LONG);
    let latency = p95.map_or(String::new(), |p95| {
        format!(" Its slowest answers take {}.", seconds(p95))
    });
    Some(Finding {
        weight: share,
        title: format!("Origin {name} answers {} with 5xx", percent(share)),
        evidence: format!(
            "{} were errors of the origin.{latency}{}",
            recent.share_of(bad, answered, "answer"),
            stale(recent, origin)
        ),
        remedy:
            "Read the origin's own log. Lower its rate if it is overloaded; more would not help."
                .to_owned(),
        suspicion: Suspicion::Suspected,
        count: of_class(&origin.codes, "5xx"),
        ..Finding::about(name, Cause::OriginErrors, Severity::bad_if(share >= 0.5))
    })
}

/// Number of servers that are out, or get requests although they fail.
fn servers_in_trouble(recent: &Recent<'_>, origin: &OriginSample) -> u64 {
    recent.lately(origin, |it| {
        it.servers.saturating_sub(it.healthy) + it.failing
    })
}

/// Rule: a server of an origin is out.
pub(crate) fn server_out(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let out = recent.lately(origin, |it| it.servers.saturating_sub(it.healthy));
    let in_trouble = servers_in_trouble(recent, origin);
    let (_, _, failed) = answers(recent, origin);
    // None is in trouble, or all are: then the rule for a failing origin says more.
    if !(1..origin.servers).contains(&in_trouble) || (out == 0 && failed < FEW) {
        return None;
    }
    let (name, servers) = (&origin.name, origin.servers);
    let verb = match (out, in_trouble) {
        (0, 1) => "fails",
        (0, _) => "fail",
        (1, _) => "is out",
        _ => "are out",
    };
    let affected = if out == 0 { in_trouble } else { out };
    Some(Finding {
        weight: part(affected, servers),
        title: format!("{affected} of {servers} servers of origin {name} {verb}"),
        evidence: format!("The others get its requests.{}", last_failure(origin)),
        remedy: "Repair the server; see Origins. Do not raise a rate while the origin is short of servers."
            .to_owned(),
        ..Finding::about(name, Cause::ServerOut, Severity::Warn)
    })
}

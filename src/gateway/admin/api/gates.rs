//! Overrides of the gate of an origin.

use std::num::NonZeroUsize;
use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::web::{Bytes, Data, Path};
use limit::{Moment, Rate};
use serde::Deserialize;

use super::body::{check_line, joined, parse, span, value};
use crate::admin::Admin;
use crate::admin::author::Author;
use crate::admin::find::OWNER;
use crate::admin::reply::{self, Answer, Refusal};
use crate::gate::report::{overridden, subject};
use crate::gate::{GateOverride, OriginGate, OverrideRefusal};
use crate::http::gateway::Gateway;
use crate::origin::Origin;
use crate::status::timestamp::timestamp;
use crate::time::clock;

/// Maximum number of permits in an override, as in the file.
const MAX_PERMITS: u64 = 1_000_000_000;
/// Maximum length of an owner's name, in characters.
const MAX_OWNER: usize = 64;

/// Body of a PUT.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct OverrideBody {
    rate: Option<String>,
    max_in_flight: Option<u64>,
    pause: Option<bool>,
    owner: Option<String>,
    r#for: Option<String>,
}

/// `PUT`: sets or renews the override of a gate.
pub(super) async fn set(
    request: HttpRequest,
    admin: Data<Admin>,
    name: Path<String>,
    body: Bytes,
) -> Answer {
    let gateway = admin.serving()?;
    let (origin, gate) = find(&gateway, &name)?;
    let (author, now) = (Author::of(&request), clock::now());
    let requested = requested(&body, now, author.shown())?;
    let settings = origin.settings();
    let fits = requested.check_fits(settings);
    fits.map_err(|unfit| refusal(&settings.name, unfit))?;
    let known = gate.overridden();
    check_owner(known.as_ref(), &requested, now)?;
    // A renewal by the owner changes nothing, and would fill the history of changes.
    if gate.renew(&requested) {
        let it = gate.overridden().unwrap_or(requested);
        return Ok(reply::ok(&overridden(&it)));
    }
    let before = gate.set_override(Some(requested.clone()));
    let from = before.map_or_else(|| in_file(settings), |it| what(&it));
    let (subject, values) = (subject(&settings.name), (&*from, &*what(&requested)));
    author.note_set(&admin.history, &subject, values, requested.until);
    Ok(reply::ok(&overridden(&requested)))
}

/// `DELETE`: ends the override of a gate.
pub(super) async fn end(request: HttpRequest, admin: Data<Admin>, name: Path<String>) -> Answer {
    let gateway = admin.serving()?;
    let (origin, gate) = find(&gateway, &name)?;
    let author = Author::of(&request);
    let ended = gate.set_override(None).ok_or_else(|| {
        reply::not_found("nothing is overridden here; /api/origins shows what is")
    })?;
    let settings = origin.settings();
    let values = (&*what(&ended), &*in_file(settings));
    author.note_undone(&admin.history, &subject(&settings.name), values);
    Ok(reply::ok(&overridden(&ended)))
}

/// Finds an origin with its gate by name.
pub(super) fn find<'g>(
    gateway: &'g Gateway,
    name: &str,
) -> Result<(&'g Origin, &'g Arc<OriginGate>), Refusal> {
    let origin = origin(gateway, name)?;
    let gate = origin
        .gate()
        .ok_or_else(|| refusal(name, OverrideRefusal::NoGate))?;
    Ok((origin, gate))
}

/// Finds an origin by name.
pub(super) fn origin<'g>(gateway: &'g Gateway, name: &str) -> Result<&'g Origin, Refusal> {
    let origins = gateway.origins().iter();
    let found = origins.clone().find(|it| it.settings().name == name);
    found.ok_or_else(|| reply::unknown("origin", name, origins.map(|it| &*it.settings().name)))
}

/// Reason why an origin cannot have an override, and the remedy.
pub(super) fn refusal(origin: &str, unfit: OverrideRefusal) -> Refusal {
    let message = match unfit {
        OverrideRefusal::NoGate => format!(
            "origin {origin:?} has no gate, so nothing can be overridden; give it rate or max_in_flight in the file, such as rate = \"200r/s\" in [origins.{origin}]"
        ),
        OverrideRefusal::SharedRate => format!(
            "gateways share the rate of origin {origin:?} in Redis, where all have one rate: change it in the file of each; only pause, and max_in_flight if the file has none, can be overridden here, for this gateway alone"
        ),
        OverrideRefusal::SharedPermits => format!(
            "gateways share max_in_flight of origin {origin:?} in Redis, where all have one pool of permits: change it in the file of each; only pause, and rate if the file has none, can be overridden here, for this gateway alone"
        ),
    };
    reply::conflict(message)
}

/// Refuses an override while another owner renews its own.
fn check_owner(
    known: Option<&GateOverride>,
    requested: &GateOverride,
    now: Moment,
) -> Result<(), Refusal> {
    let known = known.filter(|it| it.until > now && it.owner != requested.owner);
    let Some((owner, until)) = known.and_then(|it| Some((it.owner.as_deref()?, it.until))) else {
        return Ok(());
    };
    let message = format!(
        "{owner} holds an override here until {}, and renews it; undo that first by DELETE",
        timestamp(until)
    );
    Err(reply::conflict(message))
}

/// Parses the body of a PUT.
fn requested(body: &[u8], now: Moment, by: &str) -> Result<GateOverride, Refusal> {
    let example =
        r#"{"rate": "20r/s", "for": "10m"}, with rate, max_in_flight, pause, owner and for"#;
    let requested: OverrideBody = parse(body, example)?;
    let rate = requested.rate.as_deref();
    let rate = rate.map(|text| value("rate", text)).transpose()?;
    let max_in_flight = requested.max_in_flight.map(permits).transpose()?;
    let is_paused = requested.pause.unwrap_or(false);
    if rate.is_none() && max_in_flight.is_none() && !is_paused {
        return Err(reply::bad_request(
            "nothing differs from the file; give rate, max_in_flight or \"pause\": true, or undo an override by DELETE",
        ));
    }
    let owner = requested.owner.map(owner).transpose()?;
    Ok(GateOverride {
        rate,
        max_in_flight,
        is_paused,
        since: now,
        until: now + span(requested.r#for)?,
        by: by.into(),
        owner,
    })
}

/// Checks a maximum number of requests in flight.
fn permits(most: u64) -> Result<NonZeroUsize, Refusal> {
    let fits = Some(most).filter(|most| *most <= MAX_PERMITS);
    let permits = fits.and_then(|most| NonZeroUsize::new(usize::try_from(most).ok()?));
    permits.ok_or_else(|| {
        reply::bad_request(format!(
            "max_in_flight is {most}; it must be from 1 to {MAX_PERMITS}; \"pause\": true lets nothing through"
        ))
    })
}

/// Checks the name of an owner.
fn owner(name: String) -> Result<Arc<str>, Refusal> {
    check_line("owner", &name, MAX_OWNER)?;
    if name == OWNER {
        return Err(reply::bad_request(format!(
            "owner is {OWNER:?}, the name of experiments; give another one, or start an experiment by POST /api/find"
        )));
    }
    Ok(name.into())
}

/// Formats the configured values.
fn in_file(origin: &config::Origin) -> String {
    let values = values(origin.rate, origin.max_in_flight, false);
    let values = if values.is_empty() {
        "no rate"
    } else {
        &values
    };
    format!("the file: {values}")
}

/// Formats the values of an override.
fn what(it: &GateOverride) -> String {
    values(it.rate, it.max_in_flight, it.is_paused)
}

/// Formats the values of a gate.
fn values(rate: Option<Rate>, most: Option<NonZeroUsize>, is_paused: bool) -> String {
    joined([
        rate.map(|rate| format!("rate {rate}")),
        most.map(|most| format!("max_in_flight {most}")),
        is_paused.then(|| "paused".to_owned()),
    ])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_override_has_a_value_and_an_end() {
        let now = Moment::default();
        let read = |body: &str| requested(body.as_bytes(), now, "ops");
        let all = read(
            r#"{"rate": "20r/s", "max_in_flight": 4, "pause": true, "owner": "x", "for": "15s"}"#,
        );
        let all = all.unwrap();
        assert_eq!(all.rate, Some("20r/s".parse().unwrap()));
        assert_eq!(all.max_in_flight, NonZeroUsize::new(4));
        assert_eq!((all.is_paused, all.owner.as_deref()), (true, Some("x")));
        assert_eq!(all.until, now + Duration::from_secs(15));
        assert_eq!(what(&all), "rate 20r/s, max_in_flight 4, paused");
        for (body, says) in [
            ("", "JSON such as"),
            ("{}", "nothing differs"),
            (r#"{"pause": false, "for": "1m"}"#, "nothing differs"),
            (r#"{"rate": "5r/s"}"#, "for is missing"),
            (r#"{"rate": "fast", "for": "1m"}"#, "rate is \"fast\""),
            (r#"{"rate": "0r/s", "for": "1m"}"#, "rate is \"0r/s\""),
            (r#"{"max_in_flight": 0, "for": "1m"}"#, "from 1 to"),
            (r#"{"max_in_flight": 1000000001, "for": "1m"}"#, "from 1 to"),
            (r#"{"max_in_flight": -1, "for": "1m"}"#, "JSON such as"),
            (r#"{"pause": true, "for": "25h"}"#, "from 1s to 24h"),
            (r#"{"pause": true, "owner": "", "for": "1m"}"#, "owner must"),
            (
                r#"{"pause": true, "owner": "drip find", "for": "1m"}"#,
                "the name of experiments",
            ),
            (r#"{"dry_run": true, "for": "1m"}"#, "unknown field"),
        ] {
            let error = read(body).unwrap_err().to_string();
            assert!(error.contains(says), "{body}: {error}");
        }
    }

    #[test]
    fn an_override_is_replaced_only_by_its_owner() {
        let now = Moment::default();
        let of = |owner: Option<&str>| {
            let owner = owner.map(|it| format!(r#", "owner": "{it}""#));
            let owner = owner.unwrap_or_default();
            let body = format!(r#"{{"rate": "5r/s", "for": "15s"{owner}}}"#);
            requested(body.as_bytes(), now, "ops").unwrap()
        };
        let allowed = |known: Option<&str>, new: Option<&str>, at: u64| {
            let now = now + Duration::from_secs(at);
            check_owner(Some(&of(known)), &of(new), now).is_ok()
        };
        assert!(allowed(None, None, 0) && allowed(None, Some("a"), 0));
        assert!(allowed(Some("a"), Some("a"), 0));
        assert!(!allowed(Some("a"), Some("b"), 14) && !allowed(Some("a"), None, 14));
        assert!(allowed(Some("a"), Some("b"), 15));
    }
}

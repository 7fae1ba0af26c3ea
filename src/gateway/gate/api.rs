//! The gate of an origin in the API: its JSON, and the requests that set and end its override.
//!
//! `overrides` applies an override to the gate. `admin::overrides` has what the overrides of zones,
//! gates and rooms have in common.

use std::num::NonZeroUsize;
use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::web::{Bytes, Data, Path};
use limit::Moment;
use serde::Deserialize;
use serde_json::{Value, json};

use super::report::{self, subject};
use super::{GateOverride, GateSharing, GateValues, OriginGate, OverrideRefusal};
use crate::admin::Admin;
use crate::admin::author::Author;
use crate::admin::body::{check_line, parse, value};
use crate::admin::find::OWNER;
use crate::admin::overrides::{self, OverrideTarget};
use crate::admin::reply::{self, Answer, Refusal};
use crate::http::gateway::Gateway;
use crate::origin::Origin;
use crate::status::counts;
use crate::status::headline::words::part;
use crate::status::plain::Plain;
use crate::status::timestamp::timestamp;
use crate::time::clock;

/// Number of the deepest keys of a gate in a response.
const DEEPEST: usize = 10;
/// Maximum number of permits in an override, as in the file.
const MAX_PERMITS: u64 = 1_000_000_000;
/// Maximum length of an owner's name, in characters.
const MAX_OWNER: usize = 64;

/// Body of a `PUT` that sets an override.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct OverrideBody {
    rate: Option<String>,
    max_in_flight: Option<u64>,
    pause: Option<bool>,
    owner: Option<String>,
    r#for: Option<String>,
}

/// JSON of a gate, for `/api/origins`.
pub(crate) fn gate_json(
    gateway: &Gateway,
    origin: &Origin,
    gate: &OriginGate,
    now: Moment,
) -> Value {
    let settings = origin.settings();
    let status = gate.status(DEEPEST);
    let share = settings.share.map(|zone| gateway.zone(zone).settings());
    let deepest = status.deepest.iter().map(|(key, depth)| {
        let mut json = json!({
            "key": report::key_name(gateway, key),
            "queue_depth": depth,
            "share": part(*depth as u64, status.depth as u64),
        });
        reply::add(&mut json, "plan", report::plan(gateway, key));
        json
    });
    let mut json = json!({
        "queue_depth": status.depth,
        "rate": report::rate(settings, &status, |rate| rate),
        "max_in_flight": report::max_in_flight(settings, &status),
        "share": share.map(|zone| Plain::new(&zone.name)),
        "queue": settings.share.map(|_| settings.queue),
        "max_queue": settings.max_queue,
        "classes": report::classes(&status.classes),
        "rejections": counts::counted(gate.metrics().rejections.each()),
        "blocked_seconds": report::blocked_seconds(&status.blocked),
        "backing_off": report::backing_off(settings, &status.lowered, now),
        "outage": report::outage(settings, status.outage.as_ref(), now),
        "deepest": deepest.collect::<Vec<_>>(),
    });
    let sharing = status.sharing.as_ref().map(sharing_json);
    reply::add(&mut json, "sharing", sharing);
    reply::add(&mut json, "override", status.overridden.as_ref());
    json
}

/// JSON of the rate that gateways share at an origin.
fn sharing_json(sharing: &GateSharing) -> Value {
    let mut json = json!({
        "alone": sharing.is_alone,
        "part": sharing.part,
        "gateways": sharing.gateways,
    });
    let why = sharing.why_alone.as_ref();
    let reason = why.map(|error| Plain::new(&error.to_string()));
    reply::add(&mut json, "reason", reason);
    let remedy = why.map(|error| Plain::new(error.remedy()));
    reply::add(&mut json, "remedy", remedy);
    json
}

/// The gate of an origin.
impl OverrideTarget for Origin {
    type Values = GateValues;

    const SHOWN_AT: &'static str = "/api/origins";

    fn subject(&self) -> String {
        subject(&self.settings().name)
    }

    fn configured(&self) -> GateValues {
        let settings = self.settings();
        GateValues {
            rate: settings.rate,
            max_in_flight: settings.max_in_flight,
            pause: false,
        }
    }

    fn replace(&self, new: Option<GateOverride>) -> Result<Option<GateOverride>, Refusal> {
        Ok(self.gate().and_then(|gate| gate.set_override(new)))
    }
}

/// `PUT`: sets or renews the override of a gate.
pub(crate) async fn set(
    request: HttpRequest,
    admin: Data<Admin>,
    name: Path<String>,
    body: Bytes,
) -> Answer {
    let gateway = admin.serving()?;
    let (origin, gate) = find_gate(&gateway, &name)?;
    let (author, now) = (Author::of(&request), clock::now());
    let requested = parse_override(&body, now, author.shown())?;
    let fits = requested.values.check_fits(origin.settings());
    fits.map_err(|unfit| refusal(&name, unfit))?;
    check_owner(gate.override_in_force().as_ref(), &requested, now)?;
    // A renewal by the owner changes nothing, and would fill the history of changes.
    if gate.renew_override(&requested) {
        let renewed = gate.override_in_force().unwrap_or(requested);
        return Ok(reply::ok(&renewed));
    }
    overrides::set(origin, &requested, &author, &admin.history)
}

/// `DELETE`: ends the override of a gate.
pub(crate) async fn end(request: HttpRequest, admin: Data<Admin>, name: Path<String>) -> Answer {
    let gateway = admin.serving()?;
    let (origin, _) = find_gate(&gateway, &name)?;
    overrides::end(origin, &Author::of(&request), &admin.history)
}

/// Finds an origin with its gate by name.
pub(crate) fn find_gate<'g>(
    gateway: &'g Gateway,
    name: &str,
) -> Result<(&'g Origin, &'g Arc<OriginGate>), Refusal> {
    let origin = find_origin(gateway, name)?;
    let gate = origin.gate();
    let gate = gate.ok_or_else(|| refusal(name, OverrideRefusal::NoGate))?;
    Ok((origin, gate))
}

/// Finds an origin by name.
pub(crate) fn find_origin<'g>(gateway: &'g Gateway, name: &str) -> Result<&'g Origin, Refusal> {
    let origins = gateway.origins().iter();
    let found = origins.clone().find(|it| it.settings().name == name);
    found.ok_or_else(|| reply::unknown("origin", name, origins.map(|it| &*it.settings().name)))
}

/// Reply that an origin cannot have an override, with the reason and the remedy.
pub(crate) fn refusal(origin: &str, unfit: OverrideRefusal) -> Refusal {
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

/// Refuses an override while another owner renews the one in force, `known`.
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

/// Parses the body of a `PUT`. `by`: author of the override.
fn parse_override(body: &[u8], now: Moment, by: &str) -> Result<GateOverride, Refusal> {
    let example =
        r#"{"rate": "20r/s", "for": "10m"}, with rate, max_in_flight, pause, owner and for"#;
    let body: OverrideBody = parse(body, example)?;
    let rate = body.rate.as_deref().map(|text| value("rate", text));
    let values = GateValues {
        rate: rate.transpose()?,
        max_in_flight: body.max_in_flight.map(check_permits).transpose()?,
        pause: body.pause.unwrap_or(false),
    };
    let fields = "rate, max_in_flight or \"pause\": true";
    Ok(GateOverride {
        owner: body.owner.map(check_owner_name).transpose()?,
        ..overrides::requested(values, fields, body.r#for, by, now)?
    })
}

/// Checks a maximum number of requests in flight.
fn check_permits(number: u64) -> Result<NonZeroUsize, Refusal> {
    let fits = Some(number).filter(|number| *number <= MAX_PERMITS);
    let permits = fits.and_then(|number| NonZeroUsize::new(usize::try_from(number).ok()?));
    permits.ok_or_else(|| {
        reply::bad_request(format!(
            "max_in_flight is {number}; it must be from 1 to {MAX_PERMITS}; \"pause\": true lets nothing through"
        ))
    })
}

/// Checks the name of an owner.
fn check_owner_name(name: String) -> Result<Arc<str>, Refusal> {
    check_line("owner", &name, MAX_OWNER)?;
    if name == OWNER {
        return Err(reply::bad_request(format!(
            "owner is {OWNER:?}, the name of experiments; give another one, or start an experiment by POST /api/find"
        )));
    }
    Ok(name.into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::overrides::Overridable;

    const NOW: Moment = Moment::from_nanos(0);

    fn parse(body: &str) -> Result<GateOverride, Refusal> {
        parse_override(body.as_bytes(), NOW, "ops")
    }

    #[test]
    fn an_override_has_a_value_and_an_end() {
        let all =
            r#"{"rate": "20r/s", "max_in_flight": 4, "pause": true, "owner": "x", "for": "15s"}"#;
        let all = parse(all).unwrap();
        let texts = ["rate 20r/s", "max_in_flight 4", "paused"];
        assert_eq!(all.values.texts(), texts);
        assert_eq!(all.owner.as_deref(), Some("x"));
        assert_eq!(all.until, NOW + Duration::from_secs(15));
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
                r#"{"owner": "drip find", "for": "1m"}"#,
                "the name of experiments",
            ),
            (r#"{"dry_run": true, "for": "1m"}"#, "unknown field"),
        ] {
            let error = parse(body).unwrap_err().to_string();
            assert!(error.contains(says), "{body}: {error}");
        }
    }

    #[test]
    fn an_override_is_replaced_only_by_its_owner() {
        let owned_by = |owner: Option<&str>| {
            let owner = owner.map_or(String::new(), |it| format!(r#", "owner": "{it}""#));
            parse(&format!(r#"{{"rate": "5r/s", "for": "15s"{owner}}}"#)).unwrap()
        };
        let is_allowed = |known, new, seconds| {
            let now = NOW + Duration::from_secs(seconds);
            check_owner(Some(&owned_by(known)), &owned_by(new), now).is_ok()
        };
        assert!(is_allowed(None, None, 0) && is_allowed(None, Some("a"), 0));
        assert!(is_allowed(Some("a"), Some("a"), 0));
        assert!(!is_allowed(Some("a"), Some("b"), 14) && !is_allowed(Some("a"), None, 14));
        assert!(is_allowed(Some("a"), Some("b"), 15));
    }
}

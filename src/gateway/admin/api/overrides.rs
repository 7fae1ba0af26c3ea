//! Overrides of a zone or of a key.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data};
use config::StoreKind;
use limit::Rate;
use serde::Deserialize;
use serde_json::json;

use super::body::{parse, span};
use super::keys::{named, unmasked};
use super::zones::find;
use crate::admin::Admin;
use crate::admin::author::Author;
use crate::admin::reply::{self, Answer, Refusal};
use crate::observe::key_names::KeyNames;
use crate::status::plain::Plain;
use crate::time::clock;
use crate::zone::report::overridden::{subject, view};
use crate::zone::report::sample;
use crate::zone::{Key, MAX_KEYS, Override, Zone};

/// Body of a PUT.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct OverrideBody {
    rate: Option<String>,
    pause: Option<bool>,
    dry_run: Option<bool>,
    r#for: Option<String>,
}

/// Zone or key of an override.
enum Target {
    Zone,
    Key(Key),
}

/// `GET`: lists the overrides of a zone.
pub(super) async fn list(request: HttpRequest, admin: Data<Admin>) -> Answer {
    let path = request.uri().path();
    let (zone, _) = named(path.strip_suffix("/overrides").unwrap_or(path));
    let gateway = admin.serving()?;
    let (_, zone) = find(&gateway, &zone)?;
    let (overrides, names) = (zone.overrides(), KeyNames::of(zone.settings()));
    let mut keys: Vec<_> = overrides
        .keys
        .iter()
        .map(|(key, it)| (Plain::new(&names.full(key)), view(it)))
        .collect();
    keys.sort_by(|(a, _), (b, _)| a.cmp(b));
    let keys = keys.into_iter();
    let keys = keys.map(|(key, it)| json!({ "key": key, "override": it }));
    let zone = overrides.zone.as_ref().map(view);
    let view = json!({ "zone": zone, "keys": keys.collect::<Vec<_>>() });
    Ok(reply::ok(&view))
}

/// `PUT`: sets an override.
pub(super) async fn set(request: HttpRequest, admin: Data<Admin>, body: Bytes) -> Answer {
    let author = Author::of(&request);
    act(&request, &admin, |zone, target| {
        let requested = requested(&body, zone, author.shown())?;
        let before = put(zone, &target, &requested)?;
        let from = before.map_or_else(|| in_file(zone, &target), |it| what(&it));
        let (subject, values) = (subject(zone, target.key()), (&*from, &*what(&requested)));
        author.note_set(&admin.history, &subject, values, requested.until);
        Ok(view(&requested))
    })
    .await
}

/// `DELETE`: ends an override.
pub(super) async fn end(request: HttpRequest, admin: Data<Admin>) -> Answer {
    let author = Author::of(&request);
    act(&request, &admin, |zone, target| {
        let Some(ended) = take(zone, &target) else {
            let message = "nothing is overridden here; /api/zones/{zone}/overrides lists what is";
            return Err(Refusal::new(StatusCode::NOT_FOUND, message));
        };
        let values = (&*what(&ended), &*in_file(zone, &target));
        author.note_undone(&admin.history, &subject(zone, target.key()), values);
        Ok(view(&ended))
    })
    .await
}

/// Finds the target of the path. Returns the override, or the reason why there is none.
async fn act(
    request: &HttpRequest,
    admin: &Admin,
    act: impl FnOnce(&Zone, Target) -> Result<sample::Override, Refusal>,
) -> Answer {
    let path = request.uri().path();
    let path = path.strip_suffix("/override").unwrap_or(path);
    let gateway = admin.serving()?;
    let (name, key) = named(path);
    let (_, zone) = find(&gateway, &name)?;
    let target = match (path.contains("/keys/"), key) {
        (false, _) => Target::Zone,
        (true, Some(key)) => Target::Key(unmasked(zone, key).await?),
        (true, _) => {
            return Err(reply::bad_query(
                "the key is not valid; write it as the list of keys shows it, percent-encoded",
            ));
        }
    };
    Ok(reply::ok(&act(zone, target)?))
}

/// Parses the body of a PUT.
fn requested(body: &[u8], zone: &Zone, by: &str) -> Result<Override, Refusal> {
    let bad = |message: String| reply::bad_query(message);
    let example = r#"{"rate": "20r/s", "for": "10m"}, with rate, pause, dry_run and for"#;
    let requested: OverrideBody = parse(body, example)?;
    let rate = requested
        .rate
        .as_deref()
        .map(str::parse::<Rate>)
        .transpose();
    let rate = rate.map_err(|error| {
        let given = requested.rate.as_deref().unwrap_or_default();
        bad(format!("rate is {given:?}: {error}"))
    })?;
    if let Some(rate) = rate {
        fits(zone, rate)?;
    }
    let pause = requested.pause.unwrap_or(false);
    if rate.is_none() && !pause && requested.dry_run.is_none() {
        return Err(bad(
            "nothing differs from the file; give rate, \"pause\": true or dry_run, or undo an override by DELETE"
                .to_owned(),
        ));
    }
    if zone.settings().store == StoreKind::Redis && (rate.is_some() || pause) {
        let message = "this zone is kept in Redis, where all gateways have one rate and schedule: change the rate in the file of each; only dry_run can be overridden here";
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    }
    let span = span(requested.r#for)?;
    let since = clock::now();
    Ok(Override {
        rate,
        pause,
        dry_run: requested.dry_run,
        since,
        until: since + span,
        by: by.to_owned(),
    })
}

/// Refuses a rate at which the zone cannot count.
fn fits(zone: &Zone, rate: Rate) -> Result<(), Refusal> {
    let settings = zone.settings();
    if let Some(problem) = settings.unfit(rate) {
        return Err(reply::bad_query(format!("rate is \"{rate}\": {problem}")));
    }
    if settings.algorithm.has_windows() {
        let message = "a zone that counts in windows takes its count from the rate of the file: change it there; pause and dry_run can be overridden";
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    }
    Ok(())
}

/// Sets an override. Returns the previous one.
fn put(zone: &Zone, target: &Target, requested: &Override) -> Result<Option<Override>, Refusal> {
    zone.change_overrides(|overrides| match target {
        Target::Zone => Ok(overrides.zone.replace(requested.clone())),
        Target::Key(key) => {
            let is_known = overrides.keys.contains_key(key);
            if !is_known && overrides.keys.len() >= MAX_KEYS {
                let message = format!(
                    "{MAX_KEYS} keys of this zone have an override already; undo one, or give these keys a plan in the file"
                );
                return Err(Refusal::new(StatusCode::CONFLICT, message));
            }
            Ok(overrides.keys.insert(key.clone(), requested.clone()))
        }
    })
}

/// Ends an override. Returns it.
fn take(zone: &Zone, target: &Target) -> Option<Override> {
    zone.change_overrides(|overrides| match target {
        Target::Zone => overrides.zone.take(),
        Target::Key(key) => overrides.keys.remove(key),
    })
}

impl Target {
    /// Key of the target; `None`: the zone.
    fn key(&self) -> Option<&Key> {
        match self {
            Self::Zone => None,
            Self::Key(key) => Some(key),
        }
    }
}

/// Formats the configured values.
fn in_file(zone: &Zone, target: &Target) -> String {
    let settings = zone.settings();
    let plan = target.key().and_then(|key| settings.plans.of(key));
    let rate = plan.and_then(|plan| plan.rate).unwrap_or(settings.rate);
    format!("the file: rate {rate}")
}

/// Formats the values of an override.
fn what(it: &Override) -> String {
    let rate = it.rate.map(|rate| format!("rate {rate}"));
    let pause = it.pause.then(|| "paused".to_owned());
    let dry_run = it
        .dry_run
        .map(|on| format!("dry run {}", if on { "on" } else { "off" }));
    let parts: Vec<_> = [rate, pause, dry_run].into_iter().flatten().collect();
    parts.join(", ")
}

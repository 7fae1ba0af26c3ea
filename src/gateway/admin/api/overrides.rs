//! Overrides of a zone or of a key.

use actix_web::HttpRequest;
use actix_web::web::{Bytes, Data};
use config::StoreKind;
use limit::Rate;
use serde::Deserialize;
use serde_json::json;

use super::body::{joined, parse, span, value};
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
    act(&request, &admin, |zone, key| {
        let requested = requested(&body, zone, author.shown())?;
        let before = put(zone, key, &requested)?;
        let from = before.map_or_else(|| in_file(zone, key), |it| what(&it));
        let (subject, values) = (subject(zone, key), (&*from, &*what(&requested)));
        author.note_set(&admin.history, &subject, values, requested.until);
        Ok(view(&requested))
    })
    .await
}

/// `DELETE`: ends an override.
pub(super) async fn end(request: HttpRequest, admin: Data<Admin>) -> Answer {
    let author = Author::of(&request);
    act(&request, &admin, |zone, key| {
        let ended = take(zone, key).ok_or_else(|| {
            let message = "nothing is overridden here; /api/zones/{zone}/overrides lists what is";
            reply::not_found(message)
        })?;
        let values = (&*what(&ended), &*in_file(zone, key));
        author.note_undone(&admin.history, &subject(zone, key), values);
        Ok(view(&ended))
    })
    .await
}

/// Finds the zone and the key of the path. Without a key, `act` is about the whole zone.
async fn act(
    request: &HttpRequest,
    admin: &Admin,
    act: impl FnOnce(&Zone, Option<&Key>) -> Result<sample::Override, Refusal>,
) -> Answer {
    let path = request.uri().path();
    let path = path.strip_suffix("/override").unwrap_or(path);
    let gateway = admin.serving()?;
    let (name, key) = named(path);
    let (_, zone) = find(&gateway, &name)?;
    let key = match (path.contains("/keys/"), key) {
        (false, _) => None,
        (true, Some(key)) => Some(unmasked(zone, key).await?),
        (true, _) => {
            return Err(reply::bad_request(
                "the key is not valid; write it as the list of keys shows it, percent-encoded",
            ));
        }
    };
    Ok(reply::ok(&act(zone, key.as_ref())?))
}

/// Parses the body of a PUT.
fn requested(body: &[u8], zone: &Zone, by: &str) -> Result<Override, Refusal> {
    let example = r#"{"rate": "20r/s", "for": "10m"}, with rate, pause, dry_run and for"#;
    let requested: OverrideBody = parse(body, example)?;
    let rate = requested.rate.as_deref().map(|text| rate(zone, text));
    let rate = rate.transpose()?;
    let pause = requested.pause.unwrap_or(false);
    if rate.is_none() && !pause && requested.dry_run.is_none() {
        return Err(reply::bad_request(
            "nothing differs from the file; give rate, \"pause\": true or dry_run, or undo an override by DELETE",
        ));
    }
    if zone.settings().store == StoreKind::Redis && (rate.is_some() || pause) {
        let message = "this zone is kept in Redis, where all gateways have one rate and schedule: change the rate in the file of each; only dry_run can be overridden here";
        return Err(reply::conflict(message));
    }
    let since = clock::now();
    Ok(Override {
        rate,
        pause,
        dry_run: requested.dry_run,
        since,
        until: since + span(requested.r#for)?,
        by: by.to_owned(),
    })
}

/// Parses a rate. Refuses one at which the zone cannot count.
fn rate(zone: &Zone, text: &str) -> Result<Rate, Refusal> {
    let (rate, settings) = (value("rate", text)?, zone.settings());
    if let Some(problem) = settings.unfit(rate) {
        return Err(reply::bad_request(format!("rate is \"{rate}\": {problem}")));
    }
    if settings.algorithm.has_windows() {
        let message = "a zone that counts in windows takes its count from the rate of the file: change it there; pause and dry_run can be overridden";
        return Err(reply::conflict(message));
    }
    Ok(rate)
}

/// Sets an override. Returns the previous one.
fn put(zone: &Zone, key: Option<&Key>, requested: &Override) -> Result<Option<Override>, Refusal> {
    zone.change_overrides(|overrides| match key {
        None => Ok(overrides.zone.replace(requested.clone())),
        Some(key) => {
            let is_known = overrides.keys.contains_key(key);
            if !is_known && overrides.keys.len() >= MAX_KEYS {
                let message = format!(
                    "{MAX_KEYS} keys of this zone have an override already; undo one, or give these keys a plan in the file"
                );
                return Err(reply::conflict(message));
            }
            Ok(overrides.keys.insert(key.clone(), requested.clone()))
        }
    })
}

/// Ends an override. Returns it.
fn take(zone: &Zone, key: Option<&Key>) -> Option<Override> {
    zone.change_overrides(|overrides| match key {
        None => overrides.zone.take(),
        Some(key) => overrides.keys.remove(key),
    })
}

/// Formats the configured values.
fn in_file(zone: &Zone, key: Option<&Key>) -> String {
    let settings = zone.settings();
    let plan = key.and_then(|key| settings.plans.of(key));
    let rate = plan.and_then(|plan| plan.rate).unwrap_or(settings.rate);
    format!("the file: rate {rate}")
}

/// Formats the values of an override.
fn what(it: &Override) -> String {
    let dry_run = |on| if on { "dry run on" } else { "dry run off" };
    joined([
        it.rate.map(|rate| format!("rate {rate}")),
        it.pause.then(|| "paused".to_owned()),
        it.dry_run.map(|on| dry_run(on).to_owned()),
    ])
}

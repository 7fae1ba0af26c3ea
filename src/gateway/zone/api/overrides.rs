//! `/api/zones/{zone}/override`, also of a key: sets and ends an override. Lists all overrides.

use actix_web::HttpRequest;
use actix_web::web::{Bytes, Data};
use config::StoreKind;
use limit::Rate;
use serde::Deserialize;
use serde_json::json;

use super::keys::{parse_path, unmask};
use super::{find, subject};
use crate::admin::Admin;
use crate::admin::author::Author;
use crate::admin::body::{parse, value};
use crate::admin::overrides::{self, OverrideTarget};
use crate::admin::reply::{self, Answer, Refusal};
use crate::http::gateway::Gateway;
use crate::observe::key_names::KeyNames;
use crate::status::plain::Plain;
use crate::time::clock;
use crate::zone::{Key, MAX_KEYS, Zone, ZoneOverride, ZoneValues};

/// Body of a PUT.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct OverrideBody {
    rate: Option<String>,
    pause: Option<bool>,
    dry_run: Option<bool>,
    r#for: Option<String>,
}

/// A zone, or one of its keys.
struct ZoneOrKey<'z> {
    zone: &'z Zone,
    /// `None`: the whole zone.
    key: Option<Key>,
}

impl OverrideTarget for ZoneOrKey<'_> {
    type Values = ZoneValues;

    const SHOWN_AT: &'static str = "/api/zones/{zone}/overrides";

    fn subject(&self) -> String {
        subject(self.zone, self.key.as_ref())
    }

    fn configured(&self) -> ZoneValues {
        let settings = self.zone.settings();
        let plan = self
            .key
            .as_ref()
            .and_then(|key| settings.plans.plan_of(key));
        let rate = plan.and_then(|plan| plan.rate).unwrap_or(settings.rate);
        ZoneValues {
            rate: Some(rate),
            ..ZoneValues::default()
        }
    }

    fn replace(&self, new: Option<ZoneOverride>) -> Result<Option<ZoneOverride>, Refusal> {
        self.zone.change_overrides(|overrides| {
            let Some(key) = &self.key else {
                return Ok(std::mem::replace(&mut overrides.zone, new));
            };
            let Some(new) = new else {
                return Ok(overrides.keys.remove(key));
            };
            let is_known = overrides.keys.contains_key(key);
            if !is_known && overrides.keys.len() >= MAX_KEYS {
                let message = format!(
                    "{MAX_KEYS} keys of this zone have an override already; undo one, or give these keys a plan in the file"
                );
                return Err(reply::conflict(message));
            }
            Ok(overrides.keys.insert(key.clone(), new))
        })
    }
}

/// `GET`: lists the overrides of a zone.
pub(crate) async fn list(request: HttpRequest, admin: Data<Admin>) -> Answer {
    let path = request.uri().path();
    let (zone, _) = parse_path(path.strip_suffix("/overrides").unwrap_or(path));
    let gateway = admin.serving()?;
    let (_, zone) = find(&gateway, &zone)?;
    let (overrides, names) = (zone.overrides(), KeyNames::of(zone.settings()));
    let of_keys = overrides.keys.iter();
    let labelled = of_keys.map(|(key, one)| (Plain::new(&names.full(key)), one));
    let mut by_name: Vec<_> = labelled.collect();
    by_name.sort_by(|(a, _), (b, _)| a.cmp(b));
    let keys = by_name.into_iter();
    let keys = keys.map(|(key, one)| json!({ "key": key, "override": one }));
    let json = json!({ "zone": overrides.zone, "keys": keys.collect::<Vec<_>>() });
    Ok(reply::ok(&json))
}

/// `PUT`: sets an override.
pub(crate) async fn set(request: HttpRequest, admin: Data<Admin>, body: Bytes) -> Answer {
    let author = Author::of(&request);
    let gateway = admin.serving()?;
    let target = target(&request, &gateway).await?;
    let requested = requested(&body, target.zone, author.shown())?;
    overrides::set(&target, &requested, &author, &admin.history)
}

/// `DELETE`: ends an override.
pub(crate) async fn end(request: HttpRequest, admin: Data<Admin>) -> Answer {
    let author = Author::of(&request);
    let gateway = admin.serving()?;
    let target = target(&request, &gateway).await?;
    overrides::end(&target, &author, &admin.history)
}

/// Finds the zone or the key of the path.
async fn target<'g>(request: &HttpRequest, gateway: &'g Gateway) -> Result<ZoneOrKey<'g>, Refusal> {
    let path = request.uri().path();
    let path = path.strip_suffix("/override").unwrap_or(path);
    let (name, key) = parse_path(path);
    let (_, zone) = find(gateway, &name)?;
    let key = match (path.contains("/keys/"), key) {
        (false, _) => None,
        (true, Some(key)) => Some(unmask(zone, key).await?),
        (true, _) => {
            return Err(reply::bad_request(
                "the key is not valid; write it as the list of keys shows it, percent-encoded",
            ));
        }
    };
    Ok(ZoneOrKey { zone, key })
}

/// Parses the body of a PUT. `by`: author of the override.
fn requested(body: &[u8], zone: &Zone, by: &str) -> Result<ZoneOverride, Refusal> {
    let example = r#"{"rate": "20r/s", "for": "10m"}, with rate, pause, dry_run and for"#;
    let body: OverrideBody = parse(body, example)?;
    let rate = body.rate.as_deref().map(|text| rate(zone, text));
    let values = ZoneValues {
        rate: rate.transpose()?,
        pause: body.pause.unwrap_or(false),
        dry_run: body.dry_run,
    };
    if zone.settings().store == StoreKind::Redis && (values.rate.is_some() || values.pause) {
        let message = "this zone is kept in Redis, where all gateways have one rate and schedule: change the rate in the file of each; only dry_run can be overridden here";
        return Err(reply::conflict(message));
    }
    // For the message that refuses a body without any change.
    let fields = "rate, \"pause\": true or dry_run";
    overrides::requested(values, fields, body.r#for, by, clock::now())
}

/// Parses a rate. Refuses a rate at which the zone's algorithm cannot count.
fn rate(zone: &Zone, text: &str) -> Result<Rate, Refusal> {
    let (rate, settings) = (value("rate", text)?, zone.settings());
    if let Some(problem) = settings.why_unfit(rate) {
        return Err(reply::bad_request(format!("rate is \"{rate}\": {problem}")));
    }
    if settings.algorithm.has_windows() {
        let message = "a zone that counts in windows takes its count from the rate of the file: change it there; pause and dry_run can be overridden";
        return Err(reply::conflict(message));
    }
    Ok(rate)
}

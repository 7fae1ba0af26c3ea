//! `/api/zones/{zone}/keys`: lists of keys, and forgetting a key. Also parses the key of a path.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use limit::{Measure, Window};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{find, subject};
use crate::admin::Admin;
use crate::admin::author::Author;
use crate::admin::reply::{self, Answer, Refusal};
use crate::observe::escape::unescape;
use crate::observe::key_names::{KeyNames, NEW_KEYS_NAME};
use crate::zone::{HeavyName, Key, KeyState, NEW_KEYS, Order, Waiters, Zone};

/// Maximum number of keys in one list.
const MAX_KEYS: usize = 1_000;
/// Error of a query with a window and an order that needs none.
const NO_WINDOW: &str = "window goes with sort=requests, sort=rejections or sort=wait; the other orders show the present";

/// Query of a list of keys.
#[derive(Deserialize)]
struct ListQuery {
    #[serde(default)]
    sort: Sort,
    /// Number of keys.
    #[serde(default = "default_limit")]
    limit: usize,
    /// Window of the heaviest keys, in seconds; `None`: one minute.
    window: Option<u64>,
}

/// Sort order of a list of keys.
#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum Sort {
    #[default]
    Depth,
    Excess,
    OldestWait,
    Requests,
    Rejections,
    Wait,
}

/// Kind of list.
enum ListKind {
    /// All remembered keys.
    Remembered(Order),
    /// The heaviest keys of a window.
    Heavy(Measure, Window),
}

impl ListQuery {
    /// Parses the requested kind of list. The error says what is wrong.
    fn kind(&self) -> Result<ListKind, String> {
        if !(1..=MAX_KEYS).contains(&self.limit) {
            let limit = self.limit;
            return Err(format!("limit is {limit}; it must be from 1 to {MAX_KEYS}"));
        }
        let remembered = |order| match self.window {
            None => Ok(ListKind::Remembered(order)),
            Some(_) => Err(NO_WINDOW.to_owned()),
        };
        let heavy = |measure| match self.window {
            None | Some(60) => Ok(ListKind::Heavy(measure, Window::Minute)),
            Some(600) => Ok(ListKind::Heavy(measure, Window::TenMinutes)),
            Some(window) => Err(format!("window is {window}; it must be 60 or 600 seconds")),
        };
        match self.sort {
            Sort::Depth => remembered(Order::Depth),
            Sort::Excess => remembered(Order::Excess),
            Sort::OldestWait => remembered(Order::OldestWait),
            Sort::Requests => heavy(Measure::Requests),
            Sort::Rejections => heavy(Measure::Rejections),
            Sort::Wait => heavy(Measure::Waits),
        }
    }
}

/// Returns the default number of keys in a list.
fn default_limit() -> usize {
    20
}

/// Query of a request to forget a key.
#[derive(Deserialize)]
struct ForgetQuery {
    /// Whether the waiters of the key are rejected.
    #[serde(default)]
    drop: bool,
}

/// `GET`: lists keys of a zone.
pub(crate) async fn list(request: HttpRequest, admin: Data<Admin>, zone: Path<String>) -> Answer {
    let expected = format!(
        "sort must be depth, excess, oldest_wait, requests, rejections or wait, limit a number from 1 to {MAX_KEYS}, and window 60 or 600"
    );
    let query: ListQuery = reply::query(&request, &expected)?;
    let kind = query.kind().map_err(reply::bad_request)?;
    let gateway = admin.serving()?;
    let (_, zone) = find(&gateway, &zone)?;
    match kind {
        ListKind::Remembered(order) => list_remembered(zone, order, query.limit).await,
        ListKind::Heavy(measure, window) => list_heavy(zone, measure, window, query.limit).await,
    }
}

/// Lists the first keys of all that the zone remembers.
async fn list_remembered(zone: &Zone, order: Order, limit: usize) -> Answer {
    let plans = &zone.settings().plans;
    let names = KeyNames::of(zone.settings());
    let states = zone.keys(order, limit).await.into_iter();
    let overrides = zone.overrides();
    let keys = states.map(|state| {
        let mut json = json!({ "key": names.full(&state.key) });
        add_state(&mut json, &state);
        reply::add(&mut json, "plan", plans.name_of(&state.key));
        reply::add(&mut json, "override", overrides.keys.get(&state.key));
        json
    });
    Ok(reply::ok(&json!({ "keys": keys.collect::<Vec<_>>() })))
}

/// Lists the heaviest keys of a window.
async fn list_heavy(zone: &Zone, measure: Measure, window: Window, limit: usize) -> Answer {
    let plans = &zone.settings().plans;
    let names = KeyNames::of(zone.settings());
    let found = zone.heavy_keys(measure, window, limit).await;
    let overrides = zone.overrides();
    let overridden = |name: &HeavyName| overrides.keys.get(name.whole()?);
    let keys = found.keys.iter().map(|heavy| {
        let mut json = json!({
            "key": heavy.name.full(names),
            "requests": heavy.requests,
            "rejections": heavy.rejections,
            "wait_seconds": heavy.wait.as_secs_f64(),
        });
        reply::add(&mut json, "plan", heavy.name.plan(plans));
        reply::add(&mut json, "override", overridden(&heavy.name));
        // The zone may no longer remember the key.
        if let Some(state) = &heavy.state {
            add_state(&mut json, state);
        }
        json
    });
    Ok(reply::ok(&json!({
        "window_seconds": match window {
            Window::Seconds => 3,
            Window::Minute => 60,
            Window::TenMinutes => 600,
        },
        // `total`: sum of the measure over all keys. `error`: upper bound of the error of one key's
        // value, which may be too high but not too low.
        "total": sum_json(measure, found.total),
        "error": sum_json(measure, found.error),
        "keys": keys.collect::<Vec<_>>(),
    })))
}

/// Converts a sum of a measure for the JSON: waits from nanoseconds to seconds.
fn sum_json(measure: Measure, sum: u64) -> f64 {
    match measure {
        Measure::Requests | Measure::Rejections => sum as f64,
        Measure::Waits => Duration::from_nanos(sum).as_secs_f64(),
    }
}

/// Adds the present state of a key to its JSON.
fn add_state(json: &mut Value, state: &KeyState) {
    json["depth"] = state.depth.into();
    json["in_flight"] = state.in_flight.into();
    json["excess"] = state.excess.into();
    json["oldest_wait_seconds"] = state.oldest_wait.as_secs_f64().into();
    json["state"] = if state.active { "active" } else { "parked" }.into();
    let elsewhere = state.elsewhere;
    reply::add(json, "in_flight_elsewhere", elsewhere.map(|it| it.permits));
    reply::add(json, "withheld", elsewhere.map(|it| it.withheld));
}

/// `DELETE`: forgets a key.
pub(crate) async fn forget(request: HttpRequest, admin: Data<Admin>) -> Answer {
    let query: ForgetQuery = reply::query(&request, "drop must be true or false")?;
    let gateway = admin.serving()?;
    let (zone, key) = parse_path(request.uri().path());
    let (_, zone) = find(&gateway, &zone)?;
    let waiters = if query.drop {
        Waiters::Rejected
    } else {
        Waiters::Stay
    };
    let no_such_key = || {
        reply::not_found(
            "the zone has no such key; write the key as the list of keys shows it, percent-encoded",
        )
    };
    let key = unmask(zone, key.ok_or_else(no_such_key)?).await?;
    let subject = subject(zone, Some(&key));
    let dropped = zone.forget(key, waiters).await.ok_or_else(no_such_key)?;
    let to = match dropped {
        0 => "forgotten".to_owned(),
        dropped => format!("forgotten, waiting requests rejected: {dropped}"),
    };
    Author::of(&request).log("key forgotten", &subject, (None, &to), None);
    Ok(reply::ok(&json!({ "forgotten": true, "dropped": dropped })))
}

/// Resolves a key from a path: the key itself, or the key that has this masked name.
///
/// A zone with `mask_keys` shows masked names in place of its keys.
pub(crate) async fn unmask(zone: &Zone, named: Key) -> Result<Key, Refusal> {
    if !zone.settings().is_masked_name(&named) {
        return Ok(named);
    }
    let name = String::from_utf8_lossy(&named);
    let mut found = zone.masked_keys(&name).await.into_iter();
    let refused = |status, message: &str| {
        let remedy =
            "the zone has mask_keys: write the key itself, or a name of /api/zones/{zone}/keys";
        Err(reply::refusal(status, format!("{message}; {remedy}")))
    };
    match (found.next(), found.next()) {
        (Some(key), None) => Ok(key),
        (None, _) => refused(
            StatusCode::NOT_FOUND,
            "no known key has this masked name; masked names change at a restart",
        ),
        (Some(_), Some(_)) => refused(StatusCode::CONFLICT, "several keys have this masked name"),
    }
}

/// Parses the zone and the key of a path.
///
/// The path is taken as it was sent: the router would treat an encoded slash as a separator. The
/// key is `None` if its text is not a valid escaped key.
pub(crate) fn parse_path(path: &str) -> (String, Option<Key>) {
    let rest = path.strip_prefix("/api/zones/").unwrap_or_default();
    let (zone, key) = rest.split_once("/keys/").unwrap_or((rest, ""));
    let zone = percent_decode_str(zone).decode_utf8_lossy().into_owned();
    let key = percent_decode_str(key).decode_utf8().ok();
    let key = key.and_then(|key| {
        if key == NEW_KEYS_NAME {
            return Some(Key::from(NEW_KEYS));
        }
        // An empty text is not the key of any client.
        unescape(&key).filter(|key| !key.is_empty()).map(Key::from)
    });
    (zone, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_any_key() {
        for (path, key) in [
            ("/api/zones/z/keys/192.0.2.1", &b"192.0.2.1"[..]),
            ("/api/zones/z/keys/%2F..%2F%3F%23%25", b"/../?#%"),
            ("/api/zones/z/keys/a/keys/b", b"a/keys/b"),
            ("/api/zones/z/keys/%3Cscript%3E%22'", b"<script>\"'"),
            (
                "/api/zones/z/keys/%5CxFF%5Cx0A%5C%5C%5C%5Cx41",
                b"\xff\n\\\\x41",
            ),
            ("/api/zones/z/keys/%C3%A9+", "é+".as_bytes()),
            ("/api/zones/z/keys/%5C(new%20keys)", b""),
            ("/api/zones/z/keys/(new%20keys)", b"(new keys)"),
        ] {
            let expected = ("z".to_owned(), Some(Key::from(key)));
            assert_eq!(parse_path(path), expected, "{path}");
        }
        for path in [
            "/api/zones/z/keys/%5C",
            "/api/zones/z/keys/%FF",
            "/api/zones/z/keys/",
        ] {
            assert_eq!(parse_path(path), ("z".to_owned(), None), "{path}");
        }
    }
}

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use super::zones::{find, no_such_zone};
use crate::actors::{Key, Order, Waiters};
use crate::admin::{Admin, reply};
use crate::observe::escape::{escape_unquoted, unescape};

/// Most keys in one list.
const MOST: usize = 1_000;

#[derive(Deserialize)]
struct Listing {
    #[serde(default)]
    sort: Sort,
    #[serde(default = "twenty")]
    limit: usize,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum Sort {
    #[default]
    Depth,
    Excess,
    OldestWait,
}

fn twenty() -> usize {
    20
}

#[derive(Serialize)]
struct Keys {
    keys: Vec<KeyView>,
}

#[derive(Serialize)]
struct KeyView {
    key: String,
    depth: usize,
    /// Running requests, of those that a limit with `in_flight` bounds.
    in_flight: usize,
    excess: f64,
    oldest_wait_seconds: f64,
    state: &'static str,
    /// The name of its plan; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
}

#[derive(Deserialize)]
struct Forgetting {
    #[serde(default)]
    drop: bool,
}

#[derive(Serialize)]
struct Forgotten {
    forgotten: bool,
    dropped: usize,
}

pub(super) async fn list(
    request: HttpRequest,
    admin: Data<Admin>,
    zone: Path<String>,
) -> HttpResponse {
    let listing = match Query::<Listing>::from_query(request.query_string()) {
        Ok(listing) if (1..=MOST).contains(&listing.limit) => listing.into_inner(),
        Ok(listing) => {
            let limit = listing.limit;
            return reply::bad_query(format!("limit is {limit}; it must be from 1 to {MOST}"));
        }
        Err(error) => {
            return reply::bad_query(format!(
                "sort must be depth, excess or oldest_wait, and limit a number from 1 to {MOST}: {error}"
            ));
        }
    };
    let Some(gateway) = admin.gateway() else {
        return reply::not_now();
    };
    let Some((_, zone)) = find(&gateway, &zone) else {
        return no_such_zone(&gateway, &zone);
    };
    let order = match listing.sort {
        Sort::Depth => Order::Depth,
        Sort::Excess => Order::Excess,
        Sort::OldestWait => Order::OldestWait,
    };
    let states = zone.keys(order, listing.limit).await.into_iter();
    let plans = &zone.settings().plans;
    let keys = states.map(|state| KeyView {
        plan: plans.name_of(&state.key).map(str::to_owned),
        key: escape_unquoted(&state.key),
        depth: state.depth,
        in_flight: state.in_flight,
        excess: state.excess,
        oldest_wait_seconds: state.oldest_wait.as_secs_f64(),
        state: if state.active { "active" } else { "parked" },
    });
    reply::ok(&Keys {
        keys: keys.collect(),
    })
}

pub(super) async fn forget(request: HttpRequest, admin: Data<Admin>) -> HttpResponse {
    let forgetting = match Query::<Forgetting>::from_query(request.query_string()) {
        Ok(forgetting) => forgetting,
        Err(error) => return reply::bad_query(format!("drop must be true or false: {error}")),
    };
    let Some(gateway) = admin.gateway() else {
        return reply::not_now();
    };
    let (zone, key) = named(request.uri().path());
    let Some((_, zone)) = find(&gateway, &zone) else {
        return no_such_zone(&gateway, &zone);
    };
    let waiters = if forgetting.drop {
        Waiters::Rejected
    } else {
        Waiters::Stay
    };
    let forgotten = match key {
        Some(key) => zone.forget(key, waiters).await,
        None => None,
    };
    match forgotten {
        Some(dropped) => reply::ok(&Forgotten {
            forgotten: true,
            dropped,
        }),
        None => reply::error(
            StatusCode::NOT_FOUND,
            "the zone has no such key; write the key as the list of keys shows it, percent-encoded",
        ),
    }
}

/// The zone and the key that a path names.
///
/// It reads the path as it was sent, because a router would treat an encoded slash as a separator.
/// The key is `None` if its text is not a valid escaped key.
fn named(path: &str) -> (String, Option<Key>) {
    let rest = path.strip_prefix("/api/zones/").unwrap_or_default();
    let (zone, key) = rest.split_once("/keys/").unwrap_or((rest, ""));
    let zone = percent_decode_str(zone).decode_utf8_lossy().into_owned();
    let key = percent_decode_str(key).decode_utf8().ok();
    (zone, key.and_then(|key| unescape(&key)).map(Key::from))
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
        ] {
            let expected = ("z".to_owned(), Some(Key::from(key)));
            assert_eq!(named(path), expected, "{path}");
        }
        for path in ["/api/zones/z/keys/%5C", "/api/zones/z/keys/%FF"] {
            assert_eq!(named(path), ("z".to_owned(), None), "{path}");
        }
    }
}

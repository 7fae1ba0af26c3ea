use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use http::uri::PathAndQuery;

use super::{Fields, Names, Node, backoff, check_name, index, named, url, values};
use crate::config::{Health, HostRule, Http2, Origin, StoreKind, schema};
use crate::limit::{Algorithm, Class, MAX_CLASS_WEIGHT, Moment, Rate};
use crate::store::Pace;

/// Largest `max_in_flight`, far above what a machine can have open.
const MOST_IN_FLIGHT: usize = 1_000_000_000;
/// Largest `queue` and `max_queue`: each waiting request takes some kilobytes.
const MOST_WAITING: NonZeroUsize = NonZeroUsize::new(10_000_000).unwrap();
const QUEUE: NonZeroUsize = NonZeroUsize::new(100).unwrap();
const MAX_QUEUE: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// Most gateways that share an origin.
const MOST_GATEWAYS: u32 = 1024;
/// Most classes of an origin. A departure looks at each.
const MOST_CLASSES: usize = 8;
const MAX_HEADER_SIZE: usize = 64 * 1024;
const ON_STORE_FAILURE: &str = "this belongs to zones; while Redis is out, an origin goes on with this gateway's part of its rate, which gateways tells until Redis has; remove on_store_failure";
const LEASE: &str =
    "this belongs to zones; the gate of an origin takes its slots ahead by itself; remove lease";

/// Reads the entries of `[origins]`.
pub(super) fn read<'r>(entries: &[Node<'r>], zones: &[&str]) -> (Names<'r>, Vec<Option<Origin>>) {
    named("origins", &schema::ORIGIN, entries, |fields, name| {
        Some(origin(fields, name, zones))
    })
}

fn origin(mut fields: Fields, name: String, zones: &[&str]) -> Origin {
    const EXAMPLE: &str = "[\"http://127.0.0.1:9000\"]";
    let servers = fields.required("servers", EXAMPLE, |node| {
        values::filled(EXAMPLE, node)?;
        values::list(EXAMPLE, url::read)(node)
    });
    let timeout = |seconds| Duration::from_secs(seconds);
    let title = format!("[origins.{name}.health]");
    let backoff_title = format!("[origins.{name}.backoff]");
    let queue_timeout = fields.or("queue_timeout", timeout(5), values::duration);
    let rate = fields.optional("rate", Rate::UNLIMITED, values::rate_or_unlimited);
    let store = fields.optional("store", StoreKind::Memory, |node| {
        store(node, rate, queue_timeout)
    });
    let gateways = fields
        .get("gateways")
        .and_then(|node| gateways(node, store));
    fields.lacks("on_store_failure", ON_STORE_FAILURE);
    fields.lacks("lease", LEASE);
    let origin = Origin {
        name,
        servers: servers.unwrap_or_default(),
        connect_timeout: fields.or("connect_timeout", timeout(1), values::timeout),
        response_timeout: fields.or("response_timeout", timeout(60), values::timeout),
        body_timeout: fields.or("body_timeout", timeout(5 * 60), values::timeout),
        tunnel_timeout: fields.or("tunnel_timeout", timeout(60 * 60), values::timeout),
        max_header_size: fields.or("max_header_size", MAX_HEADER_SIZE, values::head_size),
        rate: rate.filter(|rate| !rate.is_unlimited()),
        store: store.unwrap_or_default(),
        gateways,
        max_in_flight: NonZeroUsize::new(fields.or(
            "max_in_flight",
            0,
            values::whole(0..=MOST_IN_FLIGHT),
        )),
        classes: fields.or("classes", Vec::new(), classes),
        share: fields
            .get("share")
            .and_then(|node| index(node, "zones", zones)),
        queue: fields.or("queue", QUEUE, values::at_least_one(MOST_WAITING)),
        max_queue: fields.or("max_queue", MAX_QUEUE, values::at_least_one(MOST_WAITING)),
        queue_timeout,
        hold: fields.or("hold", Duration::ZERO, |node| hold(node, queue_timeout)),
        max_fails: fields.or("max_fails", 3, values::whole(1..=u32::MAX)),
        fail_timeout: fields.or("fail_timeout", timeout(10), values::timeout),
        keep_alive: fields.or("keep_alive", 256, values::whole(0..=u32::MAX as usize)),
        host: fields.or("host", HostRule::Preserve, host),
        http2: fields.or("http2", Http2::Auto, values::choice(&Http2::NAMED)),
        backoff: fields.get("backoff").and_then(|node| {
            Some(backoff::read(Fields::of(
                node,
                backoff_title,
                &schema::BACKOFF,
            )?))
        }),
        health: fields
            .get("health")
            .and_then(|node| health(Fields::of(node, title, &schema::HEALTH)?)),
    };
    fields.finish();
    origin
}

/// Reads `store`. What is shared is the rate, and each request waits for Redis.
///
/// `rate`: `None` if it is wrong, which is told already.
fn store(node: Node, rate: Option<Rate>, queue_timeout: Duration) -> Option<StoreKind> {
    let store = values::choice(&StoreKind::NAMED)(node)?;
    if store == StoreKind::Memory {
        return Some(store);
    }
    if rate.is_some_and(Rate::is_unlimited) {
        node.wrong(
            "gateways share the rate of an origin; give it one such as rate = \"200r/s\", or remove store",
        );
    } else if let Some(rate) = rate
        && let Err(unkept) = Pace::new(rate, Algorithm::LeakyBucket, Moment::default())
    {
        node.wrong(&unkept.to_string());
    }
    if queue_timeout.is_zero() {
        node.wrong(
            "a request waits until Redis has given it a slot; raise queue_timeout above \"0\", or remove store",
        );
    }
    Some(store)
}

/// Reads `gateways`, which says something only where they share a rate.
fn gateways(node: Node, store: Option<StoreKind>) -> Option<NonZeroU32> {
    let gateways = values::whole(1..=MOST_GATEWAYS)(node)?;
    if store == Some(StoreKind::Memory) {
        node.wrong("only gateways that share a rate are counted; add store = \"redis\", or remove gateways");
    }
    NonZeroU32::new(gateways)
}

/// Reads `hold`. Where no request waits, none can be held.
fn hold(node: Node, queue_timeout: Duration) -> Option<Duration> {
    let hold = values::duration(node)?;
    if !hold.is_zero() && queue_timeout.is_zero() {
        node.wrong("no request waits while queue_timeout is \"0\"; raise it, or remove hold");
    }
    Some(hold)
}

/// Reads `[origins.NAME.classes]`.
fn classes(node: Node) -> Option<Vec<Class>> {
    const WHAT: &str = "a table of weights such as { interactive = 8, batch = 1 }";
    let Some(entries) = node.entries() else {
        return node.expected(WHAT);
    };
    if entries.is_empty() {
        node.wrong(&format!("the table is empty; write {WHAT}, or remove it"));
    }
    if entries.len() > MOST_CLASSES {
        node.wrong(&format!(
            "an origin has at most {MOST_CLASSES} classes; found {}",
            entries.len()
        ));
    }
    let class = |entry: &Node| {
        check_name(*entry);
        let weight = values::whole(1..=MAX_CLASS_WEIGHT)(*entry)?;
        Some(Class {
            name: entry.name.into(),
            weight,
        })
    };
    // All of them, so that one that is wrong hides no other.
    let classes: Vec<Option<Class>> = entries.iter().map(class).collect();
    classes.into_iter().collect()
}

fn host(node: Node) -> Option<HostRule> {
    const WHAT: &str = "\"preserve\", \"origin\", or a host name such as \"app.internal\"";
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    match node.value.as_str() {
        Some("preserve") => Some(HostRule::Preserve),
        Some("origin") => Some(HostRule::Origin),
        Some(name) if !name.is_empty() && name.chars().all(fits) => {
            Some(HostRule::Literal(name.to_owned()))
        }
        _ => node.expected(WHAT),
    }
}

/// Reads `[origins.NAME.health]`; `None` if it has no path.
fn health(mut fields: Fields) -> Option<Health> {
    let path = fields.required("path", "\"/healthz\"", |node| {
        values::parsed(node, "a path such as \"/healthz\"", health_path)
    });
    let count = || values::whole(1..=u32::MAX);
    let interval = fields.or("interval", Duration::from_secs(5), values::timeout);
    let timeout = fields.or("timeout", Duration::from_secs(1), values::timeout);
    let unhealthy_after = fields.or("unhealthy_after", 3, count());
    let healthy_after = fields.or("healthy_after", 1, count());
    fields.finish();
    Some(Health {
        path: path?,
        interval,
        timeout,
        unhealthy_after,
        healthy_after,
    })
}

fn health_path(text: &str) -> Result<PathAndQuery, &'static str> {
    const FORM: &str =
        "a path begins with /, and is written as in a request: no blanks, quotes or #";
    let fits = |b: u8| b.is_ascii_graphic() && b != b'#';
    if !text.starts_with('/') || !text.bytes().all(fits) {
        return Err(FORM);
    }
    text.parse().map_err(|_| FORM)
}

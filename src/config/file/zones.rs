use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::{Fields, Names, Node, named, plans, values};
use crate::config::{KeyError, KeyTemplate, OnStoreFailure, Plans, StoreKind, Zone, schema};
use crate::limit::{Algorithm, Moment, Rate, show_duration};
use crate::store::Pace;

const MAX_KEYS: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();
const MOST_KEYS: NonZeroUsize = NonZeroUsize::new(u32::MAX as usize).unwrap();

/// Reads the entries of `[zones]`.
///
/// Also returns the values that name classes of origins.
pub(super) fn read<'r>(entries: &[Node<'r>]) -> (Names<'r>, Vec<Option<Zone>>, Vec<Node<'r>>) {
    let classes = RefCell::new(Vec::new());
    let (names, zones) = named("zones", schema::ZONE, entries, |fields, name| {
        zone(fields, name, &mut classes.borrow_mut())
    });
    (names, zones, classes.into_inner())
}

fn zone<'r>(mut fields: Fields<'r>, name: String, classes: &mut Vec<Node<'r>>) -> Option<Zone> {
    let key = fields.required("key", "\"$remote_addr\"", key_template);
    let mut rate_node = None;
    let rate = fields.required("rate", "\"10r/s\"", |node| {
        rate_node = Some(node);
        values::rate_or_unlimited(node)
    });
    let algorithm = fields.or(
        "algorithm",
        Algorithm::default(),
        values::choice(&Algorithm::NAMED),
    );
    let store = fields.optional(
        "store",
        StoreKind::default(),
        values::choice(&StoreKind::NAMED),
    );
    let on_store_failure = fields.or(
        "on_store_failure",
        OnStoreFailure::default(),
        values::choice(&OnStoreFailure::NAMED),
    );
    let lease = fields.or("lease", Duration::ZERO, |node| {
        lease(node, store, algorithm)
    });
    let store = store.unwrap_or_default();
    let can_count = |node: Node, rate: Rate| {
        let reason = unfit(algorithm, rate).or_else(|| unkept(store, algorithm, rate));
        let Some(reason) = reason else {
            return true;
        };
        if node.is_secret() {
            let found = node.found();
            node.tell(&format!(
                "{algorithm} cannot count at this rate in this store; found {found}"
            ));
        } else {
            node.wrong(&reason);
        }
        false
    };
    let rate = rate.filter(|rate| rate_node.is_none_or(|node| can_count(node, *rate)));
    let max_keys = fields.or("max_keys", MAX_KEYS, values::at_least_one(MOST_KEYS));
    let new_keys = fields.or("new_keys", Rate::UNLIMITED, values::rate_or_unlimited);
    let idle_timeout = fields.or("idle_timeout", Duration::from_secs(60), values::duration);
    let ipv6_prefix = fields.or("ipv6_prefix", 64, values::whole(0..=128));
    let networks = values::list("[\"192.0.2.0/24\"]", values::network);
    let exempt = fields.or("exempt", Vec::new(), networks);
    // A wrong value may have meant true.
    let mask_keys = fields.or("mask_keys", false, |node| {
        Some(values::boolean(node).unwrap_or(true))
    });
    let hides_keys = mask_keys || fields.shared().masks(&name);
    let plans = fields.get("plans").map_or(Some(Plans::default()), |node| {
        let of_zone = plans::OfZone {
            name: &name,
            algorithm,
            fits: &can_count,
            hides_keys,
        };
        plans::read(node, &of_zone, classes)
    });
    fields.finish();
    Some(Zone {
        name,
        key: key?,
        rate: rate?,
        algorithm,
        max_keys,
        idle_timeout,
        ipv6_prefix,
        exempt,
        store,
        on_store_failure,
        lease,
        plans: plans?,
        mask_keys,
        new_keys: (!new_keys.is_unlimited()).then_some(new_keys),
    })
}

/// The longest lease: for so long places can stay unused after a gateway is killed.
const LONGEST_LEASE: Duration = Duration::from_secs(1);

/// Reads how long places are taken ahead from the store.
fn lease(node: Node, store: Option<StoreKind>, algorithm: Algorithm) -> Option<Duration> {
    let length = values::duration(node)?;
    let wrong = if length.is_zero() {
        return Some(length);
    } else if store == Some(StoreKind::Memory) {
        "a zone in memory has all its places here; remove lease, or set store = \"redis\""
            .to_owned()
    } else if algorithm == Algorithm::SlidingWindowLog {
        "sliding_window_log counts each request at its own moment, and a place that is taken ahead would count too early and let more through; remove lease, or choose sliding_window_counter".to_owned()
    } else if length > LONGEST_LEASE {
        let (most, found) = (show_duration(LONGEST_LEASE), node.found());
        format!(
            "a lease is at most {most}, because places that it leaves unused are lost for so long; found {found}"
        )
    } else {
        return Some(length);
    };
    node.wrong(&wrong);
    None
}

fn key_template(node: Node) -> Option<KeyTemplate> {
    let Some(text) = node.value.as_str() else {
        return node.expected("variables such as \"$remote_addr\"");
    };
    let wrong = match KeyTemplate::parse(text) {
        Ok(key) => return Some(key),
        Err(wrong) => wrong,
    };
    for error in wrong {
        let of_environment = match &error {
            KeyError::Unknown(name) if text.contains(&format!("${{{name}}}")) => {
                "; a key takes nothing of the environment"
            }
            _ => "",
        };
        node.wrong(&format!("{error}{of_environment}; found {}", node.found()));
    }
    None
}

/// Most requests in a period for `sliding_window_log`.
///
/// It remembers the time of each request, and more of them would take too much memory for each
/// key.
const LONGEST_LOG: u32 = 100_000;

impl Zone {
    /// Why the zone cannot count at this rate, if it cannot.
    #[must_use]
    pub fn unfit(&self, rate: Rate) -> Option<String> {
        let fits = unfit(self.algorithm, rate);
        fits.or_else(|| unkept(self.store, self.algorithm, rate))
    }
}

/// Why the algorithm cannot count at this rate, if it cannot: windows count whole requests.
fn unfit(algorithm: Algorithm, rate: Rate) -> Option<String> {
    if rate.is_unlimited() && !algorithm.queues() {
        return Some(format!(
            "a zone that counts by {algorithm} needs a rate; remove algorithm, or give a rate such as \"10r/s\""
        ));
    }
    if !algorithm.has_windows() {
        return None;
    }
    if !rate.is_whole() {
        return Some(format!(
            "{algorithm} counts whole requests in each period; choose a longer one, such as \"1r/2s\" for \"0.5r/s\"; found \"{rate}\""
        ));
    }
    let remembered = algorithm == Algorithm::SlidingWindowLog;
    if remembered && rate.whole_count() > Some(LONGEST_LOG) {
        return Some(format!(
            "sliding_window_log remembers the time of each request of a period, at most {LONGEST_LOG}; choose a shorter period, or sliding_window_counter; found \"{rate}\""
        ));
    }
    None
}

/// Why the zone's store cannot count at this rate, if it cannot.
fn unkept(store: StoreKind, algorithm: Algorithm, rate: Rate) -> Option<String> {
    match store {
        StoreKind::Memory => None,
        StoreKind::Redis if rate.is_unlimited() => {
            Some("without a rate there is nothing to keep in Redis; remove store, or give a rate such as \"10r/s\"".to_owned())
        }
        StoreKind::Redis => {
            let pace = Pace::new(rate, algorithm, Moment::default());
            pace.err().map(|unkept| format!("{unkept}; found \"{rate}\""))
        }
    }
}

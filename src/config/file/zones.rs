use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use super::{Fields, Names, Node, named, plans, values};
use crate::config::{OnStoreFailure, Plans, StoreKind, Zone};
use crate::limit::{Algorithm, Moment, Rate};
use crate::store::Pace;

const MAX_KEYS: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();
const MOST_KEYS: NonZeroUsize = NonZeroUsize::new(u32::MAX as usize).unwrap();

/// Reads `[zones]`. Names of files are relative to `folder`.
///
/// Also returns the values that name classes of origins.
pub(super) fn read<'r>(
    node: Node<'r>,
    folder: &Path,
) -> (Names<'r>, Vec<Option<Zone>>, Vec<Node<'r>>) {
    let classes = RefCell::new(Vec::new());
    let (names, zones) = named(node, |fields, name| {
        zone(fields, name, folder, &mut classes.borrow_mut())
    });
    (names, zones, classes.into_inner())
}

fn zone<'r>(
    mut fields: Fields<'r>,
    name: String,
    folder: &Path,
    classes: &mut Vec<Node<'r>>,
) -> Option<Zone> {
    let key = fields.required("key", "\"$remote_addr\"", |node| {
        values::parsed(node, "variables such as \"$remote_addr\"", str::parse)
    });
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
    let store = fields.or(
        "store",
        StoreKind::default(),
        values::choice(&StoreKind::NAMED),
    );
    let on_store_failure = fields.or(
        "on_store_failure",
        OnStoreFailure::default(),
        values::choice(&OnStoreFailure::NAMED),
    );
    let can_count = |node: Node, rate: Rate| {
        fits(node, algorithm, rate) && can_be_kept(node, store, algorithm, rate)
    };
    let rate = rate.filter(|rate| rate_node.is_none_or(|node| can_count(node, *rate)));
    let max_keys = fields.or("max_keys", MAX_KEYS, values::at_least_one(MOST_KEYS));
    let new_keys = fields.or("new_keys", Rate::UNLIMITED, values::rate_or_unlimited);
    let idle_timeout = fields.or("idle_timeout", Duration::from_secs(60), values::duration);
    let ipv6_prefix = fields.or("ipv6_prefix", 64, values::whole(0..=128));
    let networks = values::list("[\"192.0.2.0/24\"]", values::network);
    let exempt = fields.or("exempt", Vec::new(), networks);
    let plans = fields.get("plans").map_or(Some(Plans::default()), |node| {
        let of_zone = plans::OfZone {
            name: &name,
            algorithm,
            fits: &can_count,
            folder,
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
        plans: plans?,
        new_keys: (!new_keys.is_unlimited()).then_some(new_keys),
    })
}

/// Most requests in a period for `sliding_window_log`.
///
/// It remembers the time of each request, and more of them would take too much memory for each
/// key.
const LONGEST_LOG: u32 = 100_000;

/// Whether the algorithm can count at this rate: windows count whole requests.
fn fits(node: Node, algorithm: Algorithm, rate: Rate) -> bool {
    if rate.is_unlimited() && !algorithm.queues() {
        node.wrong(&format!(
            "a zone that counts by {algorithm} needs a rate; remove algorithm, or give a rate such as \"10r/s\""
        ));
        return false;
    }
    if !algorithm.has_windows() {
        return true;
    }
    if !rate.is_whole() {
        node.wrong(&format!(
            "{algorithm} counts whole requests in each period; choose a longer one, such as \"1r/2s\" for \"0.5r/s\"; found \"{rate}\""
        ));
        return false;
    }
    let remembered = algorithm == Algorithm::SlidingWindowLog;
    if remembered && rate.whole_count() > Some(LONGEST_LOG) {
        node.wrong(&format!(
            "sliding_window_log remembers the time of each request of a period, at most {LONGEST_LOG}; choose a shorter period, or sliding_window_counter; found \"{rate}\""
        ));
        return false;
    }
    true
}

/// Whether the zone's store can count at this rate.
fn can_be_kept(node: Node, store: StoreKind, algorithm: Algorithm, rate: Rate) -> bool {
    match store {
        StoreKind::Memory => true,
        StoreKind::Redis if rate.is_unlimited() => {
            node.wrong("without a rate there is nothing to keep in Redis; remove store, or give a rate such as \"10r/s\"");
            false
        }
        StoreKind::Redis => match Pace::new(rate, algorithm, Moment::default()) {
            Ok(_) => true,
            Err(unkept) => {
                node.wrong(&format!("{unkept}; found \"{rate}\""));
                false
            }
        },
    }
}

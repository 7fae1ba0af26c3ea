use std::num::NonZeroUsize;
use std::time::Duration;

use super::{Fields, Names, Node, named, values};
use crate::config::{Zone, later};

const MAX_KEYS: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();
const MOST_KEYS: NonZeroUsize = NonZeroUsize::new(u32::MAX as usize).unwrap();

/// Reads `[zones]`.
pub(super) fn read(node: Node) -> (Names, Vec<Option<Zone>>) {
    named(node, zone)
}

fn zone(mut fields: Fields, name: String) -> Option<Zone> {
    let key = fields.required("key", "\"$remote_addr\"", |node| {
        values::parsed(node, "variables such as \"$remote_addr\"", str::parse)
    });
    let rate = fields.required("rate", "\"10r/s\"", |node| {
        values::parsed(node, "a rate such as \"10r/s\"", str::parse)
    });
    if let Some(node) = fields.get("algorithm") {
        algorithm(node);
    }
    let max_keys = fields.or("max_keys", MAX_KEYS, values::at_least_one(MOST_KEYS));
    let idle_timeout = fields.or("idle_timeout", Duration::from_secs(60), values::duration);
    let ipv6_prefix = fields.or("ipv6_prefix", 64, values::whole(0..=128));
    let networks = values::list("[\"192.0.2.0/24\"]", values::network);
    let exempt = fields.or("exempt", Vec::new(), networks);
    fields.finish(later::ZONE);
    Some(Zone {
        name,
        key: key?,
        rate: rate?,
        max_keys,
        idle_timeout,
        ipv6_prefix,
        exempt,
    })
}

fn algorithm(node: Node) {
    match node.value.as_str() {
        Some("leaky_bucket") => {}
        Some(name) if later::ALGORITHMS.contains(&name) => {
            node.wrong(&format!(
                "only leaky_bucket is known to this version; found \"{name}\""
            ));
        }
        _ => {
            node.expected::<()>("\"leaky_bucket\"");
        }
    }
}

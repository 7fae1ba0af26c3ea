//! `[zones.NAME]`: a set of buckets, one for each value of a key. A bucket limits a rate.
//!
//! In `table!`, an entry is a field of the file: its type, its reader with the default, when a
//! change takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as
//! `RATE`).

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use ipnet::IpNet;
use limit::{Algorithm, Limit, Moment, Rate};

use super::jwt::note_claims;
use super::names::read_named;
use super::plan;
use super::prelude::*;
use crate::redis::StoreRate;
use crate::{
    KeyError, KeyTemplate, OnStoreFailure, Plan, Plans, Settings, StoreKind, embedded_ipv4,
    has_client,
};

table! {
    /// `[zones.NAME]`: one bucket for each value of a key.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Zone {
        /// Letters, digits, `_`, `-` and `.`.
        name: String;
        key: KeyTemplate = KEY.required("\"$remote_addr\""), Now,
            "Requests with the same value of this key share a bucket: variables such as \"$remote_addr\", and text.";
        /// For window algorithms: requests per window, and the length of the window. Unlimited only
        /// with the leaky bucket in memory.
        rate: Rate = RATE.required("\"10r/s\""), Now,
            "Requests that a bucket lets through, such as \"10r/s\", \"30r/m\" or \"5r/250ms\"; \"none\": the zone only names keys and plans, or bounds what runs.";
        algorithm: Algorithm = word().with_default("\"leaky_bucket\""), Now,
            "How requests are counted.";
        max_keys: NonZeroUsize = whole::<_, 1, U32>().with_default("100000"), Now,
            "Remembered keys, over all workers.";
        /// `None`: every unknown key gets its own bucket.
        new_keys: Option<Rate> = RATE_OR_NONE.with_default("\"none\""), Now,
            "Unknown keys that get buckets of their own; past it they share one.";
        idle_timeout: Duration = DURATION.with_default("\"60s\""), Now,
            "An idle key whose bucket has drained is forgotten after this time.";
        ipv6_prefix: u8 = whole::<_, 0, 128>().with_default("64"), NextRequest,
            "IPv6 addresses in keys are cut to this many bits.";
        exempt: Vec<IpNet> = NETWORKS.with_default("[]"), NextRequest,
            "Clients that this zone never limits.";
        mask_keys: bool = MASK.with_default("false"), Now,
            "The page, the API, metrics and logs show masked names instead of keys.";
        /// Other numbers for some keys.
        plans: Plans;
        + plans: Field::of_form(Form::ByName(NAME, &Form::Table(Plan::TABLE))), Now, "Other numbers for some keys.", show_plans;
        store: StoreKind = word().with_default("\"memory\""), Now,
            "Where the buckets are.";
        /// Without effect on a zone in memory.
        on_store_failure: OnStoreFailure = word().with_default("\"local\""), Now,
            "What happens while Redis does not answer.";
        /// Zero for a zone in memory. After a gateway is killed, its leased slots stay unused for
        /// up to this duration.
        lease: Duration = duration::<0, SECOND>().with_default("\"0\""), Now,
            "How long ahead this gateway leases slots of busy keys from Redis, up to 1s.";
        /// Without effect on a zone in memory.
        orphan: Duration = TIMEOUT.with_default("\"75s\""), Now,
            "How long permits of in_flight stay withheld in Redis if their gateway vanishes: longer than the longest request.";
    }
}

/// Key of a zone. It is shown unchanged.
///
/// A `$` in it begins a variable of the request, not of the environment.
pub(super) const KEY: Kind<KeyTemplate> = Kind {
    form: NOT_EMPTY_FORM,
    read: |node| read_template(node, key_text(node)?),
    show: |it| show_bare(&toml_string(&it.to_string())),
};

/// `mask_keys` of a zone.
const MASK: Kind<bool> = Kind {
    // A wrong value may have been meant as `true`.
    read: |node| Some(values::boolean(node).unwrap_or(true)),
    ..BOOLEAN
};

/// Shows the plans of a zone, each with a comment about the number of its keys.
fn show_plans(zone: &Zone, settings: &Settings) -> Option<Shown> {
    let shown_plan = |(plan, count): (&Plan, usize)| {
        let keys = if count == 1 { "key" } else { "keys" };
        let mut rows: Rows = vec![(String::new(), Shown::Comment(format!("{count} {keys}")))];
        rows.extend(plan.shown_rows(settings));
        (plan.name.to_string(), Shown::Table(rows))
    };
    let plans = zone.plans.iter().zip(zone.plans.counts());
    let plans: Rows = plans.map(shown_plan).collect();
    (!plans.is_empty()).then_some(Shown::Table(plans))
}

/// Reads the entries of `[zones]`.
///
/// Also returns the values of plans that name classes of origins. They are checked once the origins
/// have been read.
pub(crate) fn read<'r>(entries: &[Node<'r>]) -> (Vec<Option<Zone>>, Vec<Node<'r>>) {
    let mut classes = Vec::new();
    let zones = read_named("zones", Zone::TABLE, entries, |mut fields, name| {
        let zone = Zone {
            name,
            ..Zone::read(&mut fields)
        };
        complete(fields, zone, &mut classes)
    });
    (zones, classes)
}

/// Reads the plans of a zone, and reports values that do not fit together.
///
/// `classes`: as in [`plan::read`].
fn complete<'r>(
    mut fields: Fields<'r>,
    mut zone: Zone,
    classes: &mut Vec<Node<'r>>,
) -> Option<Zone> {
    if !zone.lease.is_zero() {
        let is_local = zone.store == StoreKind::Memory && !fields.is_wrong("store");
        let is_log = zone.algorithm == Algorithm::SlidingWindowLog;
        fields.refuse_if(
            is_local,
            "lease",
            "a zone in memory has all its slots here; remove lease, or set store = \"redis\"",
        );
        fields.refuse_if(is_log, "lease", "sliding_window_log counts each request at its own moment, and a slot that is taken ahead would count too early and let more through; remove lease, or choose sliding_window_counter");
    }
    let rate = fields.valid_value("rate");
    let has_right_rate = rate.is_some_and(|node| zone.check_rate(node, zone.rate));
    let is_right = has_right_rate && !fields.is_wrong("key");
    let hides_keys = zone.mask_keys || fields.report.shared.masked_zones.contains(&zone.name);
    let plans = fields.get("plans").map_or(Some(Plans::default()), |node| {
        plan::read(node.hidden_if(hides_keys), &zone, classes)
    });
    fields.finish();
    zone.plans = plans?;
    is_right.then_some(zone)
}

/// Reads the text of a key.
pub(super) fn key_text(node: Node<'_>) -> Option<&str> {
    values::text_if(node, "variables such as \"$remote_addr\"", |_| true)
}

/// Reads a key that varies between requests. `why`: why a constant key is wrong, for the message.
pub(super) fn varying_key(node: Node, text: &str, why: &str) -> Option<KeyTemplate> {
    let key = read_template(node, text)?;
    if key.is_constant() {
        return node.refuse(&format!("without a variable {why}; found {}", node.found()));
    }
    Some(key)
}

/// Reads the key in `text`, which is the whole value or a part of it.
fn read_template(node: Node, text: &str) -> Option<KeyTemplate> {
    let errors = match KeyTemplate::parse(text) {
        Ok(key) => return note_claims(node, &key).then_some(key),
        Err(errors) => errors,
    };
    for error in errors {
        let hint = match &error {
            KeyError::Unknown(name) if text.contains(&format!("${{{name}}}")) => {
                "; a key takes nothing of the environment"
            }
            _ => "",
        };
        node.report_problem(&format!("{error}{hint}; found {}", node.found()));
    }
    None
}

words!(Algorithm);

/// Maximum requests per window for `sliding_window_log`.
///
/// The algorithm remembers the time of each request. More would take too much memory per key.
const MAX_LOG: u32 = 100_000;

impl Zone {
    /// Returns the rate of a key.
    pub fn rate_of(&self, key: &[u8]) -> Rate {
        let plan = self.plans.plan_of(key);
        plan.and_then(|plan| plan.rate).unwrap_or(self.rate)
    }

    /// Returns whether each key has the same rate as in `other`, the same zone in other settings.
    pub fn has_rates_of(&self, other: &Self) -> bool {
        self.rate == other.rate && self.plans.have_rates_of(&other.plans)
    }

    /// Returns whether no key has a rate: the zone only names keys, or bounds requests in flight.
    pub fn limits_no_rate(&self) -> bool {
        let mut rates = self.plans.iter().filter_map(|plan| plan.rate);
        self.rate.is_unlimited() && rates.all(Rate::is_unlimited)
    }

    /// Returns a limit of this zone as it applies to a key.
    pub fn limit_of(&self, key: &[u8], limit: Limit) -> Limit {
        self.limit_in(self.plans.index_of(key), limit)
    }

    /// Returns a limit of this zone as it applies to the keys of the plan with this index; `None`:
    /// to keys without a plan.
    pub fn limit_in(&self, plan: Option<usize>, limit: Limit) -> Limit {
        let plan = plan.and_then(|plan| self.plans.get(plan));
        plan.map_or(limit, |plan| plan.apply(limit, self.algorithm))
    }

    /// Returns the reason why the zone cannot count at this rate, if there is one.
    pub fn why_unfit(&self, rate: Rate) -> Option<String> {
        let algorithm = self.algorithm;
        Some(if rate.is_unlimited() && !algorithm.queues() {
            format!(
                "a zone that counts by {algorithm} needs a rate; remove algorithm, or give a rate such as \"10r/s\""
            )
        } else if algorithm.has_windows() && !rate.is_whole() {
            format!(
                "{algorithm} counts whole requests in each period; choose a longer one, such as \"1r/2s\" for \"0.5r/s\"; found \"{rate}\""
            )
        } else if algorithm == Algorithm::SlidingWindowLog && rate.whole_count() > Some(MAX_LOG) {
            format!(
                "sliding_window_log remembers the time of each request of a period, at most {MAX_LOG}; choose a shorter period, or sliding_window_counter; found \"{rate}\""
            )
        } else if self.store == StoreKind::Memory {
            return None;
        } else if rate.is_unlimited() {
            "a zone in Redis needs a rate; remove store, or give a rate such as \"10r/s\""
                .to_owned()
        } else {
            let problem = StoreRate::new(rate, algorithm, Moment::default()).err()?;
            format!("{problem}; found \"{rate}\"")
        })
    }

    /// Returns whether the zone can count at this rate. Reports a problem if not.
    pub(super) fn check_rate(&self, node: Node, rate: Rate) -> bool {
        let Some(reason) = self.why_unfit(rate) else {
            return true;
        };
        if node.is_secret() {
            // The reason would show the rate.
            let (algorithm, found) = (self.algorithm, node.found());
            node.report_as_is(&format!(
                "{algorithm} cannot count at this rate in this store; found {found}"
            ));
        } else {
            node.report_problem(&reason);
        }
        false
    }

    /// Returns whether requests of this client are never limited in this zone.
    pub fn is_exempt(&self, client: IpAddr) -> bool {
        has_client(&self.exempt, client)
    }

    /// Returns the address of a client as keys contain it: cut to `ipv6_prefix` bits if it is IPv6.
    ///
    /// A client that has one IPv6 address usually has all addresses of a prefix.
    pub fn cut(&self, address: IpAddr) -> IpAddr {
        cut_ipv6(address, self.ipv6_prefix)
    }
}

/// Returns the network that counts as one client: an IPv4 address, or an IPv6 prefix of 64 bits.
///
/// Used where no zone with its own `ipv6_prefix` applies.
pub fn client_network(address: IpAddr) -> IpAddr {
    cut_ipv6(address, 64)
}

/// Returns `address`, cut to `prefix` bits if it is IPv6.
///
/// A NAT64 address stands for the [IPv4 address in it](embedded_ipv4). Cut to its first 64 bits,
/// all of IPv4 would be one client.
pub fn cut_ipv6(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(whole) => {
            if let Some(client) = embedded_ipv4(address) {
                return client.into();
            }
            let cleared_bits = 128 - u32::from(prefix.min(128));
            let mask = u128::MAX.checked_shl(cleared_bits).unwrap_or(0);
            IpAddr::V6((whole.to_bits() & mask).into())
        }
    }
}

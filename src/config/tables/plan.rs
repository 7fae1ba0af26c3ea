//! `[zones.NAME.plans.NAME]`: a plan gives other limits to some keys of a zone.
//!
//! `plan_keys` collects the keys of all plans of a zone. In `table!`, an entry is a field of the
//! file: its type, its reader with the default, when a change takes effect, and its meaning (see
//! `table_settings`, and `kinds` for readers such as `RATE`).

use std::path::PathBuf;
use std::sync::Arc;

use limit::{Algorithm, Delay, Limit, MAX_WEIGHT, Rate};

use super::limit::CAPACITY;
use super::names::{NO_NAME, is_name};
use super::plan_keys::Keys;
use super::prelude::*;
use crate::{FileKind, Plans, Zone};

table! {
    /// `[zones.NAME.plans.NAME]`: other limits for some keys of a zone.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Plan {
        /// Letters, digits, `_`, `-` and `.`.
        name: Arc<str>;
        /// Keys written in the configuration file itself.
        keys: Vec<String>;
        + keys: Field::of_form(Form::UniqueList(&NOT_EMPTY_FORM, 0)).with_default("[]"), Now,
            "Keys with this plan.",
            |it, _| show_texts(&it.keys);
        /// Absolute path.
        file: Option<PathBuf> = FILE.optional(), Now,
            "A file with one key a line.";
        /// Unlimited only with the leaky bucket.
        rate: Option<Rate> = RATE.optional(), Now,
            "Rate of each of these keys. Default: the zone's.";
        /// Burst of each key, written as in a limit; `None`: the limit's burst.
        burst: Option<u32>;
        + burst: Field::of_form(BURST.form), NextRequest,
            "Burst of each of these keys, in every limit of the zone. Default: the limit's.",
            |it, _| show_bare(&it.burst?);
        weight: u32 = whole::<_, 1, { MAX_WEIGHT as u64 }>().with_default("1"), NextRequest,
            "Share at the gate of an origin that this zone shares.";
        class: Option<Arc<str>> = CLASS.optional(), NextRequest,
            "Class at such a gate. Default: the route's.";
    }
}

/// Name of a file with keys.
const FILE: Kind<PathBuf> = Kind {
    read: |node| {
        let what = "the name of a file such as \"gold.txt\"";
        values::named_file(node, FileKind::PlanKeys, what)
    },
    ..FILE_NAME
};

/// Burst in a zone with a queue: the number of requests that may exceed the rate.
const BURST: Kind<u32> = whole::<_, 0, U32>();

/// Name of an origin's class. The class need not exist.
pub(super) const CLASS: Kind<Arc<str>> = Kind {
    form: NOT_EMPTY_FORM,
    read: |node| {
        let what = "the name of a class such as \"batch\"";
        values::text_if(node, what, |name| !name.is_empty()).map(Arc::from)
    },
    show: show_text,
};

/// Reads `[zones.NAME.plans]`. If `node` is hidden, messages show no keys.
///
/// Values that name classes of origins are added to `classes`, to be checked later.
pub(super) fn read<'r>(node: Node<'r>, zone: &Zone, classes: &mut Vec<Node<'r>>) -> Option<Plans> {
    let what = format!("a table for each, such as [zones.{}.plans.gold]", zone.name);
    let entries = node.entries_or(&what)?;
    let mut keys = Keys::default();
    let mut plans = Vec::new();
    for (index, mut entry) in entries.into_iter().enumerate() {
        let is_named = is_name(entry.name);
        if entry.is_hidden && !(is_named && entry.value.is_table()) {
            // The name may be a key that is not meant as the name of a plan.
            entry.name = node.name;
        }
        if !is_named {
            entry.report_as_is(NO_NAME);
        }
        let title = format!("[zones.{}.plans.{}]", zone.name, entry.name);
        keys.names.push(entry.name);
        let fields = Fields::begin(entry, title, Plan::TABLE);
        let plan = fields.and_then(|it| read_plan(entry, it, index, zone, &mut keys, classes));
        plans.push(plan);
    }
    // Files are read after all lists. If a key is in a list and in a file, the message then names
    // the line in the file, which is harder to find.
    for (node, plan) in std::mem::take(&mut keys.files) {
        keys.read_file(node, plan);
    }
    let plans: Vec<Plan> = plans.into_iter().collect::<Option<_>>()?;
    Some(Plans::new(plans, keys.by_key))
}

/// Reads one plan: the entry `index` of the zone's plans. Its keys are added to `keys`.
fn read_plan<'r>(
    entry: Node<'r>,
    mut fields: Fields<'r>,
    index: usize,
    zone: &Zone,
    keys: &mut Keys<'r>,
    classes: &mut Vec<Node<'r>>,
) -> Option<Plan> {
    let mut plan = Plan::read(&mut fields);
    let (keys_node, file_node) = (fields.get("keys"), fields.peek("file"));
    let is_empty = |node: &Node| node.items().is_some_and(|items| items.is_empty());
    if keys_node.as_ref().is_none_or(is_empty) && file_node.is_none() {
        entry.report_as_is("the plan has no keys; add some such as keys = [\"alice\"], or file = \"gold.txt\" with one key a line");
    }
    let written = keys_node.map_or(Some(Vec::new()), |node| keys.read_list(node, index));
    keys.files.extend(file_node.map(|node| (node, index)));
    let fits_zone = match (fields.valid_value("rate"), plan.rate) {
        (Some(node), Some(rate)) => zone.check_rate(node, rate),
        _ => true,
    };
    let burst_node = fields.get("burst");
    let burst = burst_node.map_or(Some(None), |node| {
        read_burst(node, zone.algorithm).map(Some)
    });
    classes.extend(fields.valid_value("class"));
    let is_right = fields.finish() && fits_zone;
    plan.name = entry.name.into();
    plan.keys = written?;
    plan.burst = burst?;
    is_right.then_some(plan)
}

/// Reads `burst` of a plan. Reports one that the zone's algorithm does not have.
fn read_burst(node: Node, algorithm: Algorithm) -> Option<u32> {
    if algorithm.has_windows() {
        return node.refuse_as_is(&format!(
            "the zone counts by {algorithm}, which allows the requests of its rate in each period and no burst; remove burst"
        ));
    }
    let kind = if algorithm.queues() { BURST } else { CAPACITY };
    (kind.read)(node)
}

impl Plan {
    /// Returns whether a plan can have a field of this name.
    pub(crate) fn has_field(name: &str) -> bool {
        Self::TABLE.has(name)
    }

    /// Returns a limit of a route as it applies to this plan's keys.
    pub fn apply(&self, limit: Limit, algorithm: Algorithm) -> Limit {
        let count = self.rate.and_then(Rate::whole_count);
        let burst = match (algorithm.has_windows(), self.burst) {
            // A window lets the count of its rate through. The first request exceeds no rate.
            (true, _) => count.map(|count| count - 1),
            // The burst of a token bucket includes the request itself.
            (false, Some(burst)) if !algorithm.queues() => Some(burst.saturating_sub(1)),
            (false, burst) => burst,
        };
        let burst = burst.unwrap_or(limit.burst);
        let delay = match limit.delay {
            Delay::Above(delay) => Delay::Above(delay.min(burst)),
            Delay::Never => Delay::Never,
        };
        Limit {
            burst,
            delay,
            ..limit
        }
    }
}

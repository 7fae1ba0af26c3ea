use std::collections::BTreeSet;
use std::io;

use config::{self, KeyTemplate, short_key};
use gateway::replay::{Form, Line, add_to_key};
use limit::Moment;

use super::group::Group;
use super::order::Order;
use super::origin_load::OriginLoad;
use super::plan_source::PlanSource;

/// Prefix length to which IPv6 addresses in keys are cut, the default of a zone.
const IPV6_PREFIX: u8 = 64;

/// Most plans that are judged on their own. A further one counts as none.
const MAX_PLANS: usize = 32;

/// Maximum number of requests with a key. Each takes 16 bytes of a temporary file: 4 GB in all.
const MAX_REQUESTS: u64 = 250_000_000;

/// Reads requests and counts them.
pub struct Survey {
    facts: Facts,
    plan_source: PlanSource,
    /// The most keys that all groups together may have, and how many they have.
    most_keys: usize,
    known_keys: usize,
    /// Buffer for the key of the current request.
    key: Vec<u8>,
    /// The keys without a plan.
    rest: Group,
    /// The plans that were met, with their names.
    plans: Vec<(String, Group)>,
    order: Order<Item>,
    failure: Option<io::Error>,
    /// How many more requests may be counted.
    left: u64,
    /// How many seconds the clock of the first line is ahead of UTC.
    ///
    /// `clock` is that of the last line: it changes with daylight saving time.
    ahead: Option<i32>,
    clock: i32,
}

/// What is asked of a survey, and what it finds beside the groups of keys.
pub(super) struct Facts {
    pub(super) template: KeyTemplate,
    pub(super) zone: Option<String>,
    /// Whether the zone is one of a file.
    pub(super) is_of_file: bool,
    /// How many requests were of plans beyond [`MAX_PLANS`], and count as without one.
    pub(super) unplanned: u64,
    /// Whether the log names plans, and nobody has asked for them.
    pub(super) has_unasked_plans: bool,
    /// What all requests are to the origin, with a key or without.
    pub(super) load: OriginLoad,
    pub(super) untold: BTreeSet<String>,
    pub(super) keyless: u64,
    /// How many requests could not be put into order.
    pub(super) late: u64,
    pub(super) form: Option<Form>,
}

/// A request with a key that waits to be counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    /// The index of its plan.
    plan: Option<usize>,
    slot: u32,
}

/// The results of a survey.
pub(super) struct Surveyed {
    pub(super) facts: Facts,
    /// The keys without a plan.
    pub(super) rest: Group,
    /// The keys of each plan that was met, sorted by its name.
    pub(super) plans: Vec<(String, Group)>,
    /// How many seconds the log's clock is ahead of UTC, at the start and at the end of the log.
    pub(super) ahead: [i32; 2],
}

impl Survey {
    /// Starts a survey with keys made from `template`, with at most `most_keys` keys at once.
    ///
    /// Each plan may have a small part of them more, so that none is left without.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for temporary files.
    pub fn new(template: KeyTemplate, most_keys: usize) -> io::Result<Self> {
        let facts = Facts {
            template,
            zone: None,
            is_of_file: false,
            unplanned: 0,
            has_unasked_plans: false,
            load: OriginLoad::default(),
            untold: BTreeSet::new(),
            keyless: 0,
            late: 0,
            form: None,
        };
        Ok(Self {
            facts,
            plan_source: PlanSource::Nowhere,
            most_keys,
            known_keys: 0,
            key: Vec::new(),
            rest: Group::new(least_keys(most_keys))?,
            plans: Vec::new(),
            order: Order::new(),
            failure: None,
            left: MAX_REQUESTS,
            ahead: None,
            clock: 0,
        })
    }

    /// Takes the keys that the gateway logged for a zone, and their plans.
    ///
    /// Requests that another zone decided are left out.
    #[must_use]
    pub fn of_zone(mut self, zone: String) -> Self {
        self.facts.zone = Some(zone);
        self.plan_source = PlanSource::Log;
        self
    }

    /// Takes key and plans of a zone from a file.
    ///
    /// Its keys are those that the gateway logged for it. Where a log names no zone, they are made
    /// as the zone says.
    #[must_use]
    pub fn of_zone_in_file(mut self, zone: config::Zone) -> Self {
        self.facts.zone = Some(zone.name.clone());
        self.facts.template = zone.key.clone();
        self.facts.is_of_file = true;
        self.plan_source = PlanSource::File(Box::new(zone));
        self
    }

    /// The variables of the key that the logs do not contain.
    #[must_use]
    pub fn untold(&self) -> Vec<String> {
        self.facts
            .untold
            .iter()
            .map(|name| format!("${name}"))
            .collect()
    }

    /// The format of the first log that could be read.
    #[must_use]
    pub fn form(&self) -> Option<Form> {
        self.facts.form
    }

    /// Whether no request has had a key.
    #[must_use]
    pub fn is_keyless(&self) -> bool {
        self.rest.keys.slots() == 0 && self.plans.is_empty()
    }

    /// The time of a request and what to count, or `None` if it has no key.
    pub(super) fn item(&mut self, line: &Line) -> Option<(u64, Item)> {
        let ahead = line.recorded.as_ref().map(|recorded| recorded.ahead);
        self.ahead = self.ahead.or(ahead);
        self.clock = ahead.or(self.ahead).unwrap_or_default();
        self.facts.load.add(line);
        self.make_key(line);
        if self.key.is_empty() {
            self.facts.keyless += 1;
            return None;
        }
        let recorded = line.recorded.as_ref();
        self.facts.has_unasked_plans |= matches!(self.plan_source, PlanSource::Nowhere)
            && recorded.is_some_and(|recorded| recorded.plan.is_some());
        let plan = self.plan(line);
        let key = short_key(&self.key);
        let group = group_of(&mut self.rest, &mut self.plans, plan);
        let before = group.keys.slots();
        let slot = group.keys.slot(&key, self.known_keys < self.most_keys);
        self.known_keys += group.keys.slots() - before;
        Some((line.time.as_nanos(), Item { plan, slot }))
    }

    fn make_key(&mut self, line: &Line) {
        self.key.clear();
        let of_file = match &self.plan_source {
            PlanSource::File(zone) => Some(zone),
            PlanSource::Nowhere | PlanSource::Log => None,
        };
        match (&line.key, &line.recorded) {
            (Some(key), _) => self.key.extend_from_slice(key),
            (None, Some(recorded)) => match (&self.facts.zone, &recorded.keyed) {
                (Some(wanted), Some((zone, key))) => {
                    if wanted == zone {
                        self.key.extend_from_slice(key.as_bytes());
                    }
                }
                (Some(_), None) if of_file.is_none() => {}
                _ => {
                    let client = recorded.client.zip(of_file);
                    if client.is_some_and(|(client, zone)| zone.is_exempt(client)) {
                        return;
                    }
                    let (template, untold) = (&self.facts.template, &mut self.facts.untold);
                    let prefix = of_file.map_or(IPV6_PREFIX, |zone| zone.ipv6_prefix);
                    template.fill_into(&mut self.key, |variable, key| {
                        if !add_to_key(key, variable, prefix, line, recorded) {
                            untold.insert(variable.to_string());
                        }
                    });
                }
            },
            (None, None) => {}
        }
    }

    /// The index of the plan of a request with this key.
    fn plan(&mut self, line: &Line) -> Option<usize> {
        let name = self.plan_source.of(line, &self.key)?;
        let mut plans = self.plans.iter();
        if let Some(known) = plans.position(|(known, _)| **known == *name) {
            return Some(known);
        }
        let name = name.into_owned();
        if self.plans.len() == MAX_PLANS {
            self.facts.unplanned += 1;
            return None;
        }
        match Group::new(least_keys(self.most_keys)) {
            Ok(group) => self.plans.push((name, group)),
            Err(failure) => {
                self.failure.get_or_insert(failure);
                return None;
            }
        }
        Some(self.plans.len() - 1)
    }

    /// Sets the format of the lines. Only the first known format is kept.
    pub(super) fn set_form(&mut self, form: Option<Form>) {
        self.facts.form = self.facts.form.or(form);
    }

    /// Counts a request.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no more room for temporary files, or at more than
    /// [`MAX_REQUESTS`].
    pub(super) fn count(&mut self, time: u64, item: Item) -> io::Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.facts.load.pass(time);
        let left = self.left.checked_sub(1);
        self.left = left.ok_or_else(|| {
            let message = format!("more than {MAX_REQUESTS} requests: give a part of the log");
            io::Error::other(message)
        })?;
        let (rest, plans, failure) = (&mut self.rest, &mut self.plans, &mut self.failure);
        self.order.put(time, item, |time, item| {
            let group = group_of(rest, plans, item.plan);
            if let Err(error) = group.count(time, item.slot) {
                failure.get_or_insert(error);
            }
        });
        self.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn end(mut self) -> io::Result<Surveyed> {
        let (rest, plans, failure) = (&mut self.rest, &mut self.plans, &mut self.failure);
        self.facts.late = self.order.late();
        self.order.end(|time, item| {
            let group = group_of(rest, plans, item.plan);
            if let Err(error) = group.count(time, item.slot) {
                failure.get_or_insert(error);
            }
        });
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.facts.load.end();
        self.plans.sort_by(|one, other| one.0.cmp(&other.0));
        let mut surveyed = Surveyed {
            facts: self.facts,
            rest: self.rest,
            plans: self.plans,
            ahead: [self.ahead.unwrap_or_default(), self.clock],
        };
        surveyed.rest.end()?;
        for (_, group) in &mut surveyed.plans {
            group.end()?;
        }
        Ok(surveyed)
    }
}

/// How many keys a group may have however many the others have: all of them together, half of
/// what all may have.
fn least_keys(most_keys: usize) -> usize {
    most_keys / (2 * (MAX_PLANS + 1))
}

/// The group of a plan, or of the keys without one.
fn group_of<'g>(
    rest: &'g mut Group,
    plans: &'g mut [(String, Group)],
    plan: Option<usize>,
) -> &'g mut Group {
    match plan.and_then(|plan| plans.get_mut(plan)) {
        Some((_, group)) => group,
        None => rest,
    }
}

impl Surveyed {
    /// All groups: the keys without a plan, and those of each plan.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Group> {
        std::iter::once(&self.rest).chain(self.plans.iter().map(|(_, group)| group))
    }

    /// The number of requests with a key.
    pub(super) fn requests(&self) -> u64 {
        self.groups().map(Group::requests).sum()
    }

    /// The times of the first and the last request.
    pub(super) fn span(&self) -> (Moment, Moment) {
        let met = self.groups().filter(|group| group.requests() > 0);
        let (first, last): (Vec<_>, Vec<_>) = met.map(Group::span).unzip();
        let (first, last) = (first.into_iter().min(), last.into_iter().max());
        (first.unwrap_or_default(), last.unwrap_or_default())
    }

    /// Whether each time is a whole second.
    pub(super) fn is_coarse(&self) -> bool {
        self.groups().all(|group| group.is_coarse)
    }
}

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;

use config::{self, KeyTemplate, short_key};
use gateway::replay::{Form, Line, add_to_key};

use super::group::Group;
use super::order::Order;
use super::origin_load::OriginLoad;

/// Prefix length to which IPv6 addresses in keys are cut, the default of a zone.
const IPV6_PREFIX: u8 = 64;

/// Maximum number of requests with a key. Each takes 16 bytes of a temporary file: 4 GB in all.
const MAX_REQUESTS: u64 = 250_000_000;

/// Reads requests and counts them.
pub struct Survey {
    facts: Facts,
    /// The zone of a file whose keys are counted.
    of_file: Option<Box<config::Zone>>,
    /// Buffer for the key of the current request.
    key: Vec<u8>,
    group: Group,
    order: Order<u32>,
    /// How many more requests may be counted.
    left: u64,
    /// How many seconds the clock of the first line is ahead of UTC.
    ///
    /// `clock` is that of the last line: it changes with daylight saving time.
    ahead: Option<i32>,
    clock: i32,
}

/// What is requested of a survey, and what it finds beside its keys.
pub(super) struct Facts {
    pub(super) template: KeyTemplate,
    pub(super) zone: Option<String>,
    /// Whether the zone is one of a file.
    pub(super) is_of_file: bool,
    /// What all requests are to the origin, with a key or without.
    pub(super) load: OriginLoad,
    pub(super) untold: BTreeSet<String>,
    pub(super) keyless: u64,
    /// How many requests could not be put into order.
    pub(super) late: u64,
    pub(super) form: Option<Form>,
}

/// The results of a survey.
pub(super) struct Surveyed {
    pub(super) facts: Facts,
    pub(super) group: Group,
    /// How many seconds the log's clock is ahead of UTC, at the start and at the end of the log.
    pub(super) ahead: [i32; 2],
}

impl Survey {
    /// Starts a survey with keys made from `template`, with at most `most_keys` keys at once.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for temporary files.
    pub fn new(template: KeyTemplate, most_keys: usize) -> io::Result<Self> {
        let facts = Facts {
            template,
            zone: None,
            is_of_file: false,
            load: OriginLoad::default(),
            untold: BTreeSet::new(),
            keyless: 0,
            late: 0,
            form: None,
        };
        Ok(Self {
            facts,
            of_file: None,
            key: Vec::new(),
            group: Group::new(most_keys)?,
            order: Order::new(),
            left: MAX_REQUESTS,
            ahead: None,
            clock: 0,
        })
    }

    /// Takes the keys that the gateway logged for a zone.
    ///
    /// Requests that another zone decided are left out.
    #[must_use]
    pub fn of_zone(mut self, zone: String) -> Self {
        self.facts.zone = Some(zone);
        self
    }

    /// Takes the key of a zone from a file.
    ///
    /// Its keys are those that the gateway logged for it. Where a log names no zone, they are made
    /// as the zone says.
    #[must_use]
    pub fn of_zone_in_file(mut self, zone: config::Zone) -> Self {
        self.facts.zone = Some(zone.name.clone());
        self.facts.template = zone.key.clone();
        self.facts.is_of_file = true;
        self.of_file = Some(Box::new(zone));
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
        self.group.keys.slots() == 0
    }

    /// The time of a request and the slot of its key, or `None` if it has no key.
    pub(super) fn item(&mut self, line: &Line) -> Option<(u64, u32)> {
        let ahead = line.recorded.as_ref().map(|recorded| recorded.ahead);
        self.ahead = self.ahead.or(ahead);
        self.clock = ahead.or(self.ahead).unwrap_or_default();
        self.facts.load.add(line);
        self.make_key(line);
        if self.key.is_empty() {
            self.facts.keyless += 1;
            return None;
        }
        let slot = self.group.keys.slot(&short_key(&self.key));
        Some((line.time.as_nanos(), slot))
    }

    fn make_key(&mut self, line: &Line) {
        self.key.clear();
        let of_file = self.of_file.as_ref();
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
    pub(super) fn count(&mut self, time: u64, slot: u32) -> io::Result<()> {
        self.facts.load.pass(time);
        let left = self.left.checked_sub(1);
        self.left = left.ok_or_else(|| {
            let message = format!("more than {MAX_REQUESTS} requests: give a part of the log");
            io::Error::other(message)
        })?;
        let mut counted = Ok(());
        self.order.put(time, slot, |time, slot| {
            let result = self.group.count(time, slot);
            counted = std::mem::replace(&mut counted, Ok(())).and(result);
        });
        counted
    }

    pub(super) fn end(mut self) -> io::Result<Surveyed> {
        self.facts.late = self.order.late();
        let mut counted = Ok(());
        self.order.end(|time, slot| {
            let result = self.group.count(time, slot);
            counted = std::mem::replace(&mut counted, Ok(())).and(result);
        });
        counted?;
        self.facts.load.end();
        self.group.end()?;
        Ok(Surveyed {
            facts: self.facts,
            group: self.group,
            ahead: [self.ahead.unwrap_or_default(), self.clock],
        })
    }
}

#[cfg(test)]
mod tests;

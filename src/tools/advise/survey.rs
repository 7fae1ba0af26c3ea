//! Counts the requests of logs by key, and the load on the origin.
//!
//! `keys` counts the keys, `spool` stores the requests in order of time, and `origin_load` measures
//! the load. A slot is the number of a key in `keys`.

use std::collections::BTreeSet;
use std::io;

use config::{self, KeyTemplate, short_key};
use gateway::replay::{Form, Line, add_to_key};

use super::keys::Keys;
use super::order::Order;
use super::origin_load::OriginLoad;
use super::spool::{Event, Spool};

/// Prefix length to which IPv6 addresses in keys are truncated: the default of a zone.
const IPV6_PREFIX: u8 = 64;

/// Maximum number of requests with a key.
///
/// Each takes 16 bytes of a temporary file: 4 GB in total.
const MAX_REQUESTS: u64 = 250_000_000;

/// Counts of the requests of logs.
pub struct Survey {
    /// Makes the keys of requests for which the log has none.
    pub(super) template: KeyTemplate,
    /// Name of the zone whose logged keys are counted; `None`: logged keys are ignored.
    pub(super) zone: Option<String>,
    /// The zone, if it is from a file.
    file_zone: Option<Box<config::Zone>>,
    /// Buffer for the key of the current request.
    key: Vec<u8>,
    pub(super) keys: Keys,
    /// The requests with a key.
    pub(super) spool: Spool,
    /// Load of all requests on the origin, with a key or without.
    pub(super) load: OriginLoad,
    /// Variables of the key that the logs do not contain.
    pub(super) missing_variables: BTreeSet<String>,
    /// Number of requests without a key.
    pub(super) keyless: u64,
    /// Slots of the requests that are not counted yet: an earlier request may still follow.
    pub(super) order: Order<u32>,
    /// Format of the first log that could be read.
    pub form: Option<Form>,
    /// Number of requests that may still be counted.
    remaining: u64,
    /// Offset of the log's clock from UTC in seconds, at its first and at its last line.
    ///
    /// The offset changes with daylight saving time.
    pub(super) utc_offsets: Option<[i32; 2]>,
}

impl Survey {
    /// Starts a survey with keys made from `template`. Remembers at most `max_keys` at once.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for temporary files.
    pub fn new(template: KeyTemplate, max_keys: usize) -> io::Result<Self> {
        Ok(Self {
            template,
            zone: None,
            file_zone: None,
            key: Vec::new(),
            keys: Keys::new(max_keys),
            spool: Spool::new()?,
            load: OriginLoad::default(),
            missing_variables: BTreeSet::new(),
            keyless: 0,
            order: Order::default(),
            form: None,
            remaining: MAX_REQUESTS,
            utc_offsets: None,
        })
    }

    /// Uses the keys that the gateway logged for a zone. Ignores requests of other zones.
    ///
    /// `file_zone`: the zone in a file. Its template makes the keys where a log names no zone.
    pub fn with_zone(mut self, name: &str, file_zone: Option<config::Zone>) -> Self {
        self.zone = Some(name.to_owned());
        if let Some(zone) = file_zone {
            self.template = zone.key.clone();
            self.file_zone = Some(Box::new(zone));
        }
        self
    }

    /// Returns whether the zone is from a file.
    pub(super) fn has_file_zone(&self) -> bool {
        self.file_zone.is_some()
    }

    /// Formats the variables of the key that the logs do not contain, as a list.
    pub fn missing_variables(&self) -> String {
        let names = self.missing_variables.iter();
        let names: Vec<String> = names.map(|name| format!("${name}")).collect();
        names.join(", ")
    }

    /// Returns whether no request had a key.
    pub fn is_keyless(&self) -> bool {
        self.keys.slot_count() == 0
    }

    /// Adds a request of a log.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no more room for temporary files, or at more than
    /// [`MAX_REQUESTS`].
    pub(super) fn add(&mut self, line: &Line) -> io::Result<()> {
        if let Some(recorded) = &line.recorded {
            let offset = recorded.utc_offset;
            self.utc_offsets.get_or_insert([offset; 2])[1] = offset;
        }
        self.load.add(line);
        self.make_key(line);
        if self.key.is_empty() {
            self.keyless += 1;
            return Ok(());
        }
        let time = line.time.as_nanos();
        let slot = self.keys.find_or_add(&short_key(&self.key));
        self.load.close_old_seconds(time);
        let remaining = self.remaining.checked_sub(1);
        self.remaining = remaining.ok_or_else(|| {
            let message = format!("more than {MAX_REQUESTS} requests: use a part of the log");
            io::Error::other(message)
        })?;
        self.order.put(time, slot);
        // Lines may be slightly out of order: counts a request once no earlier one can follow.
        while let Some((time, slot)) = self.order.take_in_order() {
            self.count(time, slot)?;
        }
        Ok(())
    }

    /// Counts a request of the key in `slot`. Requests must be in order of time.
    fn count(&mut self, time: u64, slot: u32) -> io::Result<()> {
        let is_first = self.keys.count(slot);
        self.spool.put(Event {
            time,
            slot,
            is_first,
        })
    }

    /// Makes the key of a request in `self.key`. The key is empty if the request has none.
    ///
    /// The key is as in the line, else as logged for the requested zone, else made from the
    /// template.
    fn make_key(&mut self, line: &Line) {
        self.key.clear();
        let file_zone = self.file_zone.as_ref();
        match (&line.key, &line.recorded) {
            (Some(key), _) => self.key.extend_from_slice(key),
            (None, Some(recorded)) => match (&self.zone, &recorded.keyed) {
                (Some(requested_zone), Some((zone, key))) => {
                    if requested_zone == zone {
                        self.key.extend_from_slice(key.as_bytes());
                    }
                }
                // The log names no zone, and without a file the zone's template is unknown: no key.
                (Some(_), None) if file_zone.is_none() => {}
                _ => {
                    let client = recorded.client.zip(file_zone);
                    if client.is_some_and(|(client, zone)| zone.is_exempt(client)) {
                        return;
                    }
                    let prefix = file_zone.map_or(IPV6_PREFIX, |zone| zone.ipv6_prefix);
                    self.template.fill_into(&mut self.key, |variable, key| {
                        if !add_to_key(key, variable, prefix, line, recorded) {
                            self.missing_variables.insert(variable.to_string());
                        }
                    });
                }
            },
            (None, None) => {}
        }
    }

    /// Ends the input.
    pub(super) fn end(&mut self) -> io::Result<()> {
        while let Some((time, slot)) = self.order.take() {
            self.count(time, slot)?;
        }
        self.load.end();
        self.spool.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_maximum_of_requests_is_an_error() {
        let template = "$remote_addr".parse().unwrap();
        let mut survey = Survey::new(template, 1000).unwrap();
        survey.remaining = 2;
        let line = Form::Csv.read("1.5,10.0.0.1").unwrap();
        assert!(survey.add(&line).is_ok() && survey.add(&line).is_ok());
        let error = survey.add(&line).unwrap_err().to_string();
        assert_eq!(error, "more than 250000000 requests: use a part of the log");
    }
}

//! Reads the requests of logs and counts them.

use std::collections::BTreeSet;
use std::io;

use config::{self, KeyTemplate, short_key};
use gateway::replay::{Form, Line, add_to_key};

use super::group::Group;
use super::order::Order;
use super::origin_load::OriginLoad;

/// Prefix length to which IPv6 addresses in keys are truncated; a zone's default.
const IPV6_PREFIX: u8 = 64;

/// Maximum number of requests with a key.
///
/// Each takes 16 bytes of a temporary file: 4 GB in total.
const MAX_REQUESTS: u64 = 250_000_000;

/// Reads requests and counts them.
pub struct Survey {
    pub(super) template: KeyTemplate,
    pub(super) zone: Option<String>,
    /// The zone of a file whose keys are counted.
    of_file: Option<Box<config::Zone>>,
    /// Buffer for the key of the current request.
    key: Vec<u8>,
    pub(super) group: Group,
    /// Load of all requests on the origin, with a key or without.
    pub(super) load: OriginLoad,
    pub(super) missing_variables: BTreeSet<String>,
    pub(super) keyless: u64,
    pub(super) order: Order<u32>,
    /// Format of the first log that could be read.
    pub form: Option<Form>,
    /// Number of requests that may still be counted.
    left: u64,
    /// Offset of the log's clock from UTC in seconds, at its first and at its last line.
    ///
    /// The offset changes with daylight saving time.
    pub(super) ahead: Option<[i32; 2]>,
}

impl Survey {
    /// Starts a survey with keys made from `template`, with at most `most_keys` keys at once.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for temporary files.
    pub fn new(template: KeyTemplate, most_keys: usize) -> io::Result<Self> {
        Ok(Self {
            template,
            zone: None,
            of_file: None,
            key: Vec::new(),
            group: Group::new(most_keys)?,
            load: OriginLoad::default(),
            missing_variables: BTreeSet::new(),
            keyless: 0,
            order: Order::new(),
            form: None,
            left: MAX_REQUESTS,
            ahead: None,
        })
    }

    /// Uses the keys that the gateway logged for a zone.
    ///
    /// Ignores requests that another zone decided.
    pub fn of_zone(mut self, zone: String) -> Self {
        self.zone = Some(zone);
        self
    }

    /// Uses the key of a zone of a file.
    ///
    /// Takes the keys that the gateway logged for the zone. Where a log names no zone, makes the
    /// keys by the zone's template.
    pub fn of_zone_in_file(mut self, zone: config::Zone) -> Self {
        self.zone = Some(zone.name.clone());
        self.template = zone.key.clone();
        self.of_file = Some(Box::new(zone));
        self
    }

    /// Returns whether the zone is from a file.
    pub(super) fn is_of_file(&self) -> bool {
        self.of_file.is_some()
    }

    /// Returns the variables of the key that the logs do not contain.
    pub fn missing_variables(&self) -> Vec<String> {
        self.missing_variables
            .iter()
            .map(|name| format!("${name}"))
            .collect()
    }

    /// Returns whether no request had a key.
    pub fn is_keyless(&self) -> bool {
        self.group.keys.slots() == 0
    }

    /// Counts a request of a log in this format.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no more room for temporary files, or at more than
    /// [`MAX_REQUESTS`].
    pub(super) fn add(&mut self, line: &Line) -> io::Result<()> {
        if let Some(clock) = line.recorded.as_ref().map(|recorded| recorded.ahead) {
            self.ahead.get_or_insert([clock; 2])[1] = clock;
        }
        self.load.add(line);
        self.make_key(line);
        if self.key.is_empty() {
            self.keyless += 1;
            return Ok(());
        }
        let time = line.time.as_nanos();
        let slot = self.group.keys.slot(&short_key(&self.key));
        self.load.pass(time);
        let left = self.left.checked_sub(1);
        self.left = left.ok_or_else(|| {
            let message = format!("more than {MAX_REQUESTS} requests: use a part of the log");
            io::Error::other(message)
        })?;
        self.order.put(time, slot);
        while let Some((time, slot)) = self.order.take_certain() {
            self.group.count(time, slot)?;
        }
        Ok(())
    }

    fn make_key(&mut self, line: &Line) {
        self.key.clear();
        let of_file = self.of_file.as_ref();
        match (&line.key, &line.recorded) {
            (Some(key), _) => self.key.extend_from_slice(key),
            (None, Some(recorded)) => match (&self.zone, &recorded.keyed) {
                (Some(requested_zone), Some((zone, key))) => {
                    if requested_zone == zone {
                        self.key.extend_from_slice(key.as_bytes());
                    }
                }
                (Some(_), None) if of_file.is_none() => {}
                _ => {
                    let client = recorded.client.zip(of_file);
                    if client.is_some_and(|(client, zone)| zone.is_exempt(client)) {
                        return;
                    }
                    let prefix = of_file.map_or(IPV6_PREFIX, |zone| zone.ipv6_prefix);
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
            self.group.count(time, slot)?;
        }
        self.load.end();
        self.group.spool.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_too_many_requests_is_an_error() {
        let template = "$remote_addr".parse().unwrap();
        let mut survey = Survey::new(template, 1000).unwrap();
        survey.left = 2;
        let line = Form::Csv.read("1.5,10.0.0.1").unwrap();
        assert!(survey.add(&line).is_ok() && survey.add(&line).is_ok());
        let error = survey.add(&line).unwrap_err().to_string();
        assert_eq!(error, "more than 250000000 requests: use a part of the log");
    }
}

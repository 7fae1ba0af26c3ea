//! Restores the state that the previous process saved: levels of keys, schedules of gates.
//!
//! `save` writes it. Zones that are no longer in the file, or have another key, are skipped.

use std::path::Path;
use std::time::Duration;

use limit::{Moment, Rate};

use super::format::{Reader, Unusable};
use super::record::{GateRecord, Record};
use super::{MAX_READING, StateFile};
use crate::http::gateway::Gateway;
use crate::time::clock;
use crate::zone::{SavedKey, Zone, ZoneRecord};

/// Maximum number of skipped zones that the log names.
const MAX_NAMED: usize = 5;
/// Number of keys that are sent to a zone at once.
const BATCH: usize = 1000;

/// Summary of the restored state.
#[derive(Debug, Default, PartialEq, Eq)]
struct Restored {
    keys: usize,
    zones: usize,
    gates: usize,
    /// Names of the skipped zones that have keys.
    skipped_zones: Vec<String>,
    /// Number of keys of the skipped zones.
    skipped_keys: usize,
    /// Age of the state.
    age: Duration,
    /// Whether reading took too long, so that some keys start empty.
    is_cut_short: bool,
}

impl StateFile {
    /// Restores the state of the previous process. Call it before the first request of `gateway`.
    pub(in crate::server) fn restore(&mut self, gateway: &Gateway) {
        let Some(saved) = self.saved.take() else {
            return;
        };
        match restore(saved, gateway, clock::now() + MAX_READING) {
            Ok(restored) => restored.log(&self.path),
            Err(why) => log_ignored(&self.path, &why),
        }
    }
}

impl Restored {
    /// Logs a summary of the restored state.
    fn log(&self, path: &Path) {
        let (file, keys, zones, gates) = (path.display(), self.keys, self.zones, self.gates);
        tracing::info!(%file, keys, zones, gates, written_ago = ?self.age, "the state of the previous process was restored");
        let skipped = &self.skipped_zones;
        if !skipped.is_empty() {
            tracing::warn!(
                %file,
                zones = skipped.len(),
                keys = self.skipped_keys,
                first = ?&skipped[..skipped.len().min(MAX_NAMED)],
                "zones of the previous process were not restored: the file has no such zone in memory with the same name, key, algorithm and ipv6_prefix"
            );
        }
        if self.is_cut_short {
            tracing::warn!(%file, "reading the state took too long: the remaining keys start empty");
        }
    }
}

/// Logs why the state file is not used.
pub(super) fn log_ignored(path: &Path, why: &Unusable) {
    tracing::warn!(file = %path.display(), %why, "the state file is ignored: all levels start empty");
}

/// Restores the zones that still exist, as far as the state can be read by `deadline`.
fn restore(mut saved: Reader, gateway: &Gateway, deadline: Moment) -> Result<Restored, Unusable> {
    let Some(Record::Written(stamp)) = saved.next()? else {
        return Err(Unusable::NotState);
    };
    // When the state was saved, in this process's time.
    let (at, age) = stamp.instant_and_age().ok_or(Unusable::Future)?;
    let mut restored = Restored {
        age,
        ..Restored::default()
    };
    let mut batch: Option<Batch> = None;
    // Name of a zone whose keys are skipped. Its first key takes it: a zone without keys is not
    // named.
    let mut skipped_zone: Option<String> = None;
    let mut keys_read = 0;
    while let Some(record) = saved.next()? {
        match record {
            Record::Written(_) => return Err(Unusable::NotState),
            Record::Gate(gate) => restored.gates += usize::from(restore_gate(&gate, gateway, at)),
            Record::Zone(zone) => {
                restored.keys += batch.map_or(0, Batch::finish);
                batch = Batch::begin(&zone, gateway, at);
                restored.zones += usize::from(batch.is_some());
                skipped_zone = batch.is_none().then_some(zone.name);
            }
            Record::Key(key) => {
                if let Some(batch) = &mut batch {
                    batch.add(key.into_key(batch.rate));
                } else {
                    restored.skipped_zones.extend(skipped_zone.take());
                    restored.skipped_keys += 1;
                }
                keys_read += 1;
                if keys_read % BATCH == 0 && clock::now() > deadline {
                    restored.is_cut_short = true;
                    break;
                }
            }
        }
    }
    restored.keys += batch.map_or(0, Batch::finish);
    Ok(restored)
}

/// Restores the gate of an origin, and the learned costs of its routes.
///
/// Returns whether the origin still has a gate.
fn restore_gate(record: &GateRecord, gateway: &Gateway, at: Moment) -> bool {
    let mut origins = gateway.origins().iter();
    let index = origins.position(|origin| origin.settings().name == record.origin);
    let Some((index, gate)) = index.and_then(|index| Some((index, gateway.origin(index).gate()?)))
    else {
        return false;
    };
    gate.restore(&record.saved, at);
    gateway.restore_costs(index, &record.costs);
    true
}

/// Keys of a zone that are being restored.
struct Batch<'g> {
    zone: &'g Zone,
    /// Rate of the zone when the state was saved.
    rate: Rate,
    /// Instant of the saved state, in this process's time.
    at: Moment,
    /// Keys that are not sent to the zone yet.
    keys: Vec<SavedKey>,
    /// Number of keys sent so far.
    count: usize,
}

impl<'g> Batch<'g> {
    /// Restores how many new keys a zone may take, and begins its keys.
    ///
    /// Returns `None` if the zone no longer exists.
    fn begin(record: &ZoneRecord, gateway: &'g Gateway, at: Moment) -> Option<Self> {
        let mut zones = gateway.zones().iter();
        let zone = zones.find(|zone| zone.is_in_memory() && record.fits(zone.settings()))?;
        zone.restore_new_keys(at + record.new_keys());
        Some(Self {
            zone,
            rate: record.rate,
            at,
            keys: Vec::new(),
            count: 0,
        })
    }

    /// Adds a key, unless its rate cannot be read, and sends the batch when it is full.
    fn add(&mut self, key: Option<SavedKey>) {
        self.keys.extend(key);
        if self.keys.len() >= BATCH {
            self.send();
        }
    }

    /// Sends the collected keys to the zone.
    fn send(&mut self) {
        // Keys above the zone's maximum are not sent.
        let max_keys = self.zone.settings().max_keys.get();
        self.keys.truncate(max_keys.saturating_sub(self.count));
        self.count += self.keys.len();
        self.zone.restore(std::mem::take(&mut self.keys), self.at);
    }

    /// Sends the remaining keys. Returns the number of all keys sent.
    fn finish(mut self) -> usize {
        self.send();
        self.count
    }
}

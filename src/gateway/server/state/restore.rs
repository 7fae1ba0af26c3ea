//! Restores the state that the previous process saved.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use limit::{Moment, Rate};

use super::format::{Reader, Unusable};
use super::record::Record;
use super::{READING, StateFile};
use crate::http::gateway::Gateway;
use crate::origin::Origin;
use crate::time::clock;
use crate::zone::{SavedKey, Zone};

/// Maximum number of skipped zones that the log names.
const NAMED: usize = 5;
/// Number of keys that are sent to a zone at once.
const BATCH: usize = 1000;

/// Summary of the restored state.
#[derive(Debug, Default, PartialEq, Eq)]
struct Restored {
    keys: usize,
    zones: usize,
    gates: usize,
    /// Number of skipped zones with keys.
    zones_left_out: usize,
    /// Names of the first skipped zones.
    names_left_out: Vec<String>,
    /// Number of keys of the skipped zones.
    keys_left_out: usize,
    /// Age of the state.
    age: Duration,
    /// Whether reading took too long, so that some keys start empty.
    is_cut_short: bool,
}

impl StateFile {
    /// Restores the state of the previous process. Call it before the first request of `gateway`.
    pub(in crate::server) fn restore(&mut self, gateway: &Gateway) {
        let Some(left) = self.left.take() else {
            return;
        };
        match restore(left, gateway, clock::now() + READING) {
            Ok(restored) => restored.log(&self.path),
            Err(why) => log_ignored(&self.path, &why),
        }
    }
}

impl Restored {
    /// Logs a summary of the restored state.
    fn log(&self, path: &Path) {
        let file = path.display();
        let Self {
            keys, zones, gates, ..
        } = self;
        tracing::info!(%file, keys, zones, gates, written_ago = ?self.age, "the state of the previous process was restored");
        if self.zones_left_out > 0 {
            tracing::warn!(
                %file,
                zones = self.zones_left_out,
                keys = self.keys_left_out,
                first = ?self.names_left_out,
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
fn restore(mut left: Reader, gateway: &Gateway, deadline: Moment) -> Result<Restored, Unusable> {
    let Some(Record::Written(stamp)) = left.next()? else {
        return Err(Unusable::Other);
    };
    let (at, age) = stamp.moment().ok_or(Unusable::Future)?;
    let mut restored = Restored {
        age,
        ..Restored::default()
    };
    let mut batch: Option<Batch> = None;
    // Name of a skipped zone, until its first key.
    let mut left_out: Option<String> = None;
    let mut lines = 0;
    while let Some(record) = left.next()? {
        match record {
            Record::Written(_) => return Err(Unusable::Other),
            Record::Gate(record) => {
                let named = |origin: &Origin| origin.settings().name == record.origin;
                let index = gateway.origins().iter().position(named);
                if let Some(index) = index
                    && let Some(gate) = gateway.origin(index).gate()
                {
                    gate.restore(&record.saved, at);
                    restored.gates += 1;
                    gateway.restore_costs(index, &record.costs);
                }
            }
            Record::Zone(record) => {
                restored.keys += batch.map_or(0, Batch::finish);
                let is_same =
                    |zone: &&Arc<Zone>| zone.is_in_memory() && record.fits(zone.settings());
                let zone = gateway.zones().iter().find(is_same);
                restored.zones += usize::from(zone.is_some());
                if let Some(zone) = zone {
                    zone.restore_new_keys(at + record.new_keys());
                }
                batch = zone.map(|zone| Batch {
                    zone,
                    rate: record.rate,
                    at,
                    keys: Vec::new(),
                    count: 0,
                });
                left_out = batch.is_none().then_some(record.name);
            }
            Record::Key(key) => {
                if let Some(batch) = &mut batch {
                    batch.add(key.into_key(batch.rate));
                } else {
                    restored.keys_left_out += 1;
                }
                if let Some(name) = left_out.take() {
                    restored.zones_left_out += 1;
                    if restored.names_left_out.len() < NAMED {
                        restored.names_left_out.push(name);
                    }
                }
                lines += 1;
                if lines % BATCH == 0 && clock::now() > deadline {
                    restored.is_cut_short = true;
                    break;
                }
            }
        }
    }
    restored.keys += batch.map_or(0, Batch::finish);
    Ok(restored)
}

/// Keys on their way to their zone.
struct Batch<'g> {
    zone: &'g Zone,
    /// Rate of the zone when the keys were written.
    rate: Rate,
    /// Instant of the saved state, in this process's time.
    at: Moment,
    keys: Vec<SavedKey>,
    /// Number of keys sent so far.
    count: usize,
}

impl Batch<'_> {
    /// Adds a key, and sends the batch when it is full.
    fn add(&mut self, key: Option<SavedKey>) {
        self.keys.extend(key);
        if self.keys.len() >= BATCH {
            self.hand_on();
        }
    }

    /// Sends the collected keys to the zone.
    fn hand_on(&mut self) {
        // Keys above the zone's maximum are not sent.
        let max_keys = self.zone.settings().max_keys.get();
        self.keys.truncate(max_keys.saturating_sub(self.count));
        self.count += self.keys.len();
        self.zone.restore(std::mem::take(&mut self.keys), self.at);
    }

    /// Sends the remaining keys. Returns the number of all keys sent.
    fn finish(mut self) -> usize {
        self.hand_on();
        self.count
    }
}

//! Writes the state for the next process when the gateway stops.
//!
//! A request that waits in zones has a slot in each of them, and joins the gate of its origin after
//! its last slot. A ticket tells such a request from others. `restore` reads what is written here.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;

use futures_util::future::{join_all, select};
use limit::{DestinationId, ExpectedRequest, Ticket};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::format::Writer;
use super::lock::Lock;
use super::record::{GateRecord, Record, Stamp};
use super::{MAX_WAIT_FOR_LAST_REQUESTS, MAX_WRITING, StateFile};
use crate::gate::OriginGate;
use crate::http::gateway::Gateway;
use crate::time::clock;
use crate::zone::{ExpectedDeparture, KeyRecord, ZoneRecord};

/// Maximum number of parts that wait for the disk.
const MAX_PARTS_AHEAD: usize = 16;

/// Next part to write; `None`: the end of a complete state.
type Part = Option<Vec<Record>>;

/// Summary of the written state.
#[derive(Debug, Default, PartialEq, Eq)]
struct Saved {
    keys: usize,
    zones: usize,
    gates: usize,
}

impl StateFile {
    /// Stops accepting requests, and writes the state for the next process.
    ///
    /// Before that, open connections may send their first request, at most until `all_closed` or
    /// `in_haste`. When this completes, the next process may read the state, while waiters still
    /// depart here.
    pub(in crate::server) async fn hand_over(
        self,
        gateway: &Gateway,
        all_closed: impl Future<Output = ()>,
        in_haste: impl Future<Output = ()>,
    ) {
        let _late = timeout(
            MAX_WAIT_FOR_LAST_REQUESTS,
            select(pin!(all_closed), pin!(in_haste)),
        )
        .await;
        let take_now = || Lock::try_take(&self.path).unwrap_or_default();
        let Some(_lock) = self.lock.or_else(take_now) else {
            tracing::warn!(
                file = %self.path.display(),
                "another process uses the state file: this one writes none"
            );
            return;
        };
        self.rooms.finish(gateway);
        let saved = timeout(MAX_WRITING, save(&self.path, gateway)).await;
        match saved.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(Saved { keys, zones, gates }) => tracing::info!(
                file = %self.path.display(),
                keys,
                zones,
                gates,
                "the state was saved for the next process"
            ),
            Err(error) => tracing::error!(
                file = %self.path.display(),
                %error,
                "the state cannot be saved: the next process starts from the previous file, if there is one"
            ),
        }
    }
}

/// Writes the state of all zones in memory, and of all gates.
async fn save(path: &Path, gateway: &Gateway) -> io::Result<Saved> {
    let zones = gateway.zones().iter();
    let zones: Vec<_> = zones.filter(|zone| zone.is_in_memory()).collect();
    // All at once: no zone may charge a request that another zone no longer accepts.
    join_all(zones.iter().map(|zone| zone.hand_over())).await;
    // A request that joins its gate before the gate is saved is counted twice: a slot stays unused.
    let arrivals = GateArrivals::collect(gateway).await;
    let (at, stamp) = (clock::now(), Stamp::now());
    let (to_disk, parts) = mpsc::channel(MAX_PARTS_AHEAD);
    let file = PathBuf::from(path);
    let writing = tokio::task::spawn_blocking(move || write(&file, parts));
    let mut first = vec![Record::Written(stamp)];
    first.extend((0..).zip(gateway.origins()).filter_map(|(index, origin)| {
        let gate = origin.gate()?;
        Some(Record::Gate(GateRecord {
            origin: origin.settings().name.clone(),
            saved: gate.hand_over(at, arrivals.at_gate(gate)),
            costs: gateway.saved_costs(index),
        }))
    }));
    // Sending fails once writing has failed. The error of `writing` has the reason.
    let mut is_writing = to_disk.send(Some(first)).await.is_ok();
    for zone in zones {
        if !is_writing {
            break;
        }
        let settings = zone.settings();
        let record = Record::Zone(ZoneRecord::new(settings, zone.new_keys_used(at)));
        is_writing = to_disk.send(Some(vec![record])).await.is_ok();
        let write_keys = async |keys: Vec<_>| {
            let keys = keys.into_iter();
            let records = keys.map(|key| Record::Key(KeyRecord::new(key, settings.rate)));
            is_writing = to_disk.send(Some(records.collect())).await.is_ok();
            is_writing
        };
        zone.save(at, write_keys).await;
    }
    let _failed = to_disk.send(None).await;
    writing.await.map_err(io::Error::other)?
}

/// Writes all parts, and moves the file to its path.
fn write(path: &Path, mut parts: mpsc::Receiver<Part>) -> io::Result<Saved> {
    let mut writer = Writer::begin(path)?;
    let mut saved = Saved::default();
    // If the channel is closed before the end of the state, `save` has been cancelled: it took too
    // long.
    while let Some(records) = parts.blocking_recv().ok_or(io::ErrorKind::TimedOut)? {
        for record in records {
            match &record {
                Record::Zone(_) => saved.zones += 1,
                Record::Key(_) => saved.keys += 1,
                Record::Gate(_) => saved.gates += 1,
                Record::Written(_) => {}
            }
            writer.write(&record)?;
        }
    }
    writer.finish()?;
    Ok(saved)
}

/// Requests that wait in zones and will join a gate after their slot.
#[derive(Debug, Default)]
pub(super) struct GateArrivals(HashMap<DestinationId, Vec<ExpectedRequest>>);

impl GateArrivals {
    /// Collects the requests of all zones.
    pub(super) async fn collect(gateway: &Gateway) -> Self {
        let zones = gateway.zones().iter();
        let departures = join_all(zones.map(|zone| zone.expected_departures())).await;
        Self::from_departures(departures.into_iter().flatten())
    }

    /// Groups requests by gate. A request with slots in several zones arrives at its last slot.
    fn from_departures(departures: impl Iterator<Item = ExpectedDeparture>) -> Self {
        let mut requests: HashMap<Ticket, ExpectedDeparture> = HashMap::new();
        for departure in departures {
            let last = requests.entry(departure.ticket).or_insert(departure);
            if departure.to_come.due > last.to_come.due {
                *last = departure;
            }
        }
        let mut arrivals = Self::default();
        for last in requests.into_values() {
            let of_gate = arrivals.0.entry(last.onward).or_default();
            of_gate.push(last.to_come);
        }
        arrivals
    }

    /// Returns the requests that will arrive at this gate.
    pub(super) fn at_gate(&self, gate: &OriginGate) -> &[ExpectedRequest] {
        let arrivals = gate.destination().and_then(|onward| self.0.get(&onward));
        arrivals.map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;
    use limit::{Cost, Moment};

    #[test]
    fn a_request_arrives_with_its_last_departure_at_its_own_gate() {
        let onward = |number| DestinationId(NonZeroU16::new(number).unwrap());
        let departure = |ticket, gate, due| ExpectedDeparture {
            ticket: Ticket(ticket),
            onward: onward(gate),
            to_come: ExpectedRequest {
                due: Moment::from_nanos(due),
                cost: Cost::ONE,
            },
        };
        let departures = [
            departure(1, 1, 5),
            departure(2, 1, 7),
            departure(1, 1, 9),
            departure(3, 2, 1),
            departure(1, 1, 8),
        ];
        let arrivals = GateArrivals::from_departures(departures.into_iter());
        let dues = |gate| {
            let mut dues: Vec<_> = arrivals.0[&onward(gate)]
                .iter()
                .map(|request| request.due.as_nanos())
                .collect();
            dues.sort_unstable();
            dues
        };
        assert_eq!((dues(1), dues(2)), (vec![7, 9], vec![1]));
    }
}

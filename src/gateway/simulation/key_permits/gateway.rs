//! A simulated gateway that shares the permits of a key.
//!
//! A permit is the right to run one request of the key. The store lends permits to gateways.

use std::num::NonZeroU32;
use std::time::Duration;

use limit::{KeyPermitNeeds, KeyPermits, KeyPermitsCall, KeyPermitsReply, Moment};

use crate::simulation::random::Random;

/// A gateway: running and waiting requests, and its messages to and from the store.
pub(super) struct Gateway {
    pub(super) id: [u8; 8],
    permits: KeyPermits,
    /// Maximum number of running requests of the key.
    maximum: NonZeroU32,
    /// Number of the last call.
    number: u64,
    /// Ends of the running requests.
    pub(super) running: Vec<Moment>,
    /// Times since which requests wait, the oldest first.
    pub(super) waiting: Vec<Moment>,
    /// The gateway is stopped until this time.
    pub(super) stopped_until: Moment,
    /// The gateway is split from the store until this time.
    pub(super) split_until: Moment,
    /// Calls in flight, with their arrivals.
    pub(super) to_store: Vec<(Moment, KeyPermitsCall)>,
    /// Replies in flight: arrival, number of the call, and reply (`None` if it failed).
    pub(super) from_store: Vec<(Moment, u64, Option<KeyPermitsReply>)>,
}

impl Gateway {
    pub(super) fn new(id: u64, maximum: NonZeroU32) -> Self {
        Self {
            id: id.to_le_bytes(),
            permits: KeyPermits::new(maximum),
            maximum,
            number: 0,
            running: Vec::new(),
            waiting: Vec::new(),
            stopped_until: Moment::default(),
            split_until: Moment::default(),
            to_store: Vec::new(),
            from_store: Vec::new(),
        }
    }

    /// Returns whether neither the store nor this gateway counts any request.
    pub(super) fn is_settled(&self, now: Moment) -> bool {
        self.permits.is_settled(now) && self.running.is_empty() && self.waiting.is_empty()
    }

    /// Returns the present demand for permits.
    fn needs(&self) -> KeyPermitNeeds {
        KeyPermitNeeds {
            running: self.running.len(),
            waiting: self.waiting.len(),
            coming: 0,
            maximum: self.maximum,
        }
    }

    /// Processes replies, ends and starts requests, and calls the store.
    ///
    /// `kept`: duration for which the store keeps permits of a gateway that does not call.
    /// `longest`: upper bound of a request's duration. Returns the ends of the started requests.
    pub(super) fn step(
        &mut self,
        now: Moment,
        kept: Duration,
        longest: Duration,
        random: &mut Random,
    ) -> Vec<Moment> {
        let arrived = self
            .from_store
            .extract_if(.., |(arrival, ..)| *arrival <= now);
        let arrived: Vec<_> = arrived.collect();
        for (_, number, reply) in arrived {
            match reply {
                Some(reply) => self.permits.answer(number, reply),
                None => self.permits.fail(number),
            }
        }
        while let Some(ended) = self.running.iter().position(|end| *end <= now) {
            self.running.swap_remove(ended);
            self.permits.freed(self.running.len());
        }
        let mut started = Vec::new();
        while !self.waiting.is_empty()
            && self.permits.is_free(self.maximum, self.running.len(), now)
        {
            self.waiting.remove(0);
            let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
            let ends = now + random.micros(1000..longest);
            self.running.push(ends);
            started.push(ends);
        }
        while let Some(call) = self.permits.call(self.needs(), self.number + 1, kept, now) {
            self.number += 1;
            self.send(call, now, random);
        }
        started
    }

    /// Sends a call to the store. Some calls fail, or arrive late.
    fn send(&mut self, call: KeyPermitsCall, now: Moment, random: &mut Random) {
        let timeout = Duration::from_millis(200);
        let is_split = now < self.split_until;
        if is_split || random.chance(1) {
            self.from_store.push((now + timeout, call.number, None));
            // The message may still arrive late.
            if random.chance(50) {
                self.to_store.push((now + random.millis(1..2000), call));
            }
            return;
        }
        self.to_store.push((now + random.micros(100..3000), call));
    }
}

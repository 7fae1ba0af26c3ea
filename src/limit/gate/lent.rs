//! Places at the origin that are lent to this gateway, and how they go together with slots.

use std::hash::Hash;
use std::time::Duration;

use super::granted::{Granted, LATE};
use super::{Gate, Moment};
use crate::limit::{LentPlaces, PlaceNeeds};

/// How far apart the slots of a gate are that gets a slot first, and a place for it then.
///
/// Below, a place and the way to the next gateway take longer than a slot: who has a place then
/// claims slots for it, as long as it has it.
const SLOT_FIRST: Duration = Duration::from_millis(10);

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Sets which places of a pool it has; `None`: it shares none.
    pub fn set_lent(&mut self, lent: Option<LentPlaces>, now: Moment) {
        let was_full = !self.has_place();
        self.lent = lent;
        self.note_free_place(was_full, now);
    }

    /// What it has to do with places of a pool. `ahead`: how long before it is used a place has to
    /// be asked for.
    #[must_use]
    pub fn place_needs(&self, now: Moment, ahead: Duration) -> PlaceNeeds {
        let limits = [self.limits.max_in_flight, self.room];
        let most = limits.into_iter().flatten().min().unwrap_or(usize::MAX);
        let in_use = self.in_flight;
        let depth = self.depth();
        let mut slot = self.first_slot(now).filter(|_| depth > 0);
        let mut looks = None;
        let mut is_between_slots = false;
        let waiting = if depth == 0 || self.is_out() || self.opens > now {
            0
        } else if self.rate.is_none() {
            depth
        } else if self.takes_slot_first() {
            let near = slot.filter(|slot| *slot <= now + ahead);
            looks = match (near, slot) {
                (None, slot) => slot.map(|slot| slot.before(ahead)),
                // Then it was too late.
                (Some(near), _) => Some(near + LATE),
            };
            slot = near;
            is_between_slots = near.is_none();
            usize::from(near.is_some())
        } else if self.lent.is_some_and(|lent| in_use >= lent.places) {
            // At a pace, only a part of those who wait can use a place soon.
            depth.min((in_use / 2).max(1))
        } else {
            0
        };
        let weight = if self.limits.queue.is_some() {
            let keys = self.waiting.weights();
            let weights = keys.map(|(class, keys, _)| u64::from(class.weight).saturating_mul(keys));
            weights.sum()
        } else {
            (in_use + depth) as u64
        };
        PlaceNeeds {
            in_use,
            waiting,
            most,
            weight,
            slot,
            is_between_slots,
            looks,
        }
    }

    /// How many places it can use within this span for slots of the grid that it shares.
    pub(super) fn places_within(&self, span: Duration, now: Moment) -> u64 {
        let lent = self.lent.map(|lent| lent.places);
        let most = [self.limits.max_in_flight, lent];
        let Some(most) = most.into_iter().flatten().min() else {
            return u64::MAX;
        };
        let free = most.saturating_sub(self.in_flight) as u64;
        let places = free.saturating_add(self.turnover.places_in(span));
        if self.takes_slot_first() && self.in_flight == 0 {
            return places.max(1);
        }
        let (Some(lent), Some(granted)) = (self.lent, &self.granted) else {
            return places;
        };
        match lent.until {
            // A slot after its turn on the place is of no use.
            Some(until) => {
                let turn = until.since(now);
                let in_turn = granted.slots_in(turn).max(u64::from(!turn.is_zero()));
                places.min(in_turn)
            }
            None if lent.places == 0 && lent.go_round => 0,
            None => places,
        }
    }

    /// Whether it gets a slot first, and borrows its only place for it then.
    fn takes_slot_first(&self) -> bool {
        let is_slow = |granted: &Granted| granted.interval() >= SLOT_FIRST;
        let is_only = |lent: LentPlaces| lent.go_round && lent.places <= 1;
        self.lent.is_some_and(is_only) && self.granted.as_deref().is_some_and(is_slow)
    }

    fn first_slot(&self, now: Moment) -> Option<Moment> {
        self.granted.as_ref()?.first(now.max(self.opens))
    }
}

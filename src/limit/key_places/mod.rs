//! The places of a key that several gateways share, as one of them has them.

mod call;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use super::Moment;
pub use call::{KeyPlacesCall, KeyPlacesReply};

/// How long a gateway starts requests on the places of a key after the store has last confirmed
/// them.
pub const KEY_PLACES_LEASE: Duration = Duration::from_secs(3);
/// The same by the clock of a gateway, which may be slower than that of the store.
const LEASE_HERE: Duration = Duration::from_millis(2940);
/// Places that are used are confirmed at whole multiples of this, so that those of all keys of a
/// gateway travel together.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// But no sooner than this after the last call.
const MIN_RENEWAL: Duration = Duration::from_millis(250);
/// How soon a call that failed is made again.
const TRY_EVERY: Duration = Duration::from_millis(250);
/// Bounds of the time between two calls of a gateway that lacks places. It is a sixteenth of the
/// time for which it has lacked them.
const MIN_POLL: Duration = Duration::from_millis(3);
const MAX_POLL: Duration = Duration::from_millis(50);
/// Most calls under way for a key. More wait for an answer.
const MAX_CALLS: usize = 16;

/// The places of one key that a gateway has from a store, in which all gateways together have no
/// more than a maximum.
///
/// A request starts only on a place that the store has granted, so the store counts at least what
/// runs. Each call tells how many the gateway [uses and wants](PlacesWanted), as whole numbers and
/// not as changes: a call that is lost or repeated loses and doubles nothing. Several may be under
/// way. What the gateway wants least of them bounds what it uses, because the store may have taken
/// back what is above.
///
/// While others wait for places, one that becomes free here goes back to the store, and this
/// gateway waits in line there. Otherwise the next waiter here gets it.
#[derive(Debug)]
pub struct KeyPlaces {
    /// How many it may use, those in use included.
    granted: usize,
    /// The store counts no more than this for it.
    stored: usize,
    /// What the last call wanted; `None` if that is to be told anew.
    claimed: Option<usize>,
    /// Whether the last call asked for a place in the line.
    stands_in_line: bool,
    /// To give back with the next call.
    yields: usize,
    under_way: VecDeque<UnderWay>,
    /// The maximum that the next call names.
    most: NonZeroU32,
    /// Whether requests with several maxima came lately: then no place is used twice.
    is_mixed: bool,
    /// What the store told last.
    elsewhere: OtherGateways,
    /// Whether the last call failed.
    is_lost: bool,
    used_until: Moment,
    /// When the store has forgotten all that it may count.
    forgotten_at: Moment,
    last_call: Moment,
    lacks_since: Option<Moment>,
}

/// What the store told of other gateways.
#[derive(Clone, Copy, Debug, Default)]
struct OtherGateways {
    /// How many places they have.
    places: usize,
    /// How many of these are of gateways that have vanished.
    withheld: usize,
    /// Whether some of them wait for one.
    wait: bool,
}

/// A call that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    number: u64,
    wanted: usize,
    yields: usize,
    sent: Moment,
}

/// What a gateway needs of a key's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacesWanted {
    /// How many requests run.
    pub running: usize,
    /// How many wait for nothing but a place.
    pub waiting: usize,
    /// How many more may soon run, or are being decided on.
    pub coming: usize,
    /// The maximum under which they would.
    pub most: NonZeroU32,
}

impl PlacesWanted {
    fn wanted(&self) -> usize {
        self.running + self.waiting + self.coming
    }
}

impl KeyPlaces {
    /// None yet, under this maximum.
    pub fn new(most: NonZeroU32) -> Self {
        Self {
            granted: 0,
            stored: 0,
            claimed: Some(0),
            stands_in_line: false,
            yields: 0,
            under_way: VecDeque::new(),
            most,
            is_mixed: false,
            elsewhere: OtherGateways::default(),
            is_lost: false,
            used_until: Moment::default(),
            forgotten_at: Moment::default(),
            last_call: Moment::default(),
            lacks_since: None,
        }
    }

    /// Whether one more request may run under this maximum, where so many run here.
    pub fn is_free(&self, most: NonZeroU32, running: usize, now: Moment) -> bool {
        running < self.granted
            && running < count(most)
            && most >= self.most
            && now < self.used_until
    }

    /// How many run at other gateways, as far as this one knows.
    pub fn elsewhere(&self) -> usize {
        self.elsewhere.places
    }

    /// How many places of gateways that vanished nobody gets yet, as the store told last.
    pub fn withheld(&self) -> usize {
        self.elsewhere.withheld
    }

    /// Whether the last call failed: the store does not answer, or refuses this key.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Whether the last call told that so many are wanted.
    pub fn has_told(&self, needs: PlacesWanted) -> bool {
        let claimed = self.claimed.map(|claimed| claimed.max(self.granted));
        claimed.is_some_and(|claimed| claimed >= needs.wanted()) || self.is_lost
    }

    /// The maximum that the last call named.
    pub fn most(&self) -> NonZeroU32 {
        self.most
    }

    /// Whether the store counts nothing for this gateway, and no answer is to come.
    pub fn is_settled(&self, now: Moment) -> bool {
        self.under_way.is_empty() && (self.stored == 0 || now >= self.forgotten_at)
    }

    /// A request has ended; so many run still.
    pub fn freed(&mut self, running: usize) {
        // Without the store, and where it has forgotten, more may have been used than there are.
        let are_too_many = self.elsewhere.places + self.granted > count(self.most);
        let goes_back = self.elsewhere.wait || self.is_mixed || are_too_many;
        if goes_back && self.granted > running {
            self.granted -= 1;
            self.yields += 1;
        }
    }

    /// The call that is due, with this number, which must be above all before.
    ///
    /// `kept`: for how long the store counts a place that is not confirmed.
    pub fn call(
        &mut self,
        needs: PlacesWanted,
        number: u64,
        kept: Duration,
        now: Moment,
    ) -> Option<KeyPlacesCall> {
        if now >= self.used_until {
            self.granted = self.granted.min(needs.running);
        }
        let wanted = needs.wanted();
        let lacks = wanted > self.granted;
        self.lacks_since = lacks.then(|| self.lacks_since.unwrap_or(now));
        if !self.is_due(needs, now) {
            return None;
        }
        if needs.most != self.most {
            self.yields += self.granted.saturating_sub(needs.running);
            self.granted = self.granted.min(needs.running);
            self.is_mixed = needs.running > 0;
            self.most = needs.most;
        } else if needs.running == 0 {
            self.is_mixed = false;
        }
        self.granted = self.granted.min(wanted);
        let waits = needs.running + needs.waiting > self.granted.max(needs.running);
        self.stands_in_line = waits;
        let yields = std::mem::take(&mut self.yields);
        self.claimed = Some(wanted);
        self.last_call = now;
        self.forgotten_at = now + kept;
        self.under_way.push_back(UnderWay {
            number,
            wanted,
            yields,
            sent: now,
        });
        Some(KeyPlacesCall {
            number,
            has: self.granted.max(needs.running),
            wanted,
            yields,
            waits,
            most: needs.most,
        })
    }

    fn is_due(&self, needs: PlacesWanted, now: Moment) -> bool {
        let is_other = needs.most != self.most;
        if self.under_way.len() >= MAX_CALLS || (is_other && !self.under_way.is_empty()) {
            return false;
        }
        let Some(claimed) = self.claimed else {
            return self.calls_at(needs).is_some_and(|at| at <= now);
        };
        let wanted = needs.wanted();
        let lacks_more = wanted > claimed.max(self.granted);
        let has_too_many = wanted < claimed.min(self.stored);
        let leaves_line = self.stands_in_line && wanted <= self.granted;
        let gives_back = self.yields > 0 && self.stored > 0;
        let is_time = || self.calls_at(needs).is_some_and(|at| at <= now);
        lacks_more || has_too_many || leaves_line || gives_back || is_time()
    }

    /// When a call is due if nothing happens; `None`: never.
    pub fn calls_at(&self, needs: PlacesWanted) -> Option<Moment> {
        if !self.under_way.is_empty() {
            return None;
        }
        if self.is_lost || self.claimed.is_none() {
            let is_idle = needs.wanted() == 0 && self.stored == 0;
            return (!is_idle).then(|| self.last_call + TRY_EVERY);
        }
        if needs.wanted() > self.granted || needs.most != self.most {
            let lacks_since = self.lacks_since.unwrap_or(self.last_call);
            let waited = self.last_call.since(lacks_since);
            return Some(self.last_call + (waited / 16).clamp(MIN_POLL, MAX_POLL));
        }
        (self.stored > 0 || needs.running > 0).then(|| {
            let earliest = (self.last_call + MIN_RENEWAL).as_nanos();
            let period = u64::try_from(RENEW_EVERY.as_nanos()).unwrap_or(u64::MAX);
            Moment::from_nanos(earliest.div_ceil(period).saturating_mul(period))
        })
    }

    /// The store has answered the call with this number.
    pub fn answer(&mut self, number: u64, reply: KeyPlacesReply) {
        let call = self.under_way.iter().find(|call| call.number == number);
        let Some(sent) = call.map(|call| call.sent) else {
            // A later one was answered, or has failed.
            return;
        };
        self.under_way.retain(|call| call.number > number);
        let later = self.under_way.iter();
        let wanted = later.clone().map(|call| call.wanted);
        let least = wanted.clone().min().unwrap_or(usize::MAX);
        let yields: usize = later.map(|call| call.yields).sum();
        let granted = reply.granted.saturating_sub(yields + self.yields);
        if granted > self.granted {
            // It lines up anew.
            self.lacks_since = None;
        }
        self.granted = granted.min(least);
        self.stored = wanted.max().unwrap_or(0).max(reply.granted);
        self.used_until = sent + LEASE_HERE;
        self.elsewhere = OtherGateways {
            places: reply.others,
            withheld: reply.withheld,
            wait: reply.others_wait,
        };
        self.is_lost = false;
    }

    /// The call with this number failed: the store may have had it all the same, or may have it
    /// later.
    pub fn fail(&mut self, number: u64) {
        let Some(at) = self.under_way.iter().position(|call| call.number == number) else {
            return;
        };
        // It may have given back what the answer to an earlier one grants: those tell nothing more.
        let wanted = self.under_way.drain(..=at).map(|call| call.wanted).max();
        self.stored = self.stored.max(wanted.unwrap_or(0));
        self.claimed = None;
        self.is_lost = true;
        self.elsewhere.wait = false;
    }
}

fn count(most: NonZeroU32) -> usize {
    usize::try_from(most.get()).unwrap_or(usize::MAX)
}

//! State of a room that outlives its process.

use limit::{Moment, SavedRoom, WaitingRoom};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use super::{OriginRoom, RoomStore, create_signer, lottery_keys};

/// Identity of a room: tells its tickets and sessions from those of every other room.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Random number that a room gets when it begins without the state of an earlier one.
    ///
    /// So a ticket of one life of the room is not valid in another.
    pub life: u64,
    /// Secret that signs tickets and sessions if the file has no secret.
    #[serde(with = "crate::base64_bytes")]
    pub secret: [u8; 32],
}

impl Identity {
    /// Creates a random identity.
    ///
    /// If the system has no random numbers, it comes from the keys of this process's hashers.
    pub(super) fn random() -> Self {
        use std::hash::{BuildHasher, RandomState};
        let mut bytes = [0; 40];
        if SystemRandom::new().fill(&mut bytes).is_err() {
            for (nth, chunk) in bytes.chunks_mut(8).enumerate() {
                chunk.copy_from_slice(&RandomState::new().hash_one(nth).to_be_bytes());
            }
        }
        let (life, secret) = bytes.split_at(8);
        Self {
            life: u64::from_be_bytes(life.try_into().unwrap_or_default()),
            secret: secret.try_into().unwrap_or_default(),
        }
    }
}

/// Saved state of a room, with its identity.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedOriginRoom {
    /// Name of the origin.
    pub origin: String,
    /// Identity that its tickets and sessions belong to.
    #[serde(flatten)]
    pub identity: Identity,
    /// State of the room's numbers.
    #[serde(flatten)]
    pub room: SavedRoom,
}

impl OriginRoom {
    /// Returns the state to save at `now`; `None`: the room is in the store.
    ///
    /// Once it is written, `more` further numbers may be drawn (see [`reserve`](Self::reserve)).
    /// The next state must be written before they are used up.
    pub fn save(&self, more: u64, now: Moment) -> Option<SavedOriginRoom> {
        let state = self.lock();
        let RoomStore::Here(room) = &state.store else {
            return None;
        };
        let mut room = room.save(now);
        room.reserved = room.drawn.saturating_add(more);
        Some(SavedOriginRoom {
            origin: self.origin.clone(),
            identity: state.identity.clone(),
            room,
        })
    }

    /// Stops giving out numbers and sessions of a room in memory.
    ///
    /// The next process has the saved state, which does not contain later ones.
    pub fn hand_over(&self) {
        let mut state = self.lock();
        state.is_handed_over = matches!(state.store, RoomStore::Here(_));
    }

    /// Makes the numbers up to this one available, because the saved state has reserved them.
    pub fn reserve(&self, number: u64) {
        if let RoomStore::Here(room) = &mut self.lock().store {
            room.reserve(number);
        }
    }

    /// Restores a saved state. Call it before the first request.
    pub fn restore(&self, saved: SavedOriginRoom, now: Moment) {
        let mut state = self.lock();
        if let RoomStore::Shared(_) = &state.store {
            return;
        }
        let signer = create_signer(&state.settings, &self.origin, &saved.identity);
        state.lottery = lottery_keys(&signer, &state.settings);
        state.signer = std::sync::Arc::new(signer);
        state.identity = saved.identity;
        let room = WaitingRoom::restore(saved.room, state.limits(), now);
        state.store = RoomStore::Here(Box::new(room));
    }
}

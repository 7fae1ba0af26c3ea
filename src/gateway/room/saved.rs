//! What of a room outlives its process.

use limit::{Moment, SavedRoom, WaitingRoom};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use super::{Kept, OriginRoom, lottery, signer};

/// What a room has that no other has.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Differs between two lives of a room that know nothing of each other, so that tickets of
    /// one are none of the other.
    pub life: u64,
    /// Signs tickets and sessions if the file has no secret.
    #[serde(with = "super::base64_bytes")]
    pub secret: [u8; 32],
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Identity");
        shown.field("life", &self.life).finish_non_exhaustive()
    }
}

impl Identity {
    /// A new one. Without random numbers of the system the first request would fail, too: then
    /// tickets are signed with what nobody else knows but this process's hasher.
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

/// The state of a room, and what it signs with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedOriginRoom {
    /// The name of the origin.
    pub origin: String,
    /// What makes its tickets its own.
    #[serde(flatten)]
    pub identity: Identity,
    /// Its numbers.
    #[serde(flatten)]
    pub room: SavedRoom,
}

impl OriginRoom {
    /// What has to be kept of it at `now`; `None`: it is in the store. So many numbers more than were
    /// drawn are to be available from now on, so it must be kept before they are used up.
    pub fn save(&self, more: u64, now: Moment) -> Option<SavedOriginRoom> {
        let state = self.lock();
        let Kept::Here(room) = &state.kept else {
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

    /// From now on nobody gets a number or a session of a room in memory here: the next process would
    /// not know of it.
    pub fn hand_over(&self) {
        let mut state = self.lock();
        state.is_handed_over = matches!(state.kept, Kept::Here(_));
    }

    /// Makes numbers up to this one available.
    pub fn reserve(&self, number: u64) {
        if let Kept::Here(room) = &mut self.lock().kept {
            room.reserve(number);
        }
    }

    /// Goes on from a saved state. No request may have come yet.
    pub fn restore(&self, saved: SavedOriginRoom, now: Moment) {
        let mut state = self.lock();
        if let Kept::Shared(_) = &state.kept {
            return;
        }
        let signer = signer(&state.settings, &self.origin, &saved.identity);
        state.lottery = lottery(&signer, &state.settings);
        state.signer = std::sync::Arc::new(signer);
        state.identity = saved.identity;
        let room = WaitingRoom::restore(saved.room, state.limits(), now);
        state.kept = Kept::Here(Box::new(room));
    }
}

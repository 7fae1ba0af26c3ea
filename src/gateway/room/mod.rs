//! Waiting room of an origin: [`limit::WaitingRoom`] behind a short lock, tickets and sessions.
//!
//! A visitor without a *session* draws a *number* and waits. When its number is *called*, and the
//! visitor *comes* within the time `claim`, it gets a session. Its number is in a signed *ticket*,
//! which the visitor keeps. So a waiting visitor costs the gateway nothing between two requests.
//!
//! | module | content |
//! |---|---|
//! | `visitor` | answers to visitors' requests |
//! | `presented`, `ticket` | tickets and sessions: what a request presents, signatures |
//! | `draws` | limit of the numbers that one address draws |
//! | `shared`, `outage_numbers` | a room that gateways share through the store |
//! | `acts`, `api` | acts of operators |
//! | `saved` | state that outlives the process |
//! | `report` | samples, metrics and rules of the headline |

mod acts;
pub(crate) mod api;
mod draws;
mod outage_numbers;
mod presented;
pub(crate) mod report;
mod saved;
mod shared;
mod ticket;
mod visitor;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use limit::{
    LotteryKeys, Moment, Rate, RoomCounts, RoomLimits, RoomMirror, RoomState, WaitingRoom,
};

use crate::observe::metrics::RoomMetrics;
use crate::time::clock;
use crate::zone::StoreHealth;
pub use acts::{RoomOverride, RoomValues, RoomWord};
use draws::{Draws, draw_bound};
pub use presented::{Answered, Presented, SessionText, TicketText};
pub use saved::{Identity, SavedOriginRoom};
use shared::{OpChannel, SharedRoom};
use ticket::Signer;
pub use ticket::{Signed, Ticket};

/// Longest delay of a due call or expiry in a room: no visitor polls more often than this.
pub const MAX_DELAY: Duration = Duration::from_millis(250);

/// Waiting room of an origin, shared by all workers. Reloads keep it.
pub struct OriginRoom {
    /// Name of the origin.
    pub origin: String,
    /// Name of the session cookie. Two rooms may share a host, so each room has its own name.
    pub session_cookie: String,
    /// Name of the ticket cookie.
    pub ticket_cookie: String,
    /// State, behind a short lock.
    state: Mutex<State>,
    /// Counters of the room's requests.
    pub metrics: RoomMetrics,
    /// Link to the task that calls the store; `None`: the room is in memory.
    op_channel: Option<OpChannel>,
}

/// Location of a room's state.
enum RoomStore {
    /// In this gateway's memory.
    Here(Box<WaitingRoom>),
    /// In the store, shared by several gateways.
    Shared(Box<SharedRoom>),
}

/// Mutable state of a room, behind its lock.
struct State {
    /// Location of the state: memory or the store.
    store: RoomStore,
    /// Instant of the last change of the limits, by the wall clock: gateways compare it.
    since: Moment,
    /// Sum of the steps of the wall clock when the opening instant was last converted.
    stepped: i64,
    /// Configured values.
    settings: Arc<config::Room>,
    /// Identity that tickets and sessions belong to.
    identity: Identity,
    /// Signs and verifies tickets and sessions.
    signer: Arc<Signer>,
    /// Keys of the random order of visitors who came before the room opened.
    lottery: LotteryKeys,
    /// Override in force.
    overridden: Option<RoomOverride>,
    /// Operator's message to waiting visitors.
    word: Option<RoomWord>,
    /// Whether the next process has the state of the room, so that this one must not change it.
    is_handed_over: bool,
    /// Names of expired acts of operators, until they are logged.
    expired: Vec<&'static str>,
    /// Duration that the last visitor who came after a call had waited for the call.
    front_wait: Option<Duration>,
    /// Charges of addresses for numbers that they drew.
    draws: Draws,
}

/// Status of a room, for the API and metrics.
#[derive(Clone, Debug)]
pub struct RoomStatus {
    /// Numbers of visitors by state.
    pub state: RoomState,
    /// Counters since the room began.
    pub counts: RoomCounts,
    /// Effective limits.
    pub limits: RoomLimits,
    /// Override of configured values.
    pub overridden: Option<RoomOverride>,
    /// Operator's message to waiting visitors.
    pub word: Option<RoomWord>,
    /// Duration that the last visitor who came after a call had waited for the call.
    pub front_wait: Option<Duration>,
}

impl OriginRoom {
    /// Creates an empty room.
    ///
    /// `store`: store of a shared room; `None`: in memory. `since`: instant at which the file got
    /// its limits.
    pub fn new(
        origin: &str,
        settings: &config::Room,
        store: Option<&Arc<StoreHealth>>,
        (since, now): (Moment, Moment),
    ) -> Self {
        let identity = Identity::random();
        let signer = create_signer(settings, origin, &identity);
        let limits = effective_limits(settings, None);
        Self {
            origin: origin.to_owned(),
            session_cookie: format!("drip_room_{origin}"),
            ticket_cookie: format!("drip_ticket_{origin}"),
            op_channel: store.map(OpChannel::new),
            state: Mutex::new(State {
                store: if store.is_some() {
                    let mirror = RoomMirror::new(limits, now);
                    RoomStore::Shared(Box::new(SharedRoom::new(mirror)))
                } else {
                    RoomStore::Here(Box::new(WaitingRoom::new(limits, now)))
                },
                since,
                stepped: clock::stepped(),
                lottery: lottery_keys(&signer, settings),
                settings: Arc::new(settings.clone()),
                signer: Arc::new(signer),
                identity,
                overridden: None,
                word: None,
                is_handed_over: false,
                expired: Vec::new(),
                front_wait: None,
                draws: Draws::default(),
            }),
            metrics: RoomMetrics::default(),
        }
    }

    /// Returns the operator's message to waiting visitors.
    pub fn word(&self) -> Option<RoomWord> {
        self.lock().word.clone()
    }

    /// Charges an address for a number that it draws. `None`: a unix socket.
    ///
    /// # Errors
    ///
    /// The address drew too many numbers. Returns the duration after which it may draw again.
    pub fn charge_draw(&self, address: Option<IpAddr>, now: Moment) -> Result<(), Duration> {
        let mut state = self.lock();
        let bound = draw_bound(&state.limits());
        bound.map_or(Ok(()), |bound| state.draws.charge(address, bound, now))
    }

    /// Applies new settings. Every visitor keeps its position.
    pub fn retune(&self, settings: &config::Room, now: Moment) {
        let mut state = self.lock();
        let signer = create_signer(settings, &self.origin, &state.identity);
        state.lottery = lottery_keys(&signer, settings);
        state.signer = Arc::new(signer);
        // Compares the configured limits, so that an override does not hide a change.
        let before = effective_limits(&state.settings, None);
        state.settings = Arc::new(settings.clone());
        if before != effective_limits(settings, None) {
            state.apply(now);
        }
    }

    /// Returns whether the room continues in this store; `None`: in memory.
    pub fn is_kept_in(&self, store: Option<&Arc<StoreHealth>>) -> bool {
        match &self.op_channel {
            None => store.is_none(),
            Some(op_channel) => op_channel.uses_store(store),
        }
    }

    /// Ends expired calls and sessions, and calls visitors who are due.
    ///
    /// Returns the instant at which this is due again, if no request comes before.
    pub fn advance(&self, now: Moment) -> Option<Moment> {
        let mut state = self.lock();
        state.advance(now);
        match &state.store {
            RoomStore::Here(room) => room.next_event(),
            RoomStore::Shared(_) => None,
        }
    }

    /// Returns the status of the room, for the API and metrics.
    pub fn status(&self, now: Moment) -> RoomStatus {
        let mut state = self.lock();
        state.advance(now);
        let (visitors, counts) = match &state.store {
            RoomStore::Here(room) => (room.state(), room.counts()),
            RoomStore::Shared(shared) => (shared.mirror.state(), shared.mirror.room().counts()),
        };
        RoomStatus {
            state: visitors,
            counts,
            limits: state.limits(),
            overridden: state.overridden.clone(),
            word: state.word.clone(),
            front_wait: state.front_wait,
        }
    }

    /// Locks the state.
    fn lock(&self) -> MutexGuard<'_, State> {
        // No panic is expected under the lock. If there is one, the state is still valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the state of a shared room; `None`: the room is in memory.
    fn shared(&mut self) -> Option<&mut SharedRoom> {
        match &mut self.store {
            RoomStore::Here(_) => None,
            RoomStore::Shared(shared) => Some(shared),
        }
    }

    /// Follows a step of the wall clock, ends expired acts, and advances a room in memory.
    fn advance(&mut self, now: Moment) {
        if clock::stepped() != self.stepped {
            self.stepped = clock::stepped();
            let opens = self.limits().opens;
            match &mut self.store {
                RoomStore::Here(room) => room.reschedule(opens),
                RoomStore::Shared(shared) => shared.mirror.reschedule(opens),
            }
        }
        if (self.overridden.take_if(|it| it.has_expired(now))).is_some() {
            self.expired.push("override");
            self.apply(now);
        }
        if self.word.take_if(|word| word.until <= now).is_some() {
            self.expired.push("word");
        }
        if let RoomStore::Here(room) = &mut self.store {
            room.advance(self.lottery, now);
        }
    }

    /// Returns the effective limits: the configured ones with the override.
    fn limits(&self) -> RoomLimits {
        let overridden = self.overridden.as_ref();
        effective_limits(&self.settings, overridden.map(|it| &it.values))
    }

    /// Puts the effective limits into force.
    fn apply(&mut self, now: Moment) {
        let limits = self.limits();
        self.since = clock::wall();
        match &mut self.store {
            RoomStore::Here(room) => room.retune(limits, self.lottery, now),
            RoomStore::Shared(shared) => shared.mirror.retune(limits, now),
        }
    }
}

/// Creates the signer with the secrets of the file, or else with the room's own secret.
fn create_signer(settings: &config::Room, origin: &str, identity: &Identity) -> Signer {
    // The room's own secret still verifies, so a session stays valid when the file gets its first
    // secret. A shared room uses the file's secrets only: other gateways do not know its own
    // secret.
    let is_in_memory = settings.store == config::StoreKind::Memory;
    let own = is_in_memory.then_some(identity.secret.as_slice());
    let secrets = settings.secret.iter().map(config::RoomSecret::as_bytes);
    Signer::new(secrets.chain(own), origin, identity.life)
}

/// Creates the keys of the random order for the opening time of the file.
fn lottery_keys(signer: &Signer, settings: &config::Room) -> LotteryKeys {
    let opens = settings.opens.as_ref().map(|opens| opens.at);
    signer.lottery_keys(opens.unwrap_or_default())
}

/// Computes the effective limits from the file and the override.
fn effective_limits(settings: &config::Room, overridden: Option<&RoomValues>) -> RoomLimits {
    let overridden = overridden.cloned().unwrap_or_default();
    let sessions = overridden.sessions.map(NonZeroU32::new);
    let admit = overridden.admit.or(settings.admit);
    RoomLimits {
        sessions: sessions.unwrap_or(settings.sessions),
        admit: admit.unwrap_or(Rate::UNLIMITED),
        idle: settings.idle,
        claim: settings.claim,
        opens: (settings.opens.as_ref()).map(|opens| clock::from_wall(opens.at)),
        is_paused: overridden.pause,
    }
}

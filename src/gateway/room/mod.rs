//! The waiting room of an origin: [`limit::WaitingRoom`] behind one
//! short lock, and the tickets and sessions that its visitors keep.
//!
//! A visitor who waits is a number in a signed ticket, so it costs the gateway nothing between two
//! requests.

mod acts;
pub(crate) mod base64_bytes;
mod draws;
mod marks;
mod presented;
mod saved;
mod shared;
mod ticket;
mod visitor;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use limit::{
    LotteryKeys, Moment, Rate, RoomCounts, RoomLimits, RoomMirror, RoomState, WaitingRoom,
};

use crate::observe::metrics::RoomMetrics;
use crate::time::clock;
use crate::zone::StoreHealth;
pub use acts::{Expired, RoomOverride, RoomWord};
use draws::{Draws, bound};
pub use presented::{Answered, Presented, SessionText, TicketText};
pub use saved::{Identity, SavedOriginRoom};
use shared::{Asking, SharedRoom};
use ticket::Signer;
pub use ticket::{Signed, Ticket};

/// The waiting room of an origin, shared by all workers. It stays through reloads.
pub struct OriginRoom {
    /// The name of the origin.
    origin: String,
    /// The name of the cookie with a session.
    session_cookie: String,
    /// The name of the cookie with a ticket.
    ticket_cookie: String,
    state: Mutex<State>,
    metrics: RoomMetrics,
    /// `None`: the room is this gateway's own.
    asking: Option<Asking>,
}

/// Where the room is.
#[derive(Debug)]
enum Kept {
    /// In memory.
    Here(Box<WaitingRoom>),
    /// In the store.
    Shared(Box<SharedRoom>),
}

#[derive(Debug)]
struct State {
    kept: Kept,
    /// Since when the limits are as they are, by the wall clock: gateways may differ.
    since: Moment,
    /// How far the wall clock had stepped when the room last learned when it opens.
    stepped: i64,
    settings: Arc<config::Room>,
    identity: Identity,
    signer: Arc<Signer>,
    lottery: LotteryKeys,
    overridden: Option<RoomOverride>,
    word: Option<RoomWord>,
    /// Whether the next process goes on with the room.
    is_handed_over: bool,
    /// What has ended by itself, until that is taken note of.
    expired: Vec<Expired>,
    /// How long the visitor waited who came last after a call.
    front_wait: Option<Duration>,
    /// Charges of addresses for numbers that they drew.
    draws: Draws,
}

/// What is shown of a room.
#[derive(Clone, Debug)]
pub struct RoomStatus {
    /// Who is where.
    pub state: RoomState,
    /// What has happened since the room began.
    pub counts: RoomCounts,
    /// The limits in force.
    pub limits: RoomLimits,
    /// What was set by hand in place of the file's values.
    pub overridden: Option<RoomOverride>,
    /// What those who wait are told.
    pub word: Option<RoomWord>,
    /// How long the visitor waited for its call who came last after one.
    pub front_wait: Option<Duration>,
}

impl OriginRoom {
    /// An empty room. `store`: where it is, if it is shared; `since`: when the file got its limits.
    pub fn new(
        origin: &str,
        settings: &config::Room,
        store: Option<&Arc<StoreHealth>>,
        (since, now): (Moment, Moment),
    ) -> Self {
        let identity = Identity::random();
        let signer = signer(settings, origin, &identity);
        let limits = limits(settings, None);
        Self {
            origin: origin.to_owned(),
            session_cookie: format!("drip_room_{origin}"),
            ticket_cookie: format!("drip_ticket_{origin}"),
            asking: store.map(Asking::new),
            state: Mutex::new(State {
                kept: if store.is_some() {
                    let mirror = RoomMirror::new(limits, now);
                    Kept::Shared(Box::new(SharedRoom::new(mirror)))
                } else {
                    Kept::Here(Box::new(WaitingRoom::new(limits, now)))
                },
                since,
                stepped: clock::stepped(),
                lottery: lottery(&signer, settings),
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

    /// The name of the origin.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The name of the cookie with a session. Two rooms may share a host.
    pub fn session_cookie(&self) -> &str {
        &self.session_cookie
    }

    /// The name of the cookie with a ticket.
    pub fn ticket_cookie(&self) -> &str {
        &self.ticket_cookie
    }

    /// What those who wait are told by the operator.
    pub fn word(&self) -> Option<RoomWord> {
        self.lock().word.clone()
    }

    /// The counters of its requests.
    pub fn metrics(&self) -> &RoomMetrics {
        &self.metrics
    }

    /// Charges an address for a number that it draws. `None`: a unix socket.
    ///
    /// # Errors
    ///
    /// Returns the duration after which it may draw again if it drew too many.
    pub fn charge_draw(&self, address: Option<IpAddr>, now: Moment) -> Result<(), Duration> {
        let mut state = self.lock();
        let bound = bound(&state.limits());
        bound.map_or(Ok(()), |bound| state.draws.charge(address, bound, now))
    }

    /// Takes over new settings. Nobody's place changes.
    pub fn retune(&self, settings: &config::Room, now: Moment) {
        let mut state = self.lock();
        let signer = signer(settings, &self.origin, &state.identity);
        state.lottery = lottery(&signer, settings);
        state.signer = Arc::new(signer);
        let before = limits(&state.settings, None);
        state.settings = Arc::new(settings.clone());
        if before != limits(settings, None) {
            state.apply(now);
        }
    }

    /// Whether it goes on in this store; `None`: in memory.
    pub fn is_kept_in(&self, store: Option<&Arc<StoreHealth>>) -> bool {
        match &self.asking {
            None => store.is_none(),
            Some(asking) => asking.is_of(store),
        }
    }

    /// Ends what is over, and calls those whose turn it is. Returns when there is something to do
    /// again without a request.
    pub fn advance(&self, now: Moment) -> Option<Moment> {
        let mut state = self.lock();
        state.advance(now);
        match &state.kept {
            Kept::Here(room) => room.next_event(),
            Kept::Shared(_) => None,
        }
    }

    /// What is shown of it.
    pub fn status(&self, now: Moment) -> RoomStatus {
        let mut state = self.lock();
        state.advance(now);
        let (visitors, counts) = match &state.kept {
            Kept::Here(room) => (room.state(), room.counts()),
            Kept::Shared(shared) => (shared.mirror.state(), shared.mirror.counts()),
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

    fn lock(&self) -> MutexGuard<'_, State> {
        // The arithmetic does not panic; if it does, its state is still a state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What is shared of it; `None`: the room is in memory.
    fn shared(&mut self) -> Option<&mut SharedRoom> {
        match &mut self.kept {
            Kept::Here(_) => None,
            Kept::Shared(shared) => Some(shared),
        }
    }

    fn advance(&mut self, now: Moment) {
        if clock::stepped() != self.stepped {
            self.stepped = clock::stepped();
            let opens = self.limits().opens;
            match &mut self.kept {
                Kept::Here(room) => room.reschedule(opens),
                Kept::Shared(shared) => shared.mirror.reschedule(opens),
            }
        }
        if self.overridden.as_ref().is_some_and(|it| it.until <= now) {
            self.overridden = None;
            self.expired.push(Expired::Override);
            self.apply(now);
        }
        if self.word.take_if(|word| word.until <= now).is_some() {
            self.expired.push(Expired::Word);
        }
        if let Kept::Here(room) = &mut self.kept {
            room.advance(self.lottery, now);
        }
    }

    /// The limits in force: what the file and the override say.
    fn limits(&self) -> RoomLimits {
        limits(&self.settings, self.overridden.as_ref())
    }

    /// Puts the limits into force.
    fn apply(&mut self, now: Moment) {
        let limits = self.limits();
        self.since = clock::wall();
        match &mut self.kept {
            Kept::Here(room) => room.retune(limits, self.lottery, now),
            Kept::Shared(shared) => shared.mirror.retune(limits, now),
        }
    }
}

fn signer(settings: &config::Room, origin: &str, identity: &Identity) -> Signer {
    // It stays good if the file has a secret from now on. Of a shared room nobody else knows it.
    let own = [identity.secret.as_slice()];
    let own = own
        .into_iter()
        .filter(|_| settings.store == config::StoreKind::Memory);
    let secrets = settings.secret.iter().map(config::RoomSecret::as_bytes);
    Signer::new(secrets.chain(own), origin, identity.life)
}

fn lottery(signer: &Signer, settings: &config::Room) -> LotteryKeys {
    let opens = settings.opens.as_ref().map(|opens| opens.at);
    signer.lottery_keys(opens.unwrap_or_default())
}

fn limits(settings: &config::Room, overridden: Option<&RoomOverride>) -> RoomLimits {
    let by_hand = overridden.cloned().unwrap_or_default();
    RoomLimits {
        sessions: by_hand.sessions.unwrap_or(settings.sessions),
        admit: by_hand
            .admit
            .unwrap_or(settings.admit)
            .unwrap_or(Rate::UNLIMITED),
        idle: settings.idle,
        claim: settings.claim,
        opens: (settings.opens.as_ref()).map(|opens| clock::from_wall(opens.at)),
        is_paused: by_hand.is_paused,
    }
}

/// How long a room may wait with what is due: nobody who waits asks more often.
pub const MAX_DELAY: Duration = Duration::from_millis(250);

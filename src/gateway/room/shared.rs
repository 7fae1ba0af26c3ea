//! A room that several gateways share through the store.
//!
//! One task of one worker asks the store for all that visitors of this gateway do, one call after
//! another, so what comes during a call goes with the next one.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix_rt::ArbiterHandle;
use futures_util::FutureExt;
use limit::{Moment, RoomMirror};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::marks::Marks;
use super::{Kept, OriginRoom, State};
use crate::store::{Error, Link, RoomCall, RoomDone, RoomOp, RoomReply};
use crate::time::clock;
use crate::zone::StoreHealth;

/// How often the store is asked while visitors wait: a visitor who is called hears of it so late.
const ASKS: Duration = Duration::from_millis(200);
/// How often else.
const ASKS_IDLE: Duration = Duration::from_secs(2);
/// Most of what waits for the next call. What comes then is treated as in an outage.
const MAX_ASKED: usize = 10_000;
/// Most of it in one call: Redis does nothing else meanwhile.
const MAX_IN_CALL: usize = 500;
/// The part of a room that is shared.
#[derive(Debug)]
pub(super) struct SharedRoom {
    pub(super) mirror: RoomMirror,
    pub(super) marks: Marks,
    /// Visitors who came, of whom the store did not say what became.
    lost: HashMap<u64, Moment>,
}

impl SharedRoom {
    pub(super) fn new(mirror: RoomMirror) -> Self {
        Self {
            mirror,
            marks: Marks::default(),
            lost: HashMap::new(),
        }
    }
}

/// What a visitor asks of the store.
pub(super) struct PendingOp {
    op: RoomOp,
    /// `None`: nobody waits for it.
    reply: Option<oneshot::Sender<RoomDone>>,
}

/// The way to the task.
pub(super) struct Asking {
    store: Arc<StoreHealth>,
    send: mpsc::Sender<PendingOp>,
    /// Until the task has begun.
    receive: std::sync::Mutex<Option<mpsc::Receiver<PendingOp>>>,
}

impl Asking {
    pub(super) fn new(store: &Arc<StoreHealth>) -> Self {
        let (send, receive) = mpsc::channel(MAX_ASKED);
        Self {
            store: Arc::clone(store),
            send,
            receive: std::sync::Mutex::new(Some(receive)),
        }
    }

    pub(super) fn is_of(&self, store: Option<&Arc<StoreHealth>>) -> bool {
        store.is_some_and(|store| Arc::ptr_eq(store, &self.store))
    }
}

impl OriginRoom {
    /// Begins to share the room, if that is to be and has not begun. `worker`: where the task runs.
    pub fn share(self: &Arc<Self>, worker: &ArbiterHandle) {
        let Some(asking) = &self.asking else {
            return;
        };
        let receive = asking.receive.lock();
        let receive = receive
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        let Some(receive) = receive else {
            return;
        };
        let (room, store) = (Arc::downgrade(self), Arc::clone(&asking.store));
        worker.spawn_fn(move || {
            actix_rt::spawn(async move {
                let link = Link::here(&store);
                run(&room, &link, receive).await;
            });
        });
    }

    /// Waits until the gateway knows what the room is called, so that it can read what visitors
    /// have. Returns whether it does.
    pub async fn is_known(&self) -> bool {
        let is_known = || match &self.lock().kept {
            Kept::Here(_) => true,
            Kept::Shared(shared) => shared.mirror.is_known(),
        };
        // Whatever comes of it: in an outage nobody knows.
        is_known() || self.ask(RoomOp::Call(0)).await.is_some() || is_known()
    }

    /// Asks the store; `None` if it does not answer.
    pub(super) async fn ask(&self, op: RoomOp) -> Option<RoomDone> {
        let (reply, done) = oneshot::channel();
        let reply = Some(reply);
        self.asking
            .as_ref()?
            .send
            .try_send(PendingOp { op, reply })
            .ok()?;
        done.await.ok()
    }

    /// Tells the store, if it is there.
    pub(super) fn tell(&self, op: RoomOp) {
        if let Some(asking) = &self.asking {
            // What the store misses so is told again with the next request.
            let _full = asking.send.try_send(PendingOp { op, reply: None });
        }
    }
}

/// Asks the store for a room, as long as there is one.
async fn run(room: &Weak<OriginRoom>, link: &Rc<Link>, mut asked: mpsc::Receiver<PendingOp>) {
    loop {
        let Some(pause) = room.upgrade().map(|room| room.pause()) else {
            return;
        };
        let mut batch = Vec::new();
        if let Ok(0) = timeout(pause, asked.recv_many(&mut batch, MAX_IN_CALL)).await {
            return;
        }
        let Some(open) = room.upgrade() else {
            return;
        };
        let (ops, replies): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|it| (it.op, it.reply)).unzip();
        // A panic counts as no answer: nobody would be let in any more.
        let call = AssertUnwindSafe(open.call_store(link, &ops)).catch_unwind();
        match call.await.unwrap_or(Err(Error::InvalidReply)) {
            Ok(done) => {
                for (reply, done) in replies.into_iter().zip(done) {
                    // The visitor may have gone.
                    let _gone = reply.map(|reply| reply.send(done));
                }
            }
            Err(error) => {
                open.lose(&ops, &error);
                drop((open, replies));
                if !wait_until_back(room, link, &error, &mut asked).await {
                    return;
                }
            }
        }
    }
}

/// Waits until the store takes writes again. Returns whether the room still needs it.
async fn wait_until_back(
    room: &Weak<OriginRoom>,
    link: &Rc<Link>,
    error: &Error,
    asked: &mut mpsc::Receiver<PendingOp>,
) -> bool {
    if error.is_outage() {
        link.lose(error);
    }
    loop {
        // Whoever asks meanwhile is not answered.
        let is_back = tokio::select! {
            is_back = link.is_back() => is_back,
            asked = asked.recv() => match asked {
                Some(_) => false,
                None => return false,
            },
        };
        if room.strong_count() == 0 {
            return false;
        }
        if is_back {
            return true;
        }
    }
}

impl OriginRoom {
    /// How long the task may wait for visitors.
    fn pause(&self) -> Duration {
        let state = self.lock();
        match &state.kept {
            Kept::Shared(shared) if shared.mirror.is_out() || !shared.mirror.is_known() => {
                Duration::ZERO
            }
            Kept::Shared(shared) if shared.mirror.state().waiting > 0 => ASKS,
            Kept::Shared(_) | Kept::Here(_) => ASKS_IDLE,
        }
    }

    /// Has the store do this. Returns what became of each.
    async fn call_store(&self, link: &Link, ops: &[RoomOp]) -> Result<Vec<RoomDone>, Error> {
        // What the gateway must know first, it knows after the first call.
        for _ in 0..3 {
            let mut all = Vec::with_capacity(ops.len());
            let mut call = self.next_call(&mut all, ops).ok_or(Error::InvalidReply)?;
            call.ops = &all;
            let (reply, _) = link.run(link.store().room(&call)).await;
            let mut reply = reply?;
            let done = reply.done.take();
            let mut state = self.lock();
            state.follow(&self.origin, reply, clock::now());
            if let Some(mut done) = done {
                let own = all.len() - ops.len();
                for (op, done) in all.iter().zip(done.drain(..own)) {
                    // The store has taken the numbers of an outage.
                    if let (RoomOp::Mark { outage, .. }, RoomDone::Count(Some(first))) = (op, done)
                    {
                        state.know_outage(*outage, first);
                    }
                }
                return Ok(done);
            }
        }
        Err(Error::InvalidReply)
    }

    /// What the store is asked, but for the ops, which are put into `all`.
    fn next_call(&self, all: &mut Vec<RoomOp>, ops: &[RoomOp]) -> Option<RoomCall<'_>> {
        let mut state = self.lock();
        let limits = (state.limits(), state.since);
        let (life, keys) = (state.identity.life, state.lottery);
        let shared = state.shared()?;
        let marks = shared.marks.end_present().iter();
        all.extend(marks.map(|(outage, count)| RoomOp::Mark {
            outage: *outage,
            count: *count,
        }));
        all.extend(ops.iter().map(|op| shared.prepared(op)));
        Some(RoomCall {
            room: &self.origin,
            limits,
            life,
            known: shared.mirror.known(),
            lotteries: shared.mirror.lotteries().len(),
            keys,
            ops: &[],
            at: None,
        })
    }

    /// The store did not answer.
    fn lose(&self, ops: &[RoomOp], error: &Error) {
        let now = clock::now();
        let mut state = self.lock();
        if let Some(shared) = state.shared() {
            // An outage is logged once for all who share through the store.
            if !shared.mirror.is_out() && !error.is_outage() {
                let (origin, remedy) = (&self.origin, error.remedy());
                tracing::error!(
                    origin,
                    %error,
                    "the store refused the waiting room: those inside stay, and nobody is called; {remedy}"
                );
            }
            shared.mirror.lose();
            let idle = shared.mirror.limits().idle;
            shared.lost.retain(|_, at| now.since(*at) < idle);
            for op in ops {
                if let RoomOp::Come { number, .. } = op
                    && shared.lost.len() < MAX_ASKED
                {
                    shared.lost.insert(*number, now);
                }
            }
        }
    }
}

impl SharedRoom {
    /// An op as it is now: a place may have changed since it was asked.
    fn prepared(&self, op: &RoomOp) -> RoomOp {
        match op {
            RoomOp::Come { number, .. } => RoomOp::Come {
                place: self.mirror.place(*number),
                number: *number,
                is_again: self.lost.contains_key(number),
            },
            op => op.clone(),
        }
    }
}

impl State {
    fn follow(&mut self, origin: &str, reply: RoomReply, now: Moment) {
        if self.identity.life != reply.life {
            self.identity.life = reply.life;
            let signer = super::signer(&self.settings, origin, &self.identity);
            self.signer = Arc::new(signer);
            self.lottery = super::lottery(&self.signer, &self.settings);
        }
        if let Some(shared) = self.shared() {
            if shared.mirror.is_out() {
                tracing::info!(origin, "the waiting room calls again");
            }
            shared.mirror.follow(reply.snapshot, now);
        }
    }

    /// The number that a ticket has by now; `Err` with its outage if the store knows it.
    pub(super) fn number(&self, number: u64) -> Result<u64, u32> {
        match &self.kept {
            Kept::Here(_) => Ok(number),
            Kept::Shared(shared) => shared.marks.number(number),
        }
    }

    /// The store says where the numbers of an outage are.
    pub(super) fn know_outage(&mut self, outage: u32, first: u64) {
        if let Some(shared) = self.shared() {
            shared.marks.know(outage, first);
        }
    }
}

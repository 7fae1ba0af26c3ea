//! Waiting room that several gateways share through the store.
//!
//! One task of one worker sends the operations of all visitors of this gateway to the store, one
//! call after another. Operations that arrive during a call go with the next call. `outage_numbers`
//! has the numbers drawn while the store does not answer.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use actix_rt::ArbiterHandle;
use futures_util::FutureExt;
use limit::{Moment, RoomMirror};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::outage_numbers::OutageNumbers;
use super::{OriginRoom, RoomStore, State};
use crate::store::{Error, Link, RoomCall, RoomDone, RoomOp, RoomReply};
use crate::time::clock;
use crate::zone::StoreHealth;

/// Interval of calls while visitors wait: the longest delay before a visitor learns of its call.
const CALL_INTERVAL: Duration = Duration::from_millis(200);
/// Interval of calls while no visitor waits.
const CALL_INTERVAL_IDLE: Duration = Duration::from_secs(2);
/// Maximum number of pending operations. Further ones are treated as in an outage.
const MAX_PENDING: usize = 10_000;
/// Maximum number of operations in one call: Redis does nothing else meanwhile.
const MAX_IN_CALL: usize = 500;
/// Maximum number of calls for the same operations.
const MAX_CALLS: usize = 3;

/// State of a shared room in this gateway.
pub(super) struct SharedRoom {
    /// Copy of the store's state, as of its last reply.
    pub(super) mirror: RoomMirror,
    /// Numbers drawn during outages.
    pub(super) outage_numbers: OutageNumbers,
    /// Numbers of visitors who came in a call that got no answer, with the instant of its failure.
    ///
    /// The store may have let these visitors in.
    lost: HashMap<u64, Moment>,
}

impl SharedRoom {
    pub(super) fn new(mirror: RoomMirror) -> Self {
        Self {
            mirror,
            outage_numbers: OutageNumbers::default(),
            lost: HashMap::new(),
        }
    }
}

/// Operation that waits for the next call of the store.
pub(super) struct PendingOp {
    /// The operation.
    op: RoomOp,
    /// Sender of the result; `None`: no request waits for it.
    reply: Option<oneshot::Sender<RoomDone>>,
}

/// Channel to the task that calls the store.
pub(super) struct OpChannel {
    /// Store of the room.
    store: Arc<StoreHealth>,
    /// Sender of operations to the task.
    send: mpsc::Sender<PendingOp>,
    /// Receiver of operations, until the task starts and takes it.
    receive: Mutex<Option<mpsc::Receiver<PendingOp>>>,
}

impl OpChannel {
    pub(super) fn new(store: &Arc<StoreHealth>) -> Self {
        let (send, receive) = mpsc::channel(MAX_PENDING);
        Self {
            store: Arc::clone(store),
            send,
            receive: Mutex::new(Some(receive)),
        }
    }

    /// Returns whether the room is shared through this store.
    pub(super) fn uses_store(&self, store: Option<&Arc<StoreHealth>>) -> bool {
        store.is_some_and(|store| Arc::ptr_eq(store, &self.store))
    }
}

impl OriginRoom {
    /// Starts the task that shares the room, if the room is shared and has no task yet.
    ///
    /// `worker`: the worker that runs the task.
    pub fn share(self: &Arc<Self>, worker: &ArbiterHandle) {
        let Some(op_channel) = &self.op_channel else {
            return;
        };
        let receive = op_channel.receive.lock();
        let receive = receive.unwrap_or_else(PoisonError::into_inner).take();
        let Some(receive) = receive else {
            return;
        };
        let (room, store) = (Arc::downgrade(self), Arc::clone(&op_channel.store));
        worker.spawn_fn(move || {
            actix_rt::spawn(async move {
                let link = Link::here(&store);
                run(&room, &link, receive).await;
            });
        });
    }

    /// Waits for the store's first reply, which has the room's *life*. Returns whether it came.
    ///
    /// The life is part of all signatures, so the gateway cannot verify tickets before that.
    pub async fn wait_until_known(&self) -> bool {
        let is_known = || match &self.lock().store {
            RoomStore::Here(_) => true,
            RoomStore::Shared(shared) => shared.mirror.is_known(),
        };
        // To call no visitors is an operation that only fetches the life.
        is_known() || self.run_op(RoomOp::Call(0)).await.is_some() || is_known()
    }

    /// Sends an operation to the store; `None` if the store does not answer.
    pub(super) async fn run_op(&self, op: RoomOp) -> Option<RoomDone> {
        let op_channel = self.op_channel.as_ref()?;
        let (reply, done) = oneshot::channel();
        let reply = Some(reply);
        op_channel.send.try_send(PendingOp { op, reply }).ok()?;
        done.await.ok()
    }

    /// Sends an operation to the store without waiting for the result.
    pub(super) fn send_op(&self, op: RoomOp) {
        if let Some(op_channel) = &self.op_channel {
            // The next request repeats an operation that is dropped here.
            let _full = op_channel.send.try_send(PendingOp { op, reply: None });
        }
    }
}

/// Runs the calls of the store as long as the room exists.
async fn run(room: &Weak<OriginRoom>, link: &Rc<Link>, mut pending: mpsc::Receiver<PendingOp>) {
    loop {
        let Some(pause) = room.upgrade().map(|room| room.pause()) else {
            return;
        };
        let mut batch = Vec::new();
        if let Ok(0) = timeout(pause, pending.recv_many(&mut batch, MAX_IN_CALL)).await {
            return;
        }
        let Some(open_room) = room.upgrade() else {
            return;
        };
        let (ops, replies): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|it| (it.op, it.reply)).unzip();
        // A panic counts as no answer: if it ended this task, no visitor would be let in any more.
        let call = AssertUnwindSafe(open_room.call_store(link, &ops)).catch_unwind();
        match call.await.unwrap_or(Err(Error::InvalidReply)) {
            Ok(done) => {
                for (reply, done) in replies.into_iter().zip(done) {
                    // The client may have disconnected.
                    let _ignored = reply.map(|reply| reply.send(done));
                }
            }
            Err(error) => {
                open_room.note_lost(&ops, &error);
                drop((open_room, replies));
                if !wait_until_back(room, link, &error, &mut pending).await {
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
    pending: &mut mpsc::Receiver<PendingOp>,
) -> bool {
    if error.is_outage() {
        link.lose(error);
    }
    loop {
        // Operations that arrive meanwhile get no answer.
        let is_back = tokio::select! {
            is_back = link.wait_for_probe() => is_back,
            pending = pending.recv() => match pending {
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
    /// Returns the duration for which the task may wait for operations before its next call.
    fn pause(&self) -> Duration {
        let state = self.lock();
        match &state.store {
            RoomStore::Shared(shared) if shared.mirror.is_out() || !shared.mirror.is_known() => {
                Duration::ZERO
            }
            RoomStore::Shared(shared) if shared.mirror.state().waiting > 0 => CALL_INTERVAL,
            RoomStore::Shared(_) | RoomStore::Here(_) => CALL_INTERVAL_IDLE,
        }
    }

    /// Runs operations in the store. Returns the result of each.
    async fn call_store(&self, link: &Link, ops: &[RoomOp]) -> Result<Vec<RoomDone>, Error> {
        // A reply may bring only the room's life and state, if the gateway did not have the present
        // ones. Then the operations are sent again.
        for _ in 0..MAX_CALLS {
            let mut all_ops = Vec::with_capacity(ops.len());
            let call = self.next_call(&mut all_ops, ops);
            let mut call = call.ok_or(Error::InvalidReply)?;
            call.ops = &all_ops;
            let (reply, _) = link.call(&call).await;
            let mut reply = reply?;
            let done = reply.done.take();
            let mut state = self.lock();
            state.follow(&self.origin, reply, clock::now());
            if let Some(mut done) = done {
                // The first results are those of the marks, see `next_call`.
                let marks = all_ops.len() - ops.len();
                for (op, done) in all_ops.iter().zip(done.drain(..marks)) {
                    // The store has taken the numbers of an outage.
                    if let (RoomOp::Mark { outage, .. }, RoomDone::Count(Some(first))) = (op, done)
                    {
                        state.record_store_numbers(*outage, first);
                    }
                }
                return Ok(done);
            }
        }
        Err(Error::InvalidReply)
    }

    /// Builds the next call of the store, without its operations, and puts these into `all_ops`.
    ///
    /// First come *marks*, by which the store takes the numbers of ended outages. Then come `ops`.
    fn next_call(&self, all_ops: &mut Vec<RoomOp>, ops: &[RoomOp]) -> Option<RoomCall<'_>> {
        let mut state = self.lock();
        let limits = (state.limits(), state.since);
        let (life, keys) = (state.identity.life, state.lottery);
        let shared = state.shared()?;
        let outages = shared.outage_numbers.end_present().iter().copied();
        all_ops.extend(outages.map(|(outage, count)| RoomOp::Mark { outage, count }));
        all_ops.extend(ops.iter().map(|op| shared.prepare(op)));
        Some(RoomCall {
            room: &self.origin,
            limits,
            life,
            known: shared.mirror.drawn_and_called(),
            lotteries: shared.mirror.room().lotteries().len(),
            keys,
            ops: &[],
            at: None,
        })
    }

    /// Notes that a call of these operations failed.
    fn note_lost(&self, ops: &[RoomOp], error: &Error) {
        let now = clock::now();
        let mut state = self.lock();
        if let Some(shared) = state.shared() {
            // An outage is logged once for all users of the store.
            if !shared.mirror.is_out() && !error.is_outage() {
                let (origin, remedy) = (&self.origin, error.remedy());
                tracing::error!(
                    origin,
                    %error,
                    "the store refused a call of the waiting room: sessions stay, and no visitors are called; {remedy}"
                );
            }
            shared.mirror.lose();
            let idle = shared.mirror.room().limits().idle;
            shared.lost.retain(|_, at| now.since(*at) < idle);
            for op in ops {
                if let RoomOp::Come { number, .. } = op
                    && shared.lost.len() < MAX_PENDING
                {
                    shared.lost.insert(*number, now);
                }
            }
        }
    }
}

impl SharedRoom {
    /// Returns an operation as it is sent: its position is that of the present state.
    fn prepare(&self, op: &RoomOp) -> RoomOp {
        match op {
            RoomOp::Come { number, .. } => RoomOp::Come {
                position: self.mirror.room().position(*number),
                number: *number,
                is_again: self.lost.contains_key(number),
            },
            op => op.clone(),
        }
    }
}

impl State {
    /// Applies a reply of the store to this gateway's copy of the room.
    fn follow(&mut self, origin: &str, reply: RoomReply, now: Moment) {
        if self.identity.life != reply.life {
            // The room began anew in the store. Signatures depend on its life.
            self.identity.life = reply.life;
            let signer = super::create_signer(&self.settings, origin, &self.identity);
            self.signer = Arc::new(signer);
            self.lottery = super::lottery_keys(&self.signer, &self.settings);
        }
        if let Some(shared) = self.shared() {
            if shared.mirror.is_out() {
                tracing::info!(origin, "the waiting room calls visitors again");
            }
            shared.mirror.follow(reply.snapshot, now);
        }
    }

    /// Resolves the number of a ticket to the store's number.
    ///
    /// # Errors
    ///
    /// The number was drawn in an outage, and only the store knows its own number for it. Returns
    /// the name of the outage.
    pub(super) fn resolve(&self, number: u64) -> Result<u64, u32> {
        match &self.store {
            RoomStore::Here(_) => Ok(number),
            RoomStore::Shared(shared) => shared.outage_numbers.resolve(number),
        }
    }

    /// Records the store's numbers for an ended outage. The first one follows `first`.
    pub(super) fn record_store_numbers(&mut self, outage: u32, first: u64) {
        if let Some(shared) = self.shared() {
            shared.outage_numbers.record_store_numbers(outage, first);
        }
    }
}

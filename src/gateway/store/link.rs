//! Link of a thread to Redis (the *store*): its connection, its outage and the store's clock.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::script::ScriptCall;
use super::{Error, Store, StoreClock, StoreHealth, Trip};
use crate::time::clock;

/// Link of one thread to the store: a connection, an outage, and an estimate of the store's clock.
///
/// Zones, gates and waiting rooms pass it their operations and get the replies.
///
/// **Outages.** During an outage, the link probes the store at intervals until the store accepts a
/// write. Each user decides which failure begins an outage ([`lose`](Self::lose)), because the
/// costs of a failure differ. Each request of a zone waits for the store. So the first failure
/// begins an outage, and the zone makes no calls until the outage ends. A gate has claimed slots
/// ahead. Without the store, it sends its share of the rate in addition to the gateways that still
/// reach the store. So it continues to claim for a while ([`Claims`](limit::Claims)), even if a
/// zone has begun an outage.
///
/// **The clock.** A zone uses the [latest](StoreClock::latest) estimate, because a request that
/// leaves too early breaks the limit. A gate uses the [middle](StoreClock::own), because its
/// departures and those of other gateways must be evenly spaced.
pub struct Link {
    store: Store,
    health: Arc<StoreHealth>,
    clock: Rc<StoreClock>,
    /// User that is notified when an outage begins: that of all zones. `None`: no zone uses it yet.
    user: RefCell<Option<Weak<dyn LinkUser>>>,
    /// Whether an outage lasts.
    is_out: Cell<bool>,
    /// Notifies that the unavailable store was probed.
    probed: Notify,
}

/// User of a link that must know at once when an outage begins.
pub trait LinkUser: Any {
    /// Handles the start of an outage.
    fn note_outage(&self);
}

/// Outage of one thread. It ends when this is dropped.
struct Outage {
    health: Arc<StoreHealth>,
    /// Whether the store has accepted a write.
    is_back: bool,
}

impl Outage {
    /// Probes the store at intervals until it accepts a write, or until the link is dropped.
    async fn probe_until_back(mut self, link: Weak<Link>, mut next_try: Duration) {
        while !self.is_back {
            sleep(next_try).await;
            let Some(link) = link.upgrade() else {
                return;
            };
            // A panic counts as a failed probe. Otherwise the store would never be probed again.
            let probed = AssertUnwindSafe(link.store.probe()).catch_unwind().await;
            self.is_back = matches!(probed, Ok(Ok(())));
            if let Ok(Err(error)) = &probed {
                self.health.continue_outage(error);
            }
            link.is_out.set(!self.is_back);
            next_try = link.store.next_try();
            link.probed.notify_waiters();
        }
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.health.end_outage(self.is_back);
    }
}

thread_local! {
    /// Links of this thread, one for each store.
    static LINKS: RefCell<Vec<Weak<Link>>> = const { RefCell::new(Vec::new()) };
}

impl Link {
    /// Returns this thread's link to a store. Does not connect.
    pub fn here(health: &Arc<StoreHealth>) -> Rc<Self> {
        LINKS.with_borrow_mut(|links| {
            links.retain(|link| link.strong_count() > 0);
            let is_to_store = |link: &Rc<Self>| Arc::ptr_eq(&link.health, health);
            if let Some(known) = links.iter().filter_map(Weak::upgrade).find(is_to_store) {
                return known;
            }
            let new = Rc::new(Self {
                store: health.connection(),
                health: Arc::clone(health),
                clock: Rc::default(),
                user: RefCell::default(),
                is_out: Cell::default(),
                probed: Notify::new(),
            });
            links.push(Rc::downgrade(&new));
            new
        })
    }

    /// Returns the connection.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the estimate of the store's clock.
    ///
    /// In a cluster each node has its own clock. There each user gets its own estimate, because the
    /// key of a gate is on one node.
    pub fn clock(&self) -> Rc<StoreClock> {
        if self.store.url.is_cluster() {
            return Rc::default();
        }
        Rc::clone(&self.clock)
    }

    /// Returns the user of this link, which is notified when an outage begins.
    ///
    /// If there is none, `new` creates it, and the link connects before any operation.
    pub fn user<U: LinkUser>(self: &Rc<Self>, new: impl FnOnce(&Rc<Self>) -> U) -> Rc<U> {
        let known = self.live_user().map(|user| user as Rc<dyn Any>);
        if let Some(Ok(known)) = known.map(Rc::downcast) {
            return known;
        }
        let user = Rc::new(new(self));
        let weak: Weak<U> = Rc::downgrade(&user);
        self.user.replace(Some(weak));
        let link = Rc::clone(self);
        spawn_local(async move {
            if let Err(error) = link.store.probe().await {
                link.lose(&error);
            }
        });
        user
    }

    /// Returns the user, unless it was dropped.
    fn live_user(&self) -> Option<Rc<dyn LinkUser>> {
        self.user.borrow().as_ref().and_then(Weak::upgrade)
    }

    /// Calls a script. Returns its reply, and the duration of the round trip.
    pub async fn call<C: ScriptCall>(&self, call: &C) -> (Result<C::Reply, Error>, Trip) {
        self.run(self.store.call(call)).await
    }

    /// Runs operations. Returns the replies, and the duration of the round trip.
    pub async fn run<T>(&self, operations: impl Future<Output = T>) -> (T, Trip) {
        let sent = clock::now();
        let replies = operations.await;
        let received = clock::now();
        self.health.record_round_trip(received.since(sent));
        (replies, Trip { sent, received })
    }

    /// Returns whether the store is unavailable.
    pub fn is_out(&self) -> bool {
        self.is_out.get()
    }

    /// Begins an outage, which lasts until the store accepts a write.
    pub fn lose(self: &Rc<Self>, error: &Error) {
        if self.is_out.replace(true) {
            self.health.continue_outage(error);
            return;
        }
        self.health.begin_outage(error);
        let outage = Outage {
            health: Arc::clone(&self.health),
            is_back: false,
        };
        if let Some(user) = self.live_user() {
            user.note_outage();
        }
        let (link, next_try) = (Rc::downgrade(self), self.store.next_try());
        spawn_local(outage.probe_until_back(link, next_try));
    }

    /// Waits for the next probe of an unavailable store, or else for the time between two probes.
    ///
    /// Returns whether the store is available then.
    pub async fn wait_for_probe(&self) -> bool {
        if self.is_out() {
            self.probed.notified().await;
        } else {
            sleep(self.store.next_try()).await;
        }
        !self.is_out()
    }
}

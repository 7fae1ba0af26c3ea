//! Link of a thread to the store: its connection, outages and clock.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::script::ScriptCall;
use super::{Error, Store, StoreClock, StoreHealth, Trip};
use crate::time::clock;

/// Link of one thread to the store: a connection, an outage, and an estimate of the store's clock.
///
/// All features that share through the store use it: they pass it operations, and get the replies.
///
/// **Outages.** While the store is unavailable, the link tries at intervals whether it accepts a
/// write. Each user decides which failure begins an outage ([`lose`](Self::lose)), because a
/// failure has different costs. Each request of a zone waits for the store. So the first failure
/// begins an outage, and the zone makes no calls until it ends. A gate has slots ahead. Without the
/// store it sends its share of the rate in addition to gateways that still reach the store. So it
/// continues to claim for a while ([`Claims`](limit::Claims)), also in an outage that a zone has
/// found.
///
/// **The clock.** A zone uses the [latest](StoreClock::latest) estimate, because a request that
/// leaves too early breaks the limit. A gate uses the [middle](StoreClock::own), because its
/// departures and those of other gateways must be evenly spaced.
pub struct Link {
    store: Store,
    health: Arc<StoreHealth>,
    clock: Rc<StoreClock>,
    users: RefCell<Vec<Weak<dyn LinkUser>>>,
    is_out: Cell<bool>,
    /// Notifies that the unavailable store was tried.
    tried: Notify,
}

/// User of a link that must know at once when an outage begins.
pub trait LinkUser: Any {
    /// Handles the start of an outage.
    fn lost(&self);
}

/// Part of a thread in an outage. It ends when this is dropped.
struct Outage {
    health: Arc<StoreHealth>,
    is_back: bool,
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.health.found(self.is_back);
    }
}

thread_local! {
    static HERE: RefCell<Vec<Weak<Link>>> = const { RefCell::new(Vec::new()) };
}

impl Link {
    /// Returns this thread's link to a store. Does not connect.
    pub fn here(health: &Arc<StoreHealth>) -> Rc<Self> {
        HERE.with_borrow_mut(|here| {
            here.retain(|link| link.strong_count() > 0);
            let is_its = |link: &Rc<Self>| Arc::ptr_eq(&link.health, health);
            if let Some(known) = here.iter().filter_map(Weak::upgrade).find(is_its) {
                return known;
            }
            let new = Rc::new(Self {
                store: health.store(),
                health: Arc::clone(health),
                clock: Rc::default(),
                users: RefCell::default(),
                is_out: Cell::default(),
                tried: Notify::new(),
            });
            here.push(Rc::downgrade(&new));
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
        if self.store.is_cluster() {
            return Rc::default();
        }
        Rc::clone(&self.clock)
    }

    /// Returns the user of this type, which is notified when an outage begins.
    ///
    /// If there is none, `new` creates it, and the link connects before any operation.
    pub fn user<U: LinkUser>(self: &Rc<Self>, new: impl FnOnce(&Rc<Self>) -> U) -> Rc<U> {
        let mut users = self.users.borrow_mut();
        users.retain(|user| user.strong_count() > 0);
        let known = users.iter().filter_map(Weak::upgrade);
        if let Some(known) = known
            .map(|it| it as Rc<dyn Any>)
            .find_map(|it| it.downcast().ok())
        {
            return known;
        }
        let user = Rc::new(new(self));
        let weak: Weak<U> = Rc::downgrade(&user);
        users.push(weak);
        let link = Rc::clone(self);
        spawn_local(async move {
            if let Err(error) = link.store.probe().await {
                link.lose(&error);
            }
        });
        user
    }

    /// Calls a script. Returns its reply, and the duration of the round trip.
    pub async fn call<C: ScriptCall>(&self, call: &C) -> (Result<C::Reply, Error>, Trip) {
        self.run(self.store.call(call)).await
    }

    /// Runs operations. Returns the replies, and the duration of the round trip.
    pub async fn run<T>(&self, asked: impl Future<Output = T>) -> (T, Trip) {
        let sent = clock::now();
        let replies = asked.await;
        let received = clock::now();
        self.health.asked(received.since(sent));
        (replies, Trip { sent, received })
    }

    /// Returns whether the store is unavailable.
    pub fn is_out(&self) -> bool {
        self.is_out.get()
    }

    /// Begins an outage, which lasts until the store accepts a write.
    pub fn lose(self: &Rc<Self>, error: &Error) {
        if self.is_out.replace(true) {
            self.health.still_lost(error);
            return;
        }
        self.health.lost(error);
        let outage = Outage {
            health: Arc::clone(&self.health),
            is_back: false,
        };
        let users = self.users.borrow().clone();
        users
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|user| user.lost());
        let mut next_try = self.store.next_try();
        let link = Rc::downgrade(self);
        spawn_local(async move {
            // Move the whole of it: a block that names only a field takes a copy of that.
            let mut outage = outage;
            while !outage.is_back {
                sleep(next_try).await;
                let Some(link) = link.upgrade() else {
                    return;
                };
                // A panic counts as a failed try. Otherwise the store would never be tried again.
                let probed = AssertUnwindSafe(link.store.probe()).catch_unwind().await;
                outage.is_back = matches!(probed, Ok(Ok(())));
                if let Ok(Err(error)) = &probed {
                    link.health.still_lost(error);
                }
                link.is_out.set(!outage.is_back);
                next_try = link.store.next_try();
                link.tried.notify_waiters();
            }
        });
    }

    /// Waits for the next try of an unavailable store, or else for the time between two tries.
    ///
    /// Returns whether the store is then available.
    pub async fn is_back(&self) -> bool {
        if self.is_out() {
            self.tried.notified().await;
        } else {
            sleep(self.store.next_try()).await;
        }
        !self.is_out()
    }
}

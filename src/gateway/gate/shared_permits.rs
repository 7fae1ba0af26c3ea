//! Shared permits of an origin's gate: leases permits from a pool that several gateways share.
//!
//! The *pool* is the set of the origin's permits, in Redis (the *store*). A *lease* gives a gateway
//! some of them until an instant; each call of the pool extends it. After the end of its lease, a
//! gateway starts no request, or goes on *alone* with a part of the maximum, as the file says
//! (`on_store_failure`).
//!
//! [`limit::PoolClient`] decides how many permits to lease, and when to call the pool. `link` calls
//! the pool. A task (`store_task`) calls the functions of [`Dialogue`] below. `permit` is the
//! permit of one request.

mod link;

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use limit::{
    self, Moment, PermitNeeds, PermitSource, PoolCall, PoolClient, PoolCounts, PoolLimits,
    PoolReply,
};

use super::store_key::{StoreKey, new_gateway};
use super::store_task::{Caller, Dialogue, SharedThing, StoreTask};
use super::{OriginGate, Queue, State};
use crate::time::clock;
use crate::zone::{StoreError, StoreHealth};
pub(super) use link::PermitsLink;

/// End of the lease, in nanoseconds, of a gate that may start requests without a lease.
pub(super) const NO_LEASE: u64 = u64::MAX;

/// State with which a gate shares its permits.
pub(super) struct SharedPermits {
    pool_client: PoolClient,
    /// Random identifier of this gate in the cluster. Kept when the store's settings change.
    gateway: u64,
    terms: PoolTerms,
    /// Record of the task that calls the pool.
    caller: Caller,
}

/// Pool limits of the file, and the instant since which the file has this maximum.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolTerms {
    limits: PoolLimits,
    since: Moment,
}

/// Status of shared permits, for the API and the metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct PermitSharing {
    /// Number of permits that this gateway holds.
    pub held: usize,
    /// Number of held permits that a request uses.
    pub in_use: usize,
    /// Whether the lease has ended and the pool cannot be reached.
    pub is_out: bool,
    /// Number of permits that this gateway uses without the pool; `None`: only leased permits.
    pub alone: Option<usize>,
    /// Reason for which the pool cannot be reached; `None`: it can be reached.
    pub why_out: Option<StoreError>,
    /// State of the pool as of its last reply; `None`: no reply yet.
    pub pool: Option<PoolCounts>,
}

/// Returns the pool limits of an origin in the file; `None`: its permits are not shared.
fn pool_limits(origin: &config::Origin) -> Option<PoolLimits> {
    Some(PoolLimits {
        permits: origin.shared_permits()?.get(),
        orphan: origin.orphan,
        without: origin.on_store_failure,
        gateways: origin.gateways,
    })
}

impl SharedPermits {
    /// Limits the requests at the origin to the number of permits held now.
    pub(super) fn limit_to_held(&self, gate: &mut Queue, now: Moment) {
        gate.set_lent(Some(self.pool_client.leased_permits(now)), now);
    }

    /// Returns how many permits the requests in flight and the waiters of `gate` need now.
    fn needs_of(&self, gate: &Queue, now: Moment) -> PermitNeeds {
        gate.permit_needs(now, self.pool_client.ahead())
    }

    /// Records that a request may have started: passes on how many are at the origin.
    pub(super) fn note_start(&mut self, gate: &Queue) {
        self.pool_client.started(gate.in_flight());
    }

    /// Records that a request has ended. Returns whether fewer permits are held from now on.
    pub(super) fn note_end(&mut self, gate: &Queue, now: Moment) -> bool {
        let before = self.pool_client.held();
        self.pool_client.ended(gate.in_flight(), now);
        self.pool_client.held() < before
    }

    /// Wakes the task if a call is due before the task wakes by itself.
    pub(super) fn wake_task(&mut self, gate: &Queue, now: Moment) {
        let needs = self.needs_of(gate, now);
        self.caller.wake_for(self.pool_client.due(needs));
    }

    /// Returns the end of the lease in nanoseconds; [`NO_LEASE`] without one.
    fn lease_end(&self) -> u64 {
        match self.pool_client.permit_source() {
            PermitSource::Alone(_) => NO_LEASE,
            PermitSource::Pool => self.pool_client.lease_end().as_nanos(),
        }
    }
}

impl State {
    /// Returns the status of the shared permits; `None` if they are not shared.
    pub(super) fn permit_sharing(&self) -> Option<PermitSharing> {
        let permits = self.permits.as_ref()?;
        let pool_client = &permits.pool_client;
        Some(PermitSharing {
            held: pool_client.held(),
            in_use: self.gate.in_flight().min(pool_client.held()),
            is_out: pool_client.is_out(),
            alone: match pool_client.permit_source() {
                PermitSource::Alone(part) => Some(part),
                PermitSource::Pool => None,
            },
            why_out: permits.caller.refusal.clone(),
            pool: pool_client.counts(),
        })
    }

    /// Limits the requests at the origin to the permits held now, if permits are shared.
    pub(super) fn follow_permits(&mut self, now: Moment) {
        if let Some(permits) = &self.permits {
            permits.limit_to_held(&mut self.gate, now);
        }
    }

    /// Stops keeping free permits: each permit that is not in use goes back to the pool.
    pub(super) fn leave_pool(&mut self, now: Moment) {
        if let Some(permits) = &mut self.permits {
            permits.pool_client.leave();
            permits.wake_task(&self.gate, now);
        }
    }

    /// Returns how many permits the gate needs now. A closed gate has no waiters.
    fn permit_needs(&self, now: Moment) -> PermitNeeds {
        let Some(permits) = &self.permits else {
            return PermitNeeds::default();
        };
        let mut needs = permits.needs_of(&self.gate, now);
        if self.is_closed {
            needs.waiting = 0;
        }
        needs
    }
}

impl OriginGate {
    /// Shares the permits through `store` from now on, if the origin's settings ask for it.
    ///
    /// Returns the task to start; `None` if no new task is needed.
    pub(super) fn share_permits(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        since: Moment,
    ) -> Option<StoreTask> {
        let mut state = self.lock();
        let now = clock::now();
        let Some((limits, store)) = pool_limits(origin).zip(store) else {
            if state.permits.take().is_some() {
                state.gate.set_lent(None, now);
                self.lease_end.store(NO_LEASE, Ordering::Relaxed);
                drop(state);
                self.changes.send_replace(());
            }
            return None;
        };
        let caller = Caller::new(store);
        let task = |gateway| StoreTask::new(self, origin, SharedThing::Permits, gateway, &caller);
        let Some(permits) = &mut state.permits else {
            let gateway = new_gateway(&origin.name);
            let task = task(gateway);
            state.permits = Some(Box::new(SharedPermits {
                pool_client: PoolClient::new(limits),
                gateway,
                terms: PoolTerms { limits, since },
                caller,
            }));
            // No lease yet: no request may start.
            self.lease_end.store(0, Ordering::Relaxed);
            state.follow_permits(now);
            return Some(task);
        };
        if permits.terms.limits.permits != limits.permits {
            permits.terms.since = since;
        }
        permits.terms.limits = limits;
        permits.pool_client.retune(limits);
        if permits.caller.is_for(store) {
            permits.caller.wake();
            return None;
        }
        // The identifier stays, so that the pool withholds the permits that this gateway had
        // before.
        permits.pool_client.reconnect();
        let task = task(permits.gateway);
        permits.caller = caller;
        state.follow_permits(now);
        Some(task)
    }

    /// Returns whether a request with a permit may still be sent: the lease has not ended.
    ///
    /// A gateway that stood still may find that its lease has ended.
    pub(super) fn may_start(&self) -> bool {
        let lease_end = self.lease_end.load(Ordering::Relaxed);
        lease_end == NO_LEASE || clock::now().as_nanos() < lease_end
    }

    /// Gives all free permits back to the pool, and waits until the pool has confirmed it.
    ///
    /// Does not wait for a pool that cannot be reached.
    pub(crate) async fn give_back_permits(&self) {
        const CHECK_INTERVAL: Duration = Duration::from_millis(5);
        while !self.try_to_give_back() {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Gives all free permits back to the pool. Returns whether there is nothing to wait for.
    fn try_to_give_back(&self) -> bool {
        let mut state = self.lock();
        let needs = state.permit_needs(clock::now());
        let Some(permits) = &mut state.permits else {
            return true;
        };
        permits.pool_client.leave();
        let is_over = permits.pool_client.has_returned_all(needs) || permits.pool_client.is_out();
        if !is_over {
            permits.caller.wake();
        }
        is_over
    }

    /// Returns the status of the shared permits; `None` if they are not shared.
    pub fn permit_sharing(&self) -> Option<PermitSharing> {
        self.lock().permit_sharing()
    }

    /// Returns the number of requests at the origin; `None` if its permits are shared again.
    pub(super) fn in_use_after_sharing(&self) -> Option<usize> {
        let state = self.lock();
        (state.permits.is_none()).then(|| state.gate.in_flight())
    }
}

impl Dialogue for PermitsLink {
    type Call = (PoolCall, PoolTerms);
    type Reply = PoolReply;

    fn caller(state: &mut State) -> Option<&mut Caller> {
        state.permits.as_mut().map(|permits| &mut permits.caller)
    }

    fn next_call(_: &OriginGate, state: &mut State, now: Moment) -> Option<Self::Call> {
        let needs = state.permit_needs(now);
        let permits = state.permits.as_mut()?;
        if !(permits.caller).begin_if_due(permits.pool_client.due(needs), now) {
            return None;
        }
        let call = permits.pool_client.call(needs, now);
        // Permits that the call gives back to the pool must not be used from now on.
        permits.limit_to_held(&mut state.gate, now);
        Some((call, permits.terms))
    }

    async fn call(
        &mut self,
        key: &mut StoreKey,
        (call, terms): &Self::Call,
    ) -> Result<PoolReply, StoreError> {
        self.report(key, call, *terms).await
    }

    fn use_reply(
        gate: &Arc<OriginGate>,
        mut state: MutexGuard<'_, State>,
        origin: &str,
        _: Self::Call,
        reply: Result<PoolReply, StoreError>,
    ) -> bool {
        let now = clock::now();
        let needs = state.permit_needs(now);
        let Some(permits) = &mut state.permits else {
            return false;
        };
        let pool_client = &mut permits.pool_client;
        let was_out = pool_client.is_out();
        match &reply {
            Ok(reply) => pool_client.answered(reply, needs, now),
            Err(_) => pool_client.failed(),
        }
        let (is_out, permit_source) = (pool_client.is_out(), pool_client.permit_source());
        let most = permits.terms.limits.permits;
        gate.lease_end.store(permits.lease_end(), Ordering::Relaxed);
        state.follow_permits(now);
        gate.advance(state, now);
        match &reply {
            Err(why) if is_out && !was_out => log_pool_out(origin, permit_source, most, why),
            Ok(_) if was_out => tracing::info!(origin, "the gateways share the permits again"),
            _ => {}
        }
        is_out
    }
}

/// Logs that the pool of this origin cannot be called, and how the gateway goes on.
fn log_pool_out(origin: &str, permit_source: PermitSource, most: usize, why: &StoreError) {
    let remedy = why.remedy();
    let problem = if why.is_answer() {
        "the store refuses the calls for the origin's permits"
    } else {
        "the store does not answer"
    };
    let consequence = match permit_source {
        PermitSource::Alone(part) => format!("goes on alone with {part} of {most} permits"),
        PermitSource::Pool => "starts no requests".to_owned(),
    };
    tracing::warn!(
        origin,
        error = why.to_string(),
        "{problem}, and the lease of the permits has ended: this gateway {consequence}; {remedy}"
    );
}

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::alarms::Alarms;
use super::{GateRejection, Granted, OriginGate, Place};
use crate::actors::Key;
use crate::limit::{ClassPosition, Moment, Share};
use crate::observe::metrics::GateRejected;
use crate::time::pacer::Pacer;

/// A request that waits at a gate. If this is dropped, it leaves the queue.
#[derive(Debug)]
pub struct Waiting {
    gate: Arc<OriginGate>,
    share: Share<Key>,
    position: ClassPosition,
    /// If the turn is on its way when this is dropped, its place is given back.
    turn: oneshot::Receiver<Granted>,
    since: Moment,
    alarms: Rc<Alarms>,
    has_left: bool,
}

impl Waiting {
    pub(super) fn new(
        gate: Arc<OriginGate>,
        share: Share<Key>,
        position: ClassPosition,
        turn: oneshot::Receiver<Granted>,
        since: Moment,
        alarms: Rc<Alarms>,
    ) -> Self {
        Self {
            gate,
            share,
            position,
            turn,
            since,
            alarms,
            has_left: false,
        }
    }

    /// Waits for the turn, and then until the slot has come.
    ///
    /// # Errors
    ///
    /// Returns an error after `limit`, or if the gateway stops.
    pub async fn turn(
        mut self,
        limit: Duration,
        pacer: &Rc<Pacer>,
    ) -> Result<Place, GateRejection> {
        let Ok(answer) = timeout(limit, &mut self.turn).await else {
            return Err(GateRejection {
                reason: GateRejected::Timeout,
                retry_after: self.gate.predicted_wait(&self.share),
            });
        };
        self.has_left = true;
        let Ok(Granted { place, due }) = answer else {
            return Err(GateRejection {
                reason: GateRejected::Stopping,
                retry_after: Duration::ZERO,
            });
        };
        if due > pacer.now() {
            let (alarm, mut bell) = pacer.alarm();
            alarm.set(Some(due));
            bell.next().await;
        }
        self.gate.metrics.waited(pacer.now().since(self.since));
        Ok(place)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.alarms.leave();
        if !self.has_left {
            self.gate.leave(&self.position);
        }
    }
}

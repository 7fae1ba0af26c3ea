//! Stop of a gateway: no new connections, queues drain, state and logs are written.
//!
//! *Draining*: requests that wait depart at their rate. The rest is rejected after
//! `shutdown_timeout`.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::accept::Accepting;
use super::reload::Reloader;
use super::signals::{self, SignalRequest, Signals};
use super::state::{MAX_WRITING_IN_HASTE, StateFile};
use crate::http::gateway::Gateway;
use crate::observe::access;
use crate::time::clock;

/// Time limit for clients to receive their last response after all waiters were rejected.
const MAX_LAST_RESPONSES: Duration = Duration::from_secs(1);

/// Time limit for zones and gates to give back to Redis what they have leased from it, unused.
const MAX_LAST_REFUNDS: Duration = Duration::from_secs(1);

/// Minimum time that the disk gets for the last lines of the access log.
const MIN_LAST_LINES: Duration = Duration::from_secs(1);

/// Stops accepting, and lets the queues drain.
///
/// After `shutdown_timeout` the remaining waiters are rejected. The next process starts from
/// `state_file`.
///
/// A second signal to stop ends the drain at once, or as soon as `state_file` is written.
pub(super) async fn drain(
    reloader: Reloader,
    accepting: Accepting,
    state_file: Option<StateFile>,
    signals: &mut Signals,
) {
    let gateway = reloader.gateway();
    let shutdown_timeout = gateway.settings().server.shutdown_timeout;
    tracing::info!(
        ?shutdown_timeout,
        "stopping: no new connections; the queues drain"
    );
    let began = clock::now();
    let stopping = Arc::downgrade(&gateway);
    gateway.stop();
    let in_haste = Notify::new();
    let (writing, written) = oneshot::channel::<Infallible>();
    let ending = async {
        hand_over_and_drain(&gateway, accepting, state_file, &in_haste, writing).await;
        if let Some(spans) = gateway.spans() {
            log_lost(spans.finish().await, "spans were not sent in time");
        }
        drop(gateway);
        reloader.end();
        let time_left = shutdown_timeout.saturating_sub(clock::now().since(began));
        let lost = access::finish(time_left.max(MIN_LAST_LINES)).await;
        log_lost(lost, "lines of the access log were not written in time");
    };
    let mut ending = pin!(ending);
    tokio::select! {
        () = &mut ending => return,
        () = wait_for_second_stop(signals, &stopping) => {}
    }
    in_haste.notify_one();
    tokio::select! {
        () = ending => {}
        _written_or_late = timeout(MAX_WRITING_IN_HASTE, written) => {}
    }
}

/// Answers all waiters, writes the state for the next process, and ends the workers.
///
/// Drops `writing` once the state is written. `in_haste` speeds up the writing.
async fn hand_over_and_drain(
    gateway: &Arc<Gateway>,
    mut accepting: Accepting,
    state_file: Option<StateFile>,
    in_haste: &Notify,
    writing: oneshot::Sender<Infallible>,
) {
    accepting.acceptor.close().await;
    let handing_over = async {
        if let Some(state_file) = state_file {
            let all_closed = accepting.connections.all_closed();
            state_file
                .hand_over(gateway, all_closed, in_haste.notified())
                .await;
        }
        drop(writing);
    };
    // A worker has queues whose waiters are connected to other workers. So no worker ends before
    // all connections have ended.
    let draining = async {
        let shutdown_timeout = gateway.settings().server.shutdown_timeout;
        let connections = &accepting.connections;
        let drained = timeout(shutdown_timeout, connections.all_closed()).await;
        if drained.is_err() {
            gateway.reject_all();
            let _last_responses = timeout(MAX_LAST_RESPONSES, connections.all_closed()).await;
        }
    };
    tokio::join!(handing_over, draining);
    // The workers' timers and links to Redis end with them.
    let _late = timeout(MAX_LAST_REFUNDS, gateway.give_back_leases()).await;
    accepting.end().await;
}

/// Logs the number of spans or lines that are lost, if any.
fn log_lost(lost: usize, what: &str) {
    if lost > 0 {
        tracing::error!(lost, "{what}");
    }
}

/// Waits for the second signal to stop. Until then reopens the access log of `gateway` on request.
async fn wait_for_second_stop(signals: &mut Signals, gateway: &Weak<Gateway>) {
    loop {
        match signals.next().await {
            SignalRequest::Stop => break,
            SignalRequest::Reload | SignalRequest::ReopenLogs => {
                if let Some(gateway) = gateway.upgrade() {
                    signals::reopen_access_log(&gateway);
                }
            }
        }
    }
    tracing::info!("second signal to stop: ending at once");
}

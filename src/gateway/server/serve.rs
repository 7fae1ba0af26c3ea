//! Main task of the process: starts, serves, reloads the file, and stops.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use config::{self, AdminTokens, ChangedBy, FileState, History, LoadError, MetricsAccess, Watcher};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::accept::Accepting;
use super::address::live_page;
use super::drain::drain;
use super::listeners::explain_failed_bind;
use super::load::Loaded;
use super::names::NameWatch;
use super::notify::ServiceManager;
use super::reload::Reloader;
use super::signals::{SignalRequest, Signals};
use super::state::StateFile;
use super::watchdog::Watchdog;
use super::{memory, rooms, signals};
use crate::admin::{self, Admin, Experiments, Order, OrderKind};
use crate::http::gateway::Gateway;
use crate::observe::connections::ClientConnections;
use crate::status::{RecentStatus, Recorder};
use crate::time::clock;

/// Serves until the process receives a stop signal and all requests have been answered.
///
/// Publishes each gateway that comes into force on `gateway_sender`.
///
/// # Errors
///
/// An address cannot be listened on.
pub async fn serve(
    loaded: Loaded,
    tokens: AdminTokens,
    gateway_sender: watch::Sender<Option<Arc<Gateway>>>,
) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    let recorder = Recorder::install()?;
    let watcher = Watcher::start(loaded.file.clone(), loaded.text.clone());
    let is_accepting = Arc::new(AtomicBool::new(false));
    let (file_state_sender, file_state) = watch::channel(FileState::at_start(clock::now()));
    let history = History::default();
    let connections = ClientConnections::default();
    let (order_sender, orders) = mpsc::channel(1);

    let server = &loaded.settings.server;
    if let Some(address) = server.admin {
        let admin = Admin {
            accepting: Arc::clone(&is_accepting),
            recorder,
            gateway: gateway_sender.subscribe(),
            file: file_name(&loaded.file),
            file_state,
            history: history.clone(),
            orders: order_sender,
            recent: RecentStatus::default(),
            connections: connections.clone(),
            tokens,
            metrics_need_token: AtomicBool::new(server.metrics == MetricsAccess::Token),
            experiments: Experiments::default(),
        };
        let explain = |error| explain_failed_bind(&error, &format!("server.admin {address}"));
        actix_rt::spawn(admin::listen(address, admin).map_err(explain)?);
    }
    let mut state_file = tokio::select! {
        state_file = StateFile::open(server.state.as_deref()) => state_file,
        () = signals.wait_for_stop() => {
            tracing::info!("stopped before the gateway listens");
            return Ok(());
        }
    };
    let accepting = Accepting::start(server, gateway_sender.subscribe(), connections).await?;
    log_start(server);
    let names = NameWatch::new(gateway_sender.subscribe());
    let rooms_file = state_file.as_ref().and_then(StateFile::rooms);
    let rooms = rooms::keep(gateway_sender.subscribe(), rooms_file);
    let reloader = Reloader::start(
        loaded,
        accepting.workers(),
        gateway_sender,
        file_state_sender,
        history,
        state_file.as_mut(),
    )?;
    is_accepting.store(true, Ordering::Relaxed);

    let (manager, watchdog) = (ServiceManager::from_env(), Watchdog::from_env());
    let threads = accepting.threads();
    let mut running = Running {
        signals,
        watcher,
        orders,
        accepting,
        reloader,
        names,
        manager: &manager,
    };
    running.watcher.follow(running.reloader.other_files());
    manager.send_ready(running.reloader.gateway().settings());
    tokio::select! {
        ended = running.until_drain(&is_accepting) => ended?,
        never = watchdog.notify_while_all_respond(&manager, &threads) => match never {},
        never = memory::give_back() => match never {},
        never = rooms => match never {},
    }
    tokio::select! {
        () = running.stop(state_file) => Ok(()),
        // The threads end one by one, so only this task is watched.
        never = watchdog.notify_while_all_respond(&manager, &[]) => match never {},
    }
}

/// Logs the addresses, the name and the version at the start.
fn log_start(server: &config::Server) {
    let addresses: Vec<_> = server.listen.iter().map(ToString::to_string).collect();
    let live_page = server.admin.map(live_page);
    tracing::info!(
        address = addresses.join(", "),
        live_page = live_page.as_deref(),
        gateway = server.name,
        version = env!("CARGO_PKG_VERSION"),
        "listening"
    );
}

/// Sources of events while the gateway accepts connections.
struct Running<'a> {
    signals: Signals,
    watcher: Watcher,
    /// Orders of requests to the admin port for this task.
    orders: mpsc::Receiver<Order>,
    accepting: Accepting,
    reloader: Reloader,
    names: NameWatch,
    manager: &'a ServiceManager,
}

impl Running<'_> {
    /// Serves until the drain has to begin.
    ///
    /// That is `stop_delay` after a request to stop, or at the second request.
    ///
    /// # Errors
    ///
    /// Connections can no longer be accepted.
    async fn until_drain(&mut self, is_accepting: &AtomicBool) -> io::Result<()> {
        self.until_stop().await?;
        is_accepting.store(false, Ordering::Relaxed);
        let gateway = self.reloader.gateway();
        let server = &gateway.settings().server;
        let stop_delay = server.stop_delay;
        if stop_delay.is_zero() {
            return Ok(());
        }
        self.manager
            .send_stopping(stop_delay + server.shutdown_timeout);
        drop(gateway);
        tracing::info!(
            ?stop_delay,
            "not ready: connections are accepted for stop_delay, then the stop begins"
        );
        let second_stop = timeout(stop_delay, self.until_stop()).await;
        second_stop.unwrap_or(Ok(()))
    }

    /// Handles all events until the next request to stop.
    ///
    /// # Errors
    ///
    /// Connections can no longer be accepted.
    async fn until_stop(&mut self) -> io::Result<()> {
        loop {
            tokio::select! {
                signal = self.signals.next() => match signal {
                    SignalRequest::Reload => {
                        let read = self.watcher.read();
                        // A reload reopens the logs. A file with errors must not prevent that.
                        if !self.reload(read, ChangedBy::Signal) {
                            signals::reopen_access_log(&self.reloader.gateway());
                        }
                    }
                    SignalRequest::ReopenLogs => signals::reopen_access_log(&self.reloader.gateway()),
                    SignalRequest::Stop => return Ok(()),
                },
                changed = self.watcher.changed() => {
                    self.reload(changed, ChangedBy::File);
                }
                found = self.names.changed() => self.reloader.adopt_addresses(found),
                Some(order) = self.orders.recv() => self.carry_out(order),
                failure = self.accepting.acceptor.failure() => return Err(failure),
            }
            self.watcher.follow(self.reloader.other_files());
        }
    }

    /// Carries out an order of the admin port.
    fn carry_out(&mut self, order: Order) {
        match order.kind {
            OrderKind::Reload => {
                let read = self.watcher.read();
                self.reload(read, ChangedBy::Api);
            }
            OrderKind::Maintain(change) => self.reloader.maintain(change),
        }
        // The requester may have disconnected. Then nothing needs the result.
        let _ignored = order.done.send(());
    }

    /// Puts the read text into force. Returns whether it is in force.
    fn reload(&self, read: Result<String, LoadError>, by: ChangedBy) -> bool {
        self.manager.send_reloading();
        let is_in_force = self.reloader.reload(read, by);
        if is_in_force {
            self.manager.send_ready(self.reloader.gateway().settings());
        } else {
            self.manager.send_refused();
        }
        is_in_force
    }

    /// Stops accepting, lets the queues drain, and saves the state for the next process.
    async fn stop(mut self, state_file: Option<StateFile>) {
        // Begin now: the kernel may need seconds to end the watch of the file.
        drop(self.watcher);
        // The file is no longer read. Closing the channel notifies the requesters of reloads.
        drop(self.orders);
        let shutdown_timeout = self.reloader.gateway().settings().server.shutdown_timeout;
        self.manager.send_stopping(shutdown_timeout);
        drain(self.reloader, self.accepting, state_file, &mut self.signals).await;
    }
}

/// Returns the name of the file without its folder.
pub fn file_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

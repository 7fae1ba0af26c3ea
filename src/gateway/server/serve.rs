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
use super::listeners::in_use;
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
    let accepts = Arc::new(AtomicBool::new(false));
    let (state, file_state) = watch::channel(FileState::loaded(clock::now()));
    let history = History::default();
    let connections = ClientConnections::default();
    let (order, orders) = mpsc::channel(1);

    let server = &loaded.settings.server;
    if let Some(address) = server.admin {
        let admin = Admin {
            accepting: Arc::clone(&accepts),
            recorder,
            gateway: gateway_sender.subscribe(),
            file: file_name(&loaded.file),
            file_state,
            history: history.clone(),
            orders: order,
            recent: RecentStatus::default(),
            connections: connections.clone(),
            tokens,
            metrics_need_token: AtomicBool::new(server.metrics == MetricsAccess::Token),
            experiments: Experiments::default(),
        };
        let admin = admin::listen(address, admin);
        actix_rt::spawn(admin.map_err(|error| in_use(&error, &format!("server.admin {address}")))?);
    }
    let mut kept = tokio::select! {
        kept = StateFile::open(server.state.as_deref()) => kept,
        () = signals.stop() => {
            tracing::info!("stopped before the gateway listens");
            return Ok(());
        }
    };
    let accepting = Accepting::start(server, gateway_sender.subscribe(), connections).await?;
    log_the_start(server);
    let workers = accepting.workers();
    let names = NameWatch::new(gateway_sender.subscribe());
    let rooms = rooms::keep(
        gateway_sender.subscribe(),
        kept.as_ref().and_then(StateFile::rooms),
    );
    let left = kept.as_mut();
    let reloader = Reloader::start(loaded, workers, gateway_sender, state, history, left)?;
    accepts.store(true, Ordering::Relaxed);

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
    manager.ready(running.reloader.gateway().settings());
    tokio::select! {
        ended = running.until_drain(&accepts) => ended?,
        never = watchdog.while_all_answer(&manager, &threads) => match never {},
        never = memory::give_back() => match never {},
        never = rooms => match never {},
    }
    tokio::select! {
        () = running.stop(kept) => Ok(()),
        // The threads end one by one.
        never = watchdog.while_all_answer(&manager, &[]) => match never {},
    }
}

/// Logs the addresses and the version at the start.
fn log_the_start(server: &config::Server) {
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(gateway = server.name, version, "the gateway starts");
    let addresses: Vec<_> = server.listen.iter().map(ToString::to_string).collect();
    let (address, live_page) = (addresses.join(", "), server.admin.map(live_page));
    tracing::info!(address, live_page = live_page.as_deref(), "listening");
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
    async fn until_drain(&mut self, accepts: &AtomicBool) -> io::Result<()> {
        self.until_stop().await?;
        accepts.store(false, Ordering::Relaxed);
        let gateway = self.reloader.gateway();
        let server = &gateway.settings().server;
        let stop_delay = server.stop_delay;
        if stop_delay.is_zero() {
            return Ok(());
        }
        self.manager.stopping(stop_delay + server.shutdown_timeout);
        drop(gateway);
        tracing::info!(
            ?stop_delay,
            "not ready: connections are accepted for stop_delay, then the stop begins"
        );
        // An error is the end of accepting.
        timeout(stop_delay, self.until_stop())
            .await
            .unwrap_or(Ok(()))
    }

    /// Reads the file again when it changes or when a reload is requested.
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
                        // A reload opens the logs. A file with errors must not prevent that.
                        if !self.reload(read, ChangedBy::Signal) {
                            signals::reopen(&self.reloader.gateway());
                        }
                    }
                    SignalRequest::ReopenLogs => signals::reopen(&self.reloader.gateway()),
                    SignalRequest::Stop => return Ok(()),
                },
                changed = self.watcher.changed() => {
                    self.reload(changed, ChangedBy::File);
                }
                found = self.names.changed() => self.reloader.take_addresses(found),
                Some(order) = self.orders.recv() => self.obey(order),
                failed = self.accepting.acceptor.failure() => return Err(failed),
            }
            self.watcher.follow(self.reloader.other_files());
        }
    }

    /// Carries out an order of the admin port.
    fn obey(&mut self, order: Order) {
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
        self.manager.reloading();
        let is_in_force = self.reloader.take(read, by);
        if is_in_force {
            self.manager.ready(self.reloader.gateway().settings());
        } else {
            self.manager.refused();
        }
        is_in_force
    }

    /// Stops accepting, lets the queues drain, and saves the state for the next process in `kept`.
    async fn stop(mut self, kept: Option<StateFile>) {
        // The kernel may need seconds to end the watch: it does so while the queues drain.
        drop(self.watcher);
        // The file is no longer read. Closing the channel notifies the requesters of reloads.
        drop(self.orders);
        let shutdown_timeout = self.reloader.gateway().settings().server.shutdown_timeout;
        self.manager.stopping(shutdown_timeout);
        drain(self.reloader, self.accepting, kept, &mut self.signals).await;
    }
}

/// Returns the name of the file without its folder.
pub fn file_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

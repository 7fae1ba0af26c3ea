use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::accept::Accepting;
use super::address::live_page;
use super::listeners::in_use;
use super::load::Loaded;
use super::notify::ServiceManager;
use super::reload::Reloader;
use super::signals::{SignalRequest, Signals};
use super::state::{StateFile, WRITING_IN_HASTE};
use super::watchdog::Watchdog;
use super::{logs, memory};
use crate::admin::{self, Admin, Health, Read};
use crate::config::{self, ChangedBy, FileState, History, Watcher};
use crate::http::gateway::Gateway;
use crate::observe::access;
use crate::observe::connections::ClientConnections;
use crate::status::{RecentStatus, Recorder};
use crate::time::clock;

/// Time that connections get to receive their last answer after all waiters were rejected.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Time that Redis gets to take the places back that zones took ahead.
const LAST_REFUNDS: Duration = Duration::from_secs(1);

/// Time that the disk gets at least to take the last lines of the access log.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Serves until the process is told to stop and all requests have been answered.
///
/// Sends each gateway that comes into force on `tell`.
///
/// # Errors
///
/// Returns an error if an address cannot be listened on, or the folder of the file cannot be
/// watched.
pub(crate) async fn serve(
    loaded: Loaded,
    tell: watch::Sender<Option<Arc<Gateway>>>,
) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    let recorder = Recorder::install()?;
    let mut watcher =
        Watcher::start(loaded.file.clone(), loaded.text.clone()).map_err(io::Error::other)?;
    let health = Health::of(tell.subscribe());
    let (state, file_state) = watch::channel(FileState::loaded(clock::now()));
    let history = History::default();
    let connections = ClientConnections::default();
    let (ask, mut asked_to_read) = mpsc::channel(1);

    let server = &loaded.settings.server;
    if let Some(address) = server.admin {
        let admin = Admin {
            health: health.clone(),
            recorder,
            gateway: tell.subscribe(),
            file: file_name(&loaded.file),
            file_state,
            history: history.clone(),
            reload: ask,
            recent: RecentStatus::default(),
            connections: connections.clone(),
            token: config::admin_token(),
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
    let mut accepting = Accepting::start(server, tell.subscribe(), connections).await?;
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(gateway = server.name, version, "the gateway starts");
    let addresses: Vec<_> = server.listen.iter().map(ToString::to_string).collect();
    let (address, live_page) = (addresses.join(", "), server.admin.map(live_page));
    tracing::info!(address, live_page = live_page.as_deref(), "listening");
    let workers = accepting.workers();
    let reloader = Reloader::start(loaded, workers, tell, state, history, kept.as_mut())?;
    health.set_accepting(true);
    watcher.follow(reloader.other_files());

    let manager = ServiceManager::from_env();
    let watchdog = Watchdog::from_env();
    let threads = accepting.threads();
    let reload = |read, by| {
        manager.reloading();
        let is_in_force = reloader.take(read, by);
        if is_in_force {
            manager.ready(reloader.gateway().settings());
        } else {
            manager.refused();
        }
        is_in_force
    };
    let until_stop = async {
        loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    SignalRequest::Reload => {
                        // A reload opens the logs; a file with errors must not keep them from it.
                        if !reload(watcher.read(), ChangedBy::Signal) {
                            logs::reopen(&reloader.gateway());
                        }
                    }
                    SignalRequest::ReopenLogs => logs::reopen(&reloader.gateway()),
                    SignalRequest::Ignored => logs::ignored_signal(),
                    SignalRequest::Stop => return Ok(()),
                },
                changed = watcher.changed() => {
                    reload(changed, ChangedBy::File);
                }
                Some(Read { done }) = asked_to_read.recv() => {
                    reload(watcher.read(), ChangedBy::Api);
                    // The caller may have gone; then nothing needs the answer.
                    let _gone = done.send(());
                }
                failed = accepting.failure() => return Err(failed),
            }
            watcher.follow(reloader.other_files());
        }
    };
    manager.ready(reloader.gateway().settings());
    tokio::select! {
        ended = until_stop => ended?,
        never = watchdog.while_all_answer(&manager, &threads) => match never {},
        never = memory::give_back() => match never {},
    }
    health.set_accepting(false);
    // The kernel may need seconds to end the watch: it does so while the queues drain.
    drop(watcher);
    // The file is not read any more. Closing the channel tells callers that ask for a reload.
    drop(asked_to_read);
    manager.stopping(reloader.gateway().settings().server.shutdown_timeout);
    tokio::select! {
        () = stop(reloader, accepting, kept, &mut signals) => Ok(()),
        never = watchdog.while_stopping(&manager) => match never {},
    }
}

fn file_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Stops accepting, and lets the queues drain.
///
/// After `shutdown_timeout` the remaining waiters are rejected. The next process starts from
/// `kept`.
///
/// A second signal to stop ends it at once, or as soon as `kept` is written.
async fn stop(
    reloader: Reloader,
    mut accepting: Accepting,
    kept: Option<StateFile>,
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
    let (done, written) = oneshot::channel::<Infallible>();
    let in_haste_too = &in_haste;
    let ending = async move {
        accepting.close().await;
        let handing_over = async {
            if let Some(kept) = kept {
                let (all_gone, in_haste) = (accepting.all_gone(), in_haste_too.notified());
                kept.hand_over(&gateway, all_gone, in_haste).await;
            }
            drop(done);
        };
        // A queue lives on one worker, and its waiters may be connected to another worker. So no
        // worker ends before all connections have ended.
        let draining = async {
            if timeout(shutdown_timeout, accepting.all_gone())
                .await
                .is_err()
            {
                gateway.reject_all();
                let _last_answers = timeout(LAST_ANSWERS, accepting.all_gone()).await;
            }
        };
        tokio::join!(handing_over, draining);
        // The workers' timers and links to Redis end with them.
        let _late = timeout(LAST_REFUNDS, gateway.give_back_leases()).await;
        accepting.end().await;
        if let Some(spans) = gateway.spans() {
            let lost = spans.finish().await;
            if lost > 0 {
                tracing::error!(lost, "spans were not sent in time");
            }
        }
        drop(gateway);
        reloader.end();
        let left = shutdown_timeout.saturating_sub(clock::now().since(began));
        let lost = access::finish(left.max(LAST_LINES)).await;
        if lost > 0 {
            tracing::error!(lost, "lines of the access log were not written in time");
        }
    };
    let mut ending = pin!(ending);
    tokio::select! {
        () = &mut ending => return,
        () = asked_again(signals, &stopping) => {}
    }
    in_haste.notify_one();
    tokio::select! {
        () = ending => {}
        _written_or_late = timeout(WRITING_IN_HASTE, written) => {}
    }
}

/// Completes at the second signal to stop. Until then a rotated log of `gateway` is followed.
async fn asked_again(signals: &mut Signals, gateway: &Weak<Gateway>) {
    loop {
        match signals.next().await {
            SignalRequest::Stop => break,
            SignalRequest::Reload | SignalRequest::ReopenLogs => {
                if let Some(gateway) = gateway.upgrade() {
                    logs::reopen(&gateway);
                }
            }
            SignalRequest::Ignored => logs::ignored_signal(),
        }
    }
    tracing::info!("second signal to stop: ending at once");
}

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::{Arbiter, ArbiterHandle};
use actix_web::dev::{Server, ServerHandle, fn_service};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::listeners::Listeners;
use super::reload::Reloader;
use super::signals::{Asked, Signals};
use crate::admin::{self, Health, Recorder};
use crate::clients::{Patience, Peer, Socket, serve as serve_connection};
use crate::config::{self, Listen, Settings, Watcher};
use crate::gateway::Gateway;
use crate::proxy::Worker;

/// How long connections get to take their last answer after the last waiter was sent away.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How often a stop looks whether anybody still waits.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Longer than any `shutdown_timeout`: how long a stop takes is decided here, by the settings then in force.
const LONGEST_STOP: Duration = Duration::from_secs(2 * 366 * 24 * 60 * 60);

/// Serves until the process is told to stop and all have been answered. Tells of each gateway that comes into force.
///
/// # Errors
///
/// Where an address cannot be listened on, or the folder of the file not be watched.
pub(super) async fn serve(
    file: PathBuf,
    text: String,
    settings: Settings,
    tell: watch::Sender<Option<Arc<Gateway>>>,
) -> io::Result<()> {
    if settings.server.tls.is_some() {
        // Whoever asks for TLS must not get an open port.
        let cannot = "server.tls: TLS is not supported by this version; remove it";
        return Err(io::Error::other(cannot));
    }
    let mut signals = Signals::listen()?;
    let recorder = Recorder::install()?;
    let mut watcher = Watcher::start(file.clone(), text).map_err(io::Error::other)?;
    let gateway = tell.subscribe();
    let (enrol, enrolled) = mpsc::channel(settings.server.workers.get());
    let health = Health::of(gateway.clone());

    if let Some(address) = settings.server.admin {
        let admin = admin::listen(address, health.clone(), recorder);
        actix_rt::spawn(admin.map_err(|error| in_use(&error, &format!("server.admin {address}")))?);
    }
    let (server, listeners) = listen(&settings.server, &gateway, &enrol)?;
    let handle = server.handle();
    let mut serving = actix_rt::spawn(server);
    let workers = gather(enrolled, settings.server.workers.get()).await?;
    for address in &settings.server.listen {
        tracing::info!(%address, "listening");
    }
    let reloader = Reloader::start(file, settings, workers, tell)?;
    health.set_accepting(true);

    loop {
        tokio::select! {
            asked = signals.next() => match asked {
                Asked::Reload => reloader.take(watcher.read()),
                Asked::Stop => break,
            },
            changed = watcher.changed() => reloader.take(changed),
            ended = &mut serving => return ended.map_err(io::Error::other)?,
        }
    }
    health.set_accepting(false);
    stop(&reloader.gateway(), &handle, listeners, &mut signals).await;
    Ok(())
}

/// Stops accepting, lets the queues drain at their pace for `shutdown_timeout`, and then sends away those who still
/// wait. Being asked again ends it at once.
async fn stop(
    gateway: &Gateway,
    server: &ServerHandle,
    listeners: Listeners,
    signals: &mut Signals,
) {
    let patience = gateway.settings().server.shutdown_timeout;
    tracing::info!(?patience, "stopping: no new connections; the queues drain");
    gateway.stop();
    // A worker that is told to stop ends with its own last connection, and the queues of the keys that live there end
    // with it, whoever waits in them from elsewhere. So none is told before the queues are empty.
    let answered = async || {
        while gateway.has_waiters() {
            sleep(LOOK_EVERY).await;
        }
        server.stop(true).await;
    };
    let ending = async {
        server.pause().await;
        listeners.close();
        if timeout(patience, answered()).await.is_err() {
            gateway.dismiss();
            let _last_answers = timeout(LAST_ANSWERS, answered()).await;
        }
    };
    tokio::select! {
        () = ending => {}
        () = asked_again(signals) => {}
    }
}

async fn asked_again(signals: &mut Signals) {
    while signals.next().await != Asked::Stop {}
    tracing::warn!("asked again to stop: ending at once");
}

/// The server on the clients' side. Each worker enrols as its first service is made.
fn listen(
    server: &config::Server,
    gateway: &watch::Receiver<Option<Arc<Gateway>>>,
    enrol: &mpsc::Sender<ArbiterHandle>,
) -> io::Result<(Server, Listeners)> {
    let mut listeners = Listeners::default();
    let workers = server.workers.get();
    let mut accepting = Server::build()
        .workers(workers)
        .max_concurrent_connections(server.max_connections.get().div_ceil(workers))
        .shutdown_timeout(LONGEST_STOP.as_secs())
        .disable_signals();
    for address in &server.listen {
        let (gateway, enrol) = (gateway.clone(), enrol.clone());
        let worker = move || worker_here(&gateway, &enrol);
        accepting = match address {
            Listen::Tcp(tcp) => listeners.open(tcp).and_then(|socket| {
                accepting.listen("tcp", socket, move || {
                    let worker = worker();
                    fn_service(move |socket| take_tcp(Rc::clone(&worker), socket))
                })
            }),
            Listen::Unix(path) => listeners.open_unix(path).and_then(|socket| {
                accepting.listen_uds("unix", socket, move || {
                    let worker = worker();
                    fn_service(move |socket| take(Rc::clone(&worker), socket, Peer::default()))
                })
            }),
        }
        .map_err(|error| in_use(&error, &format!("server.listen {address}")))?;
    }
    Ok((accepting.run(), listeners))
}

async fn take_tcp(worker: Rc<Worker>, socket: TcpStream) -> Result<(), Infallible> {
    // A client that is gone already is found to be so at the first read.
    let _gone = socket.set_nodelay(true);
    let peer = Peer {
        address: socket.peer_addr().ok(),
        local: socket.local_addr().ok(),
        secure: false,
    };
    take(worker, socket, peer).await
}

async fn take(worker: Rc<Worker>, socket: impl Socket, peer: Peer) -> Result<(), Infallible> {
    let gateway = worker.gateway().await;
    let patience = Patience::of(&gateway.settings().server);
    serve_connection(socket, peer, patience, gateway.stopping(), worker).await;
    Ok(())
}

/// Says which address it was that could not be had, and why most often.
fn in_use(error: &io::Error, address: &str) -> io::Error {
    let hint = if error.kind() == io::ErrorKind::AddrInUse {
        ": another program, or another gateway with buckets of its own, listens there"
    } else {
        ""
    };
    io::Error::new(error.kind(), format!("{address}: {error}{hint}"))
}

/// This thread's worker. There is a service for each listening address, and one worker for all of them.
fn worker_here(
    gateway: &watch::Receiver<Option<Arc<Gateway>>>,
    enrol: &mpsc::Sender<ArbiterHandle>,
) -> Rc<Worker> {
    thread_local! {
        static WORKER: RefCell<Option<Rc<Worker>>> = const { RefCell::new(None) };
    }
    WORKER.with_borrow_mut(|here| {
        let worker = here.get_or_insert_with(|| {
            // The channel has room for every worker; one that replaces a lost one serves without supervisors of its own.
            let _full = enrol.try_send(Arbiter::current());
            Worker::new(gateway.clone())
        });
        Rc::clone(worker)
    })
}

async fn gather(
    mut enrolled: mpsc::Receiver<ArbiterHandle>,
    workers: usize,
) -> io::Result<Vec<ArbiterHandle>> {
    let mut gathered = Vec::with_capacity(workers);
    while gathered.len() < workers {
        gathered.push(
            enrolled
                .recv()
                .await
                .ok_or_else(|| io::Error::other("a worker did not start"))?,
        );
    }
    Ok(gathered)
}

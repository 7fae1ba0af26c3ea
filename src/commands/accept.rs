use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::{Arbiter, ArbiterHandle};
use actix_web::dev::{Server, ServerHandle, fn_service};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::listeners::{Listeners, in_use};
use crate::config::{self, Listen, Tls};
use crate::gateway::Gateway;
use crate::http::downstream::{self, Certificates, Peer, Socket, Timeouts, TlsServer};
use crate::http::proxy::Worker;

/// Longer than any `shutdown_timeout`: how long a stop takes is decided here, by the settings then in force.
const LONGEST_STOP: Duration = Duration::from_secs(2 * 366 * 24 * 60 * 60);

/// The gateway in force, once there is one.
type InForce = watch::Receiver<Option<Arc<Gateway>>>;

/// Accepts clients and hands them to the workers, each of which is a thread.
pub(super) struct Accepting {
    pub(super) handle: ServerHandle,
    pub(super) serving: JoinHandle<io::Result<()>>,
    pub(super) listeners: Listeners,
    pub(super) workers: Vec<ArbiterHandle>,
}

impl Accepting {
    /// Listens at all addresses of `server`. Clients are served once `gateway` tells of one.
    pub(super) async fn start(server: &config::Server, gateway: InForce) -> io::Result<Self> {
        let tls_server = server.tls.as_ref().map(tls_server).transpose()?;
        let workers = server.workers.get();
        let (enrol, enrolled) = mpsc::channel(workers);
        let mut listeners = Listeners::inherit()?;
        let mut accepting = Server::build()
            .workers(workers)
            .max_concurrent_connections(server.max_connections.get().div_ceil(workers))
            .shutdown_timeout(LONGEST_STOP.as_secs())
            .disable_signals();
        for address in &server.listen {
            let (gateway, enrol, tls_server) = (gateway.clone(), enrol.clone(), tls_server.clone());
            let worker = move || worker_here(&gateway, &enrol);
            accepting = match address {
                Listen::Tcp(tcp) => listeners.open(tcp).and_then(|socket| {
                    accepting.listen("tcp", socket, move || {
                        let (worker, tls_server) = (worker(), tls_server.clone());
                        // Boxed, as the server has room for two of what it is given here.
                        fn_service(move |socket| {
                            let (worker, tls_server) = (Rc::clone(&worker), tls_server.clone());
                            Box::pin(take_tcp(worker, socket, tls_server))
                        })
                    })
                }),
                Listen::Unix(path) => listeners.open_unix(path).and_then(|socket| {
                    accepting.listen_uds("unix", socket, move || {
                        let worker = worker();
                        fn_service(move |socket| {
                            Box::pin(take(Rc::clone(&worker), socket, Peer::default()))
                        })
                    })
                }),
            }
            .map_err(|error| in_use(&error, &format!("server.listen {address}")))?;
        }
        listeners.all_asked_for()?;
        let server = accepting.run();
        Ok(Self {
            handle: server.handle(),
            serving: actix_rt::spawn(server),
            listeners,
            workers: gather(enrolled, workers).await?,
        })
    }
}

/// How clients are spoken to in secret; renewed certificates are followed from here on.
fn tls_server(tls: &Tls) -> io::Result<TlsServer> {
    let failed = |error: &dyn std::error::Error| io::Error::other(format!("server.tls: {error}"));
    let certificates = Arc::new(Certificates::load(tls).map_err(|error| failed(&error))?);
    actix_rt::spawn(Arc::clone(&certificates).follow());
    TlsServer::new(certificates).map_err(|error| failed(&error))
}

async fn take_tcp(
    worker: Rc<Worker>,
    socket: TcpStream,
    tls_server: Option<TlsServer>,
) -> Result<(), Infallible> {
    // A client that is gone already is found to be so at the first read.
    let _gone = socket.set_nodelay(true);
    let peer = Peer {
        address: socket.peer_addr().ok(),
        local: socket.local_addr().ok(),
        secure: false,
    };
    let Some(tls_server) = tls_server else {
        return take(worker, socket, peer).await;
    };
    let gateway = worker.gateway().await;
    let timeouts = Timeouts::of(&gateway.settings().server);
    // Boxed: what it takes to speak TLS and HTTP/2 is ten times what plain connections need.
    Box::pin(tls_server.serve(socket, peer, timeouts, worker.stop_signal(), worker)).await;
    Ok(())
}

/// A unix socket is plain also where others are encrypted: what goes through it does not leave the machine.
async fn take(worker: Rc<Worker>, socket: impl Socket, peer: Peer) -> Result<(), Infallible> {
    let gateway = worker.gateway().await;
    let timeouts = Timeouts::of(&gateway.settings().server);
    Box::pin(downstream::serve(
        socket,
        peer,
        timeouts,
        worker.stop_signal(),
        worker,
    ))
    .await;
    Ok(())
}

/// This thread's worker. There is a service for each listening address, and one worker for all of them.
fn worker_here(gateway: &InForce, enrol: &mpsc::Sender<ArbiterHandle>) -> Rc<Worker> {
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

//! The admin port, for operators and programs: its paths, its access rules, and the live page.
//!
//! [`status`](crate::status) makes the content.
//!
//! | file | content |
//! |---|---|
//! | `api` | the paths; JSON of the file, routes, maintenance and experiments |
//! | `overrides` | sets and ends overrides of zones, keys, gates and rooms |
//! | `body` | fields of request bodies |
//! | `live` | a sample each second, as server-sent events |
//! | `page` | the live page, drawn from `api` and `live` |
//! | `expiry` | ends expired overrides |
//! | `find` | experiments that find the limits of origins |
//! | `guard` | access rules, and the security headers for browsers |
//! | `author` | authors of changes, and the log lines about changes |
//! | `own_names` | the names of this host that requests may use |
//! | `reply` | responses in JSON |

mod api;
pub(crate) mod author;
pub(crate) mod body;
mod expiry;
pub(crate) mod find;
mod guard;
mod live;
pub(crate) mod overrides;
mod own_names;
mod page;
pub(crate) mod reply;

use std::future::ready;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::guard::{Any, Head, Method as IsMethod};
use actix_web::http::Method;
use actix_web::http::header::ContentType;
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data};
use actix_web::{App, HttpResponse, HttpServer, Resource, Route};
use config::{AdminTokens, FileState, History};
use rustix::net::sockopt;
use tokio::sync::{mpsc, oneshot, watch};

use self::own_names::OwnNames;
use self::reply::Refusal;
use crate::http::gateway::{Gateway, Maintenances};
use crate::observe::connections::ClientConnections;
use crate::status::sampler::Sampler;
use crate::status::{RecentStatus, Recorder, exposition};
use crate::time::clock;

pub use find::Experiments;

/// State that the handlers of the admin port share.
pub struct Admin {
    /// Whether the gateway is ready for clients: from the end of its start to the request to stop.
    pub accepting: Arc<AtomicBool>,
    /// All metrics of the process.
    pub recorder: Recorder,
    /// The gateway in force.
    pub gateway: watch::Receiver<Option<Arc<Gateway>>>,
    /// Name of the file, without its folder.
    pub file: String,
    /// State of the file.
    pub file_state: watch::Receiver<FileState>,
    /// Last changes of the settings in force.
    pub history: History,
    /// Sends orders to the thread that has the gateway.
    pub orders: mpsc::Sender<Order>,
    /// Status of the last minutes.
    pub recent: RecentStatus,
    /// Client connections.
    pub connections: ClientConnections,
    /// Tokens that requests must have.
    pub tokens: AdminTokens,
    /// Whether `/metrics` needs a token, by the last settings in force.
    ///
    /// A copy, because there are no settings in force during a start and a stop.
    pub metrics_need_token: AtomicBool,
    /// Experiments at the gates of origins.
    pub experiments: Experiments,
}

/// A change of the maintenance.
pub type MaintenanceChange = Box<dyn FnOnce(&mut Maintenances) + Send>;

/// Order of a request to the thread that has the gateway.
pub struct Order {
    /// Kind of the order.
    pub kind: OrderKind,
    /// Notified when the order is carried out.
    pub done: oneshot::Sender<()>,
}

/// Kind of an order.
pub enum OrderKind {
    /// Reload the file.
    Reload,
    /// Begin or end maintenance.
    Maintain(MaintenanceChange),
}

impl Admin {
    /// Returns the gateway in force; `None` before the start and after the stop.
    fn gateway(&self) -> Option<Arc<Gateway>> {
        self.gateway.borrow().as_ref().map(Arc::clone)
    }

    /// Returns the gateway in force, if it serves.
    pub(crate) fn serving(&self) -> Result<Arc<Gateway>, Refusal> {
        self.gateway().ok_or_else(reply::not_now)
    }

    /// Sends an order to the thread that has the gateway, and waits until it is carried out.
    async fn order(&self, kind: OrderKind) -> Result<(), Refusal> {
        let stopping = || reply::unavailable("the gateway is stopping: it changes no settings");
        let (done, is_done) = oneshot::channel();
        let sent = self.orders.send(Order { kind, done }).await;
        sent.map_err(|_| stopping())?;
        is_done.await.map_err(|_| stopping())
    }
}

/// Text of `/readyz` while no origin has a server in use.
const NO_ORIGIN: &str = "no origin has a server in use";

/// Serves the admin port at `address`, and takes a sample each second from now on.
///
/// # Errors
///
/// The address cannot be listened on.
pub fn listen(address: SocketAddr, admin: Admin) -> io::Result<Server> {
    let sampler = Sampler::new(
        admin.gateway.clone(),
        admin.file_state.clone(),
        admin.recent.clone(),
        admin.connections.clone(),
    );
    let admin = Data::new(admin);
    let expiry = expiry::run(Data::clone(&admin));
    let names = Data::new(OwnNames::of_this_host());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(Data::clone(&admin))
            .app_data(Data::clone(&names))
            .wrap(from_fn(guard::protect))
            .wrap(guard::headers())
            .configure(api::routes)
            .configure(page::routes)
            .default_service(web::to(reply::no_such_path))
    });
    let server = server
        .workers(1)
        .disable_signals()
        .shutdown_timeout(1)
        .listen(bind(address)?)?
        .run();
    actix_rt::spawn(expiry);
    actix_rt::spawn(sampler.run());
    Ok(server)
}

/// Maximum number of bytes that the kernel keeps for a client that does not read.
const MAX_UNREAD_BYTES: usize = 64 * 1024;
/// Time after which the kernel closes the connection of a client that does not read.
const MAX_UNREAD_TIME: Duration = Duration::from_secs(30);

/// Binds the port. Accepted connections inherit the options of the socket.
///
/// A client that receives samples but does not read them, for example on a laptop that sleeps, is
/// disconnected after [`MAX_UNREAD_TIME`].
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpListener::bind(address)?;
    sockopt::set_socket_send_buffer_size(&socket, MAX_UNREAD_BYTES)?;
    let timeout = u32::try_from(MAX_UNREAD_TIME.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(&socket, timeout)?;
    Ok(socket)
}

/// Creates the resource at `path` with these methods. A route for GET answers HEAD, too.
///
/// The response to another method lists these methods.
fn resource<const N: usize>(path: &str, routes: [(Method, Route); N]) -> Resource {
    let (mut resource, mut allowed) = (web::resource(path), Vec::new());
    for (method, route) in routes {
        let is_get = method == Method::GET;
        allowed.push(if is_get { "GET, HEAD" } else { method.as_str() }.to_owned());
        let guard = Any(IsMethod(method));
        resource = resource.route(route.guard(if is_get { guard.or(Head()) } else { guard }));
    }
    let allowed = allowed.join(", ");
    resource.default_service(web::to(move || ready(reply::not_allowed(&allowed))))
}

/// `GET /metrics`: all metrics.
async fn metrics(admin: Data<Admin>) -> HttpResponse {
    let format = ("content-type", "text/plain; version=0.0.4; charset=utf-8");
    let gateway = admin.gateway();
    let text = exposition::render(gateway.as_deref(), &admin.recorder, &admin.connections).await;
    HttpResponse::Ok().insert_header(format).body(text)
}

/// `GET /healthz`: 200 as long as the process responds.
async fn healthz() -> &'static str {
    "ok\n"
}

/// Returns why the gateway cannot serve any client now; `None` if it can.
///
/// Without a server in use it can still serve if requests or visitors may wait, or if it has stale
/// responses.
fn unready_reason(admin: &Admin) -> Option<String> {
    let gateway = admin.gateway();
    let Some(gateway) = gateway.filter(|_| admin.accepting.load(Ordering::Relaxed)) else {
        return Some("it is starting or stopping".to_owned());
    };
    if !gateway.has_origin() && !gateway.bridges_outages() {
        return Some(NO_ORIGIN.to_owned());
    }
    let mut zones = gateway.zones_in_use();
    zones.find(|zone| zone.is_paused()).map(|zone| {
        let name = &zone.settings().name;
        format!("zone {name} has panicked several times and pauses; see the log")
    })
}

/// `GET /readyz`: 200 if the gateway can serve clients, else 503 with the reason.
async fn readyz(admin: Data<Admin>) -> HttpResponse {
    if let Some(reason) = unready_reason(&admin) {
        return HttpResponse::ServiceUnavailable()
            .insert_header(ContentType::plaintext())
            .body(format!("not ready\n{reason}\n"));
    }
    // A gateway without its store is still ready: its zones and gates follow `on_store_failure`,
    // and no other gateway could do better.
    let gateway = admin.gateway();
    let store = gateway.as_ref().and_then(|gateway| gateway.store_health());
    let outage = store.and_then(|store| Some((store.outage()?, store.during_outage())));
    let store = outage.map_or(String::new(), |((since, reason), meanwhile)| {
        let seconds = clock::now().since(since).as_secs();
        format!("the store is out for {seconds} s ({reason}); {meanwhile}\n")
    });
    // Whether no route can forward, because no origin has an available server.
    let is_out = gateway.is_some_and(|gateway| !gateway.has_origin());
    let origins = if is_out {
        format!("{NO_ORIGIN}; clients wait or get stale responses\n")
    } else {
        String::new()
    };
    HttpResponse::Ok()
        .insert_header(ContentType::plaintext())
        .body(format!("ready\n{store}{origins}"))
}

use std::io;
use std::net::ToSocketAddrs;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::http::header::USER_AGENT;
use actix_web::web::{self, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use config::{OriginServer, Scheme, ServerUrl};
use gateway::time::clock;

use super::tally::Tally;

/// The `User-Agent` that marks the crowd's requests.
///
/// The origin uses it to tell them from those of other clients that call the gateway meanwhile.
pub(super) const CROWD: &str = "drip-demo";

/// Serves the sample origin `name`, on its own thread, at the addresses that the file names.
pub(super) fn listen(name: &str, servers: &[OriginServer], tally: Tally) -> io::Result<Server> {
    let tally = Data::new(tally);
    let mut http = HttpServer::new(move || {
        App::new()
            .app_data(Data::clone(&tally))
            .default_service(web::to(answer))
    })
    .workers(1)
    .keep_alive(Duration::from_secs(75))
    .tcp_nodelay(true)
    .disable_signals();
    for OriginServer { url: server, .. } in servers {
        let failed = |error: io::Error| explain(&error, server, name);
        let ServerUrl::Tcp {
            scheme: Scheme::Http,
            host,
            port,
            ..
        } = server
        else {
            let other = "the demo's sample origin speaks only plain HTTP over TCP; name a server such as http://127.0.0.1:9000";
            return Err(failed(io::Error::other(other)));
        };
        let addresses = (&*host.bare(), port.get())
            .to_socket_addrs()
            .map_err(failed)?;
        let addresses = addresses.collect::<Vec<_>>();
        if !addresses.iter().all(|address| address.ip().is_loopback()) {
            let elsewhere = "not on the loopback interface, and the demo uses no other; name a server such as http://127.0.0.1:9000";
            return Err(failed(io::Error::other(elsewhere)));
        }
        http = http.bind(addresses.as_slice()).map_err(failed)?;
    }
    Ok(http.run())
}

async fn answer(request: HttpRequest, tally: Data<Tally>) -> HttpResponse {
    let now = clock::now();
    let agent = request.headers().get(USER_AGENT);
    tally.with(|counts| counts.left(now, agent.is_some_and(|agent| agent == CROWD)));
    HttpResponse::Ok()
        .content_type("text/plain; charset=utf-8")
        .body("Hello from the sample origin\n")
}

fn explain(error: &io::Error, server: &ServerUrl, origin: &str) -> io::Error {
    let hint = if error.kind() == io::ErrorKind::AddrInUse {
        ": another program listens where the demo's sample origin would; stop it, or name a free port there"
    } else {
        ""
    };
    io::Error::new(
        error.kind(),
        format!("origins.{origin} {server}: {error}{hint}"),
    )
}

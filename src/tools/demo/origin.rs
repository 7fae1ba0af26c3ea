//! The sample origin of the demo: a server that answers every request, and counts them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::http::header::USER_AGENT;
use actix_web::web::{self, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use gateway::time::clock;

use super::tally::Tally;

/// The `User-Agent` that marks the demo's own requests.
///
/// The origin uses it to ignore requests of other clients.
pub(super) const DEMO_AGENT: &str = "drip-demo";

/// Serves the sample origin on its own thread.
pub(super) fn listen(address: SocketAddr, tally: Tally) -> io::Result<Server> {
    let tally = Data::new(tally);
    let http = HttpServer::new(move || {
        App::new()
            .app_data(Data::clone(&tally))
            .default_service(web::to(answer))
    })
    .workers(1)
    .keep_alive(Duration::from_secs(75))
    .tcp_nodelay(true)
    .disable_signals();
    Ok(http.bind(address)?.run())
}

/// Counts a request and answers it.
async fn answer(request: HttpRequest, tally: Data<Tally>) -> HttpResponse {
    let now = clock::now();
    let agent = request.headers().get(USER_AGENT);
    tally.with(|counts| counts.record_reached(now, agent.is_some_and(|agent| agent == DEMO_AGENT)));
    HttpResponse::Ok()
        .content_type("text/plain; charset=utf-8")
        .body("Hello from the sample origin\n")
}

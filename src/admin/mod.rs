//! The operators' port.

mod health;
mod recorder;

use std::io;
use std::net::SocketAddr;

use actix_web::dev::Server;
use actix_web::http::header::ContentType;
use actix_web::web::{self, Data};
use actix_web::{App, HttpResponse, HttpServer};

pub use health::Health;
pub use recorder::Recorder;

/// Serves the operators' port at `address`.
///
/// # Errors
///
/// Where the address cannot be listened on.
pub fn listen(address: SocketAddr, health: Health, recorder: Recorder) -> io::Result<Server> {
    let (health, recorder) = (Data::new(health), Data::new(recorder));
    let server = HttpServer::new(move || {
        App::new()
            .app_data(Data::clone(&health))
            .app_data(Data::clone(&recorder))
            .route("/metrics", web::get().to(metrics))
            .route("/metrics", web::head().to(metrics))
            .route("/healthz", web::get().to(healthz))
            .route("/healthz", web::head().to(healthz))
            .route("/readyz", web::get().to(readyz))
            .route("/readyz", web::head().to(readyz))
    });
    Ok(server
        .workers(1)
        .disable_signals()
        .shutdown_timeout(1)
        .bind(address)?
        .run())
}

async fn metrics(recorder: Data<Recorder>) -> HttpResponse {
    let format = ("content-type", "text/plain; version=0.0.4; charset=utf-8");
    HttpResponse::Ok()
        .insert_header(format)
        .body(recorder.render())
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(health: Data<Health>) -> HttpResponse {
    if health.is_ready() {
        HttpResponse::Ok()
            .insert_header(ContentType::plaintext())
            .body("ready\n")
    } else {
        HttpResponse::ServiceUnavailable()
            .insert_header(ContentType::plaintext())
            .body("not ready\n")
    }
}

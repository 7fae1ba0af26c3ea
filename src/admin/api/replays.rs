//! Replays of what has happened, with other numbers.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, RETRY_AFTER};
use actix_web::web;
use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::admin::reply::{self, Answer, Refusal};

/// One replay at a time: it keeps a processor busy.
static ONE: Semaphore = Semaphore::const_new(1);

/// The right to replay; `None` while another replay runs.
pub(super) fn begin() -> Option<SemaphorePermit<'static>> {
    ONE.try_acquire().ok()
}

/// What is said while another replay runs.
pub(super) fn busy() -> HttpResponse {
    later("another replay is running; try again when it has ended")
}

/// Replays on a thread of its own. `none`: what is said if that returns nothing.
pub(super) async fn answer<V: Serialize + Send + 'static>(
    permit: SemaphorePermit<'static>,
    replay: impl FnOnce() -> Option<V> + Send + 'static,
    none: &str,
) -> Answer {
    let replayed = web::block(move || {
        let _one = permit;
        replay()
    });
    match replayed.await {
        Ok(Some(view)) => Ok(reply::ok(&view)),
        Ok(None) => Ok(later(none)),
        Err(error) => Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the replay failed: {error}; this is an error of drip"),
        )),
    }
}

fn later(message: &str) -> HttpResponse {
    let mut response = reply::error(StatusCode::SERVICE_UNAVAILABLE, message);
    let value = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, value);
    response
}

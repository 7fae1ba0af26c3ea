//! `/api/live`: a sample (status of one second) each second, as server-sent events.
//!
//! A new client first gets the samples of the last ten minutes.

use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;

use super::Admin;
use super::reply::{self, Answer};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Query of `/api/live`.
#[derive(Deserialize)]
struct Since {
    /// Number of the last sample that the client has.
    since: Option<u64>,
}

/// `GET /api/live`: starts the stream of samples.
pub(super) async fn live(request: HttpRequest, admin: Data<Admin>) -> Answer {
    let query: Since = reply::query(&request, "since must be a sample number")?;
    // A browser that connects again names the last event that it received.
    let last = request.headers().get(LAST_EVENT_ID);
    let last = last.and_then(|id| id.to_str().ok()?.trim().parse().ok());
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_TYPE, "text/event-stream"))
        .insert_header((CACHE_CONTROL, "no-store"));
    if request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    Ok(response.body(admin.recent.live.listen(last.or(query.since))))
}

/// `/api/now`: the last sample of `/api/live`; `null` in the first second.
pub(super) async fn now(admin: Data<Admin>) -> Answer {
    // Only a gateway that serves has a present state.
    admin.serving()?;
    let sample = admin.recent.live.newest();
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/json"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(sample.unwrap_or(Bytes::from_static(b"null"))))
}

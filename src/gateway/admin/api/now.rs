use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::web::{Bytes, Data};

use crate::admin::Admin;
use crate::admin::reply::Answer;

/// The last sample of `/api/live`; `null` in the first second.
pub(super) async fn show(admin: Data<Admin>) -> Answer {
    admin.serving()?;
    let sample = admin.recent.live.newest();
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/json"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(sample.unwrap_or(Bytes::from_static(b"null"))))
}

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::web::Data;

use crate::admin::fleet::FleetLink;
use crate::admin::reply::{Answer, Refusal};

/// One picture of this gateway and its peers.
pub(super) async fn show(fleet: Data<FleetLink>) -> Answer {
    let json = fleet.picture().await.ok_or_else(|| {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the gateway is starting or stopping, or too many ask for the picture; try again",
        )
    })?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/json"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(json))
}

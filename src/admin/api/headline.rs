use actix_web::HttpResponse;
use actix_web::web::Data;

use crate::admin::reply;
use crate::status::headline::Headlines;

/// What matters most now, and what did before.
pub(super) async fn now(headlines: Data<Headlines>) -> HttpResponse {
    reply::ok(&headlines.view())
}

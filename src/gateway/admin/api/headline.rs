use actix_web::web::Data;

use crate::admin::Admin;
use crate::admin::reply::{self, Answer};

/// What matters most now, and what did before.
pub(super) async fn now(admin: Data<Admin>) -> Answer {
    Ok(reply::ok(&admin.recent.headlines.view()))
}

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

use actix_web::web::Data;

use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::status::views::{Now, Plain};
use crate::time::clock;

/// Tells this process from all others.
static ID: LazyLock<String> = LazyLock::new(|| {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
});

/// The last sample, and the clock.
pub(super) async fn show(admin: Data<Admin>) -> Answer {
    admin.serving()?;
    Ok(reply::ok(&view(&admin)))
}

#[expect(clippy::cast_precision_loss, reason = "a Unix time in microseconds")]
pub(in crate::admin) fn view(admin: &Admin) -> Now {
    let sample = admin.recent.live.newest();
    Now {
        id: Plain::new(&ID),
        time: (clock::to_wall(clock::now()).as_nanos() / 1000) as f64 / 1e6,
        sample: sample.and_then(|json| serde_json::from_slice(&json).ok()),
    }
}

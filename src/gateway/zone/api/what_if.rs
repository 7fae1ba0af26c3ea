//! `/api/zones/{zone}/what-if`: replays the last arrivals with other numbers.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, RETRY_AFTER};
use actix_web::web::{self, Bytes, Data, Path};
use actix_web::{HttpResponse, ResponseError};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{find, worker_timeout};
use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::status::what_if::{OtherNumbers, in_force, replay};
use crate::time::clock;
use crate::zone::report::sample::WhatIf;

/// Time limit for the workers to return their arrivals.
const COLLECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit of a replay. The maximum number of kept arrivals takes a fraction of a second.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(5);

/// Permit for one replay at a time, because a replay keeps a processor busy.
static REPLAY_PERMIT: Semaphore = Semaphore::const_new(1);

/// `POST`: replays the last arrivals with other numbers.
pub(crate) async fn run(admin: Data<Admin>, name: Path<String>, body: Bytes) -> Answer {
    let gateway = admin.serving()?;
    let (index, zone) = find(&gateway, &name)?;
    let requested = OtherNumbers::read(&body, zone.settings()).map_err(reply::bad_request)?;
    let Ok(permit) = REPLAY_PERMIT.try_acquire() else {
        return Ok(refuse_for_now(
            "another replay is running; try again when it has ended",
        ));
    };
    let arrivals = timeout(COLLECT_TIMEOUT, zone.arrivals()).await;
    let arrivals = arrivals.map_err(|_| worker_timeout())?;
    let replayed = web::block(move || {
        // The permit is free again when the replay has ended, even if the client has disconnected.
        let _running = permit;
        let deadline = clock::now() + REPLAY_TIMEOUT;
        let settings = in_force(&gateway, index);
        let replayed = replay(arrivals.in_order(), &settings, index, &requested, deadline)?;
        let (since, until) = (arrivals.since(), arrivals.until());
        Some(WhatIf {
            since: Duration::from_nanos(since.as_nanos()).as_secs_f64(),
            span_seconds: until.since(since).as_secs_f64(),
            ..replayed
        })
    });
    match replayed.await {
        Ok(Some(replayed)) => Ok(reply::ok(&replayed)),
        Ok(None) => Ok(refuse_for_now(
            "the replay did not end in time; try again when the machine is less busy",
        )),
        Err(error) => Err(reply::refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the replay failed: {error}; this is a bug of drip"),
        )),
    }
}

/// Creates the refusal of a request that may succeed in a second.
fn refuse_for_now(message: &str) -> HttpResponse {
    let mut response = reply::unavailable(message).error_response();
    let value = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, value);
    response
}

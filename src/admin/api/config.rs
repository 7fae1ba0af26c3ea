use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::admin::{Admin, Read, reply};
use crate::config::{self, Broken, FileState, Problem};
use crate::http::gateway::Gateway;
use crate::limit::Moment;

#[derive(Serialize)]
struct ConfigView<'a> {
    file: &'a str,
    settings: String,
    loaded_at: String,
    version: &'static str,
    error: Option<ErrorView>,
}

#[derive(Serialize)]
struct Refused {
    error: ErrorView,
}

#[derive(Serialize)]
struct ErrorView {
    since: String,
    problems: Vec<ProblemView>,
}

#[derive(Serialize)]
struct ProblemView {
    line: usize,
    column: usize,
    message: String,
}

pub(super) async fn show(admin: Data<Admin>) -> HttpResponse {
    match admin.gateway() {
        Some(gateway) => reply::ok(&view(&admin, &gateway)),
        None => reply::not_now(),
    }
}

/// Reads the file now.
pub(super) async fn reload(admin: Data<Admin>) -> HttpResponse {
    let (done, read) = oneshot::channel();
    if admin.reload.send(Read { done }).await.is_err() || read.await.is_err() {
        return reply::error(
            StatusCode::SERVICE_UNAVAILABLE,
            "the gateway is stopping and no longer reads its file",
        );
    }
    let broken = admin.file_state.borrow().broken.clone();
    match (broken, admin.gateway()) {
        (Some(broken), _) => {
            let error = ErrorView::from(broken);
            reply::json(StatusCode::UNPROCESSABLE_ENTITY, &Refused { error })
        }
        (None, Some(gateway)) => reply::ok(&view(&admin, &gateway)),
        (None, None) => reply::not_now(),
    }
}

fn view<'a>(admin: &'a Admin, gateway: &Gateway) -> ConfigView<'a> {
    let FileState {
        loaded_at, broken, ..
    } = admin.file_state.borrow().clone();
    ConfigView {
        file: &admin.file,
        settings: config::show(&gateway.settings().without_secrets()),
        loaded_at: timestamp(loaded_at),
        version: env!("CARGO_PKG_VERSION"),
        error: broken.map(ErrorView::from),
    }
}

impl From<Broken> for ErrorView {
    fn from(broken: Broken) -> Self {
        let view = |problem: Problem| ProblemView {
            line: problem.line,
            column: problem.column,
            message: problem.message,
        };
        Self {
            since: timestamp(broken.since),
            problems: broken.problems.into_iter().map(view).collect(),
        }
    }
}

/// The time in UTC, with milliseconds.
fn timestamp(moment: Moment) -> String {
    let millis = i64::try_from(moment.as_nanos() / 1_000_000).unwrap_or(i64::MAX);
    let timestamp = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    timestamp.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

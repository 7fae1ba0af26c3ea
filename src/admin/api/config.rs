use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::admin::{Admin, Read, reply};
use crate::config::{self, Broken, Change, FileState, Problem};
use crate::http::gateway::Gateway;
use crate::status::timestamp::timestamp;
use crate::status::views::{self, Plain};

#[derive(Serialize)]
struct Refused {
    error: views::Broken,
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
            let error = broken_view(broken);
            reply::json(StatusCode::UNPROCESSABLE_ENTITY, &Refused { error })
        }
        (None, Some(gateway)) => reply::ok(&view(&admin, &gateway)),
        (None, None) => reply::not_now(),
    }
}

fn view(admin: &Admin, gateway: &Gateway) -> views::Config {
    let FileState {
        loaded_at, broken, ..
    } = admin.file_state.borrow().clone();
    views::Config {
        file: Plain::new(&admin.file),
        settings: config::show(&gateway.settings().without_secrets()),
        loaded_at: timestamp(loaded_at),
        version: env!("CARGO_PKG_VERSION").into(),
        error: broken.map(broken_view),
        gateway: Plain::new(&gateway.settings().server.name),
        changes: admin.history.latest().iter().map(change_view).collect(),
    }
}

fn change_view(change: &Change) -> views::Change {
    views::Change {
        at: timestamp(change.at),
        by: change.by.label().into(),
        what: change.what.iter().map(|text| Plain::new(text)).collect(),
    }
}

fn broken_view(broken: Broken) -> views::Broken {
    let view = |problem: Problem| views::Problem {
        file: problem
            .file
            .map(|file| Plain::new(&file.display().to_string())),
        line: Some(problem.line as u64),
        column: Some(problem.column as u64),
        message: Plain::new(&problem.message),
    };
    views::Broken {
        since: timestamp(broken.since),
        problems: broken.problems.into_iter().map(view).collect(),
    }
}

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use config::{self, Broken, Change, FileState};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::admin::author::{Author, Changed};
use crate::admin::reply::{self, Answer, Refusal};
use crate::admin::{Admin, Order};
use crate::http::gateway::Gateway;
use crate::status::timestamp::timestamp;
use crate::status::views::{self, Plain};

#[derive(Serialize)]
struct NotInForce {
    error: views::Broken,
}

pub(super) async fn show(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    Ok(reply::ok(&view(&admin, &gateway)))
}

/// Reads the file now.
pub(super) async fn reload(request: HttpRequest, admin: Data<Admin>) -> Answer {
    // Lines of the reload itself say what becomes of it.
    Author::of(&request).log(&Changed {
        event: "reload requested",
        what: &admin.file,
        from: None,
        to: "as it is saved",
        until: None,
    });
    let (done, read) = oneshot::channel();
    if admin.orders.send(Order::Read { done }).await.is_err() || read.await.is_err() {
        return Err(Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the gateway is stopping and no longer reads its file",
        ));
    }
    let broken = admin.file_state.borrow().broken.clone();
    let Some(broken) = broken else {
        return show(admin).await;
    };
    let error = broken_view(broken);
    let (status, body) = (StatusCode::UNPROCESSABLE_ENTITY, NotInForce { error });
    Ok(reply::json(status, &body))
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
    views::Broken {
        since: timestamp(broken.since),
        problems: broken.problems.into_iter().map(Into::into).collect(),
    }
}

//! `/api/config`: the state of the configuration file, its history, and reloads.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use config::{self, BrokenFile, Change};
use serde_json::{Value, json};

use crate::admin::author::Author;
use crate::admin::reply::{self, Answer};
use crate::admin::{Admin, OrderKind};
use crate::http::gateway::Gateway;
use crate::status::plain::Plain;
use crate::status::sample::Problem;
use crate::status::timestamp::timestamp;

/// `GET /api/config`: the file, its settings and its last changes.
pub(super) async fn show(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    Ok(reply::ok(&config_json(&admin, &gateway)))
}

/// `POST /api/reload`: reloads the file.
pub(super) async fn reload(request: HttpRequest, admin: Data<Admin>) -> Answer {
    // The reload itself logs its result.
    let author = Author::of(&request);
    author.log(
        "reload requested",
        &admin.file,
        (None, "as it is saved"),
        None,
    );
    admin.order(OrderKind::Reload).await?;
    let broken = admin.file_state.borrow().broken.clone();
    let Some(broken) = broken else {
        return show(admin).await;
    };
    let body = json!({ "error": broken_json(broken) });
    Ok(reply::json(StatusCode::UNPROCESSABLE_ENTITY, &body))
}

/// Builds the JSON of the file and its settings.
fn config_json(admin: &Admin, gateway: &Gateway) -> Value {
    let state = admin.file_state.borrow().clone();
    json!({
        "file": Plain::new(&admin.file),
        "settings": config::show(&gateway.settings().without_secrets()),
        "loaded_at": timestamp(state.loaded_at),
        "version": env!("CARGO_PKG_VERSION"),
        "error": state.broken.map(broken_json),
        "gateway": Plain::new(&gateway.settings().server.name),
        "changes": admin.history.latest().iter().map(change_json).collect::<Vec<_>>(),
    })
}

/// Builds the JSON of a change.
fn change_json(change: &Change) -> Value {
    let what: Vec<_> = change.what.iter().map(|text| Plain::new(text)).collect();
    json!({ "at": timestamp(change.at), "by": change.by.label(), "what": what })
}

/// Builds the JSON of the errors of a file.
fn broken_json(broken: BrokenFile) -> Value {
    let problems: Vec<Problem> = broken.problems.into_iter().map(Into::into).collect();
    json!({ "since": timestamp(broken.since), "problems": problems })
}

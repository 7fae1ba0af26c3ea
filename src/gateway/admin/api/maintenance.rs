//! Maintenance of a route, or of all routes, until it expires.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::body::{parse, span};
use crate::admin::author::{Author, Changed};
use crate::admin::reply::{self, Answer, Refusal};
use crate::admin::{Admin, Order};
use crate::http::gateway::{Gateway, Maintenance, MaintenanceTarget, Maintenances};
use crate::status::plain::Plain;
use crate::status::timestamp::timestamp;
use crate::time::clock;

/// Log text for a route without maintenance.
const FORWARDED: &str = "forwarded";

/// Body of a PUT.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct MaintenanceBody {
    r#for: Option<String>,
}

impl Admin {
    /// Changes the maintenance. Returns the result of `change` once it is in force.
    pub(in crate::admin) async fn maintain<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Maintenances) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let stopping = || {
            let message = "the gateway is stopping and changes nothing any more";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
        };
        let (result_sender, result_receiver) = oneshot::channel();
        let change = Box::new(move |all: &mut Maintenances| {
            // The requester may have disconnected. Then nothing needs the result.
            let _ignored = result_sender.send(change(all)).is_err();
        });
        let (done, is_done) = oneshot::channel();
        let sent = self.orders.send(Order::Maintain { change, done }).await;
        sent.map_err(|_| stopping())?;
        is_done.await.map_err(|_| stopping())?;
        result_receiver.await.map_err(|_| stopping())
    }
}

/// `PUT`: begins maintenance.
pub(super) async fn set(request: HttpRequest, admin: Data<Admin>, body: Bytes) -> Answer {
    let author = Author::of(&request);
    let target = target(&request, &*admin.serving()?)?;
    let body: MaintenanceBody = parse(&body, r#"{"for": "10m"}"#)?;
    let since = clock::now();
    let requested = Maintenance {
        since,
        until: since + span(body.r#for)?,
        by: author.shown().to_owned(),
    };
    let (of, new) = (target.clone(), requested.clone());
    let before = admin.maintain(move |all| all.set(of, new)).await?;
    let subject = subject(&target);
    let from = in_words(before.as_ref());
    let change = Changed::new("maintenance set", &subject, Some(&from), "503");
    let change = change.until(Some(requested.until));
    let (until, by) = (timestamp(requested.until), &requested.by);
    let text = format!("maintenance until {until}, by {by}");
    author.note(&admin.history, &change, &text);
    Ok(reply::ok(&view(&requested)))
}

/// `DELETE`: ends maintenance.
pub(super) async fn end(request: HttpRequest, admin: Data<Admin>) -> Answer {
    let author = Author::of(&request);
    let path = request.uri().path();
    let target = named(path);
    let of = target.clone();
    let ended = admin.maintain(move |all| all.end(&of)).await?;
    let ended = ended.ok_or_else(|| {
        let message = "this is not in maintenance; /api/routes says what is";
        Refusal::new(StatusCode::NOT_FOUND, message)
    })?;
    let (subject, from) = (subject(&target), in_words(Some(&ended)));
    let change = Changed::new("maintenance undone", &subject, Some(&from), FORWARDED);
    author.note(&admin.history, &change, change.event);
    Ok(reply::ok(&view(&ended)))
}

/// Parses the target of a path. The route's name is percent-encoded there.
fn named(path: &str) -> MaintenanceTarget {
    let route = path.strip_prefix("/api/routes/");
    match route.and_then(|route| route.strip_suffix("/maintenance")) {
        None => MaintenanceTarget::AllRoutes,
        Some(name) => {
            let name = percent_decode_str(name).decode_utf8_lossy();
            MaintenanceTarget::Route(name.into_owned())
        }
    }
}

/// Parses the target of a path, and checks that it can be in maintenance.
fn target(request: &HttpRequest, gateway: &Gateway) -> Result<MaintenanceTarget, Refusal> {
    let target = named(request.uri().path());
    let MaintenanceTarget::Route(name) = &target else {
        return Ok(target);
    };
    let routes = gateway.settings().routes.iter();
    let mut named = routes.filter(|route| route.name() == *name).peekable();
    if named.peek().is_none() {
        let message =
            "there is no such route; write its name as /api/routes has it, percent-encoded";
        return Err(Refusal::new(StatusCode::NOT_FOUND, message));
    }
    if named.all(|route| route.origin().is_none()) {
        let message = "the file has refuse for this route already; change it there";
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    }
    Ok(target)
}

/// Name of a target in the log and the history of changes.
pub(in crate::admin) fn subject(target: &MaintenanceTarget) -> String {
    match target {
        MaintenanceTarget::AllRoutes => "all routes".to_owned(),
        MaintenanceTarget::Route(name) => format!("routes[{name}]"),
    }
}

/// Describes a previous maintenance for the log.
fn in_words(before: Option<&Maintenance>) -> String {
    before.map_or_else(
        || FORWARDED.to_owned(),
        |it| format!("503 until {}", timestamp(it.until)),
    )
}

/// JSON of a maintenance.
pub(super) fn view(it: &Maintenance) -> Value {
    let (since, until) = (timestamp(it.since), timestamp(it.until));
    json!({ "since": since, "until": until, "by": Plain::new(&it.by) })
}

//! Maintenance of a route, or of all routes: requests get 503 until the maintenance ends or
//! expires.

use actix_web::HttpRequest;
use actix_web::web::{Bytes, Data};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use tokio::sync::oneshot;

use crate::admin::author::{Author, record};
use crate::admin::body::{parse, span};
use crate::admin::reply::{self, Answer, Refusal};
use crate::admin::{Admin, OrderKind};
use crate::http::gateway::{Gateway, Maintenance, MaintenanceTarget, Maintenances};
use crate::status::timestamp::timestamp;
use crate::time::clock;

/// Log text for a route without maintenance.
const FORWARDED: &str = "forwarded";

/// Body of a PUT. Without `for`, which is the duration, the request is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct MaintenanceBody {
    r#for: Option<String>,
}

impl Admin {
    /// Changes the maintenance. Returns the result of `change` once it is in force.
    ///
    /// The thread that has the gateway makes the change, by an *order*.
    pub(in crate::admin) async fn maintain<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Maintenances) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (result_sender, result_receiver) = oneshot::channel();
        let change = Box::new(move |maintenances: &mut Maintenances| {
            // The requester may have disconnected. Then nothing needs the result.
            let _ignored = result_sender.send(change(maintenances)).is_err();
        });
        self.order(OrderKind::Maintain(change)).await?;
        result_receiver.await.map_err(|_| reply::not_now())
    }
}

/// `PUT`: begins maintenance.
pub(super) async fn set(request: HttpRequest, admin: Data<Admin>, body: Bytes) -> Answer {
    let author = Author::of(&request);
    let target = find_target(&request, &*admin.serving()?)?;
    let body: MaintenanceBody = parse(&body, r#"{"for": "10m"}"#)?;
    let since = clock::now();
    let requested = Maintenance {
        since,
        until: since + span(body.r#for)?,
        by: author.shown().into(),
        ..Maintenance::default()
    };
    let (new_target, new) = (target.clone(), requested.clone());
    let before = admin.maintain(move |all| all.set(new_target, new)).await?;
    let subject = subject(&target);
    let from = describe(before.as_ref());
    let values = (Some(&*from), "503");
    author.log("maintenance set", &subject, values, Some(requested.until));
    let (until, by) = (timestamp(requested.until), &requested.by);
    let text = format!("maintenance until {until}, by {by}");
    record(&admin.history, &subject, &text);
    Ok(reply::ok(&requested))
}

/// `DELETE`: ends maintenance.
pub(super) async fn end(request: HttpRequest, admin: Data<Admin>) -> Answer {
    let author = Author::of(&request);
    // Not checked against the file: the file may have lost the route since its maintenance began.
    let target = parse_target(request.uri().path());
    let ended_target = target.clone();
    let ended = admin.maintain(move |all| all.end(&ended_target)).await?;
    let ended = ended
        .ok_or_else(|| reply::not_found("this is not in maintenance; /api/routes shows what is"))?;
    let (subject, from) = (subject(&target), describe(Some(&ended)));
    let event = "maintenance undone";
    author.log(event, &subject, (Some(&from), FORWARDED), None);
    record(&admin.history, &subject, event);
    Ok(reply::ok(&ended))
}

/// Parses the target of a path. The route's name is percent-encoded there.
fn parse_target(path: &str) -> MaintenanceTarget {
    let route = path.strip_prefix("/api/routes/");
    match route.and_then(|route| route.strip_suffix("/maintenance")) {
        None => MaintenanceTarget::AllRoutes,
        Some(name) => {
            let name = percent_decode_str(name).decode_utf8_lossy();
            MaintenanceTarget::Route(name.into_owned())
        }
    }
}

/// Finds the target of a path, and checks that it can be in maintenance.
fn find_target(request: &HttpRequest, gateway: &Gateway) -> Result<MaintenanceTarget, Refusal> {
    let target = parse_target(request.uri().path());
    let MaintenanceTarget::Route(name) = &target else {
        return Ok(target);
    };
    let routes = gateway.settings().routes.iter();
    let mut named = routes.filter(|route| route.name() == *name).peekable();
    if named.peek().is_none() {
        let message =
            "there is no such route; write its name as /api/routes has it, percent-encoded";
        return Err(reply::not_found(message));
    }
    if named.all(|route| route.origin().is_none()) {
        let message = "the file refuses the requests of this route already; change the file";
        return Err(reply::conflict(message));
    }
    Ok(target)
}

/// Returns the name of a target in the log and the history of changes.
pub(in crate::admin) fn subject(target: &MaintenanceTarget) -> String {
    match target {
        MaintenanceTarget::AllRoutes => "all routes".to_owned(),
        MaintenanceTarget::Route(name) => format!("routes[{name}]"),
    }
}

/// Describes a previous maintenance for the log.
fn describe(before: Option<&Maintenance>) -> String {
    before.map_or_else(
        || FORWARDED.to_owned(),
        |maintenance| format!("503 until {}", timestamp(maintenance.until)),
    )
}

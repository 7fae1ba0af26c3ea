//! `/api/find`: starts, renews, shows and stops experiments that find the limits of an origin.
//!
//! An experiment sets the override of the origin's gate to one level after the other. Its owner,
//! the program that started it, must renew it by a PUT.

use std::sync::{Arc, Mutex};

use actix_web::HttpRequest;
use actix_web::web::{Bytes, Data, Path};
use limit::Moment;
use limit::find::{FindSettings, Target};
use serde::Deserialize;
use serde_json::json;

use super::find_body::FindBody;
use crate::admin::Admin;
use crate::admin::author::{Author, record};
use crate::admin::body::parse;
use crate::admin::find::{self, OWNER, Running, experiment_json, lock};
use crate::admin::reply::{self, Answer, Refusal};
use crate::gate::api as gates;
use crate::gate::report::subject;
use crate::gate::{GateOverride, OverrideRefusal};
use crate::origin::Origin;
use crate::time::clock;

/// Id of the experiment that a PUT renews or a DELETE ends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct IdBody {
    id: u64,
}

/// `GET /api/find`: the last experiment of each origin.
pub(super) async fn list(admin: Data<Admin>) -> Answer {
    let now = clock::now();
    let all = admin.experiments.list();
    let experiments = all.iter().map(|it| experiment_json(&lock(it), now));
    let experiments: Vec<_> = experiments.collect();
    Ok(reply::ok(&json!({ "experiments": experiments })))
}

/// `GET`: the last experiment of an origin.
pub(super) async fn show(admin: Data<Admin>, origin: Path<String>) -> Answer {
    let running = find_running(&admin, &origin)?;
    let json = experiment_json(&lock(&running), clock::now());
    Ok(reply::ok(&json))
}

/// `POST`: starts an experiment.
pub(super) async fn start(request: HttpRequest, admin: Data<Admin>, body: Bytes) -> Answer {
    let gateway = admin.serving()?;
    let (author, now) = (Author::of(&request), clock::now());
    let example = r#"{"origin": "app", "slo": "p95<400ms, errors<0.5%", "from": "50r/s", "to": "400r/s"}, with step, min_step, confirm and wait"#;
    let body: FindBody = parse(&body, example)?;
    let (origin, gate) = gates::find_gate(&gateway, &body.origin)?;
    let settings = body.settings()?;
    check_settings(origin, &settings)?;
    check_override(origin, gate.override_in_force().as_ref(), now)?;
    let (by, what) = (author.shown(), body.describe());
    let running = find::start(&admin, settings, by.into(), (origin, gate));
    let running = running.ok_or_else(|| {
        reply::conflict(format!(
            "an experiment runs for origin {:?}; wait for its end, or stop it by DELETE /api/find/{}",
            body.origin, body.origin
        ))
    })?;
    let subject = subject(&body.origin);
    author.log("experiment started", &subject, (None, &what), None);
    let text = format!("experiment started: {what}, by {by}");
    record(&admin.history, &subject, &text);
    let json = experiment_json(&lock(&running), now);
    Ok(reply::ok(&json))
}

/// `PUT`: renews an experiment.
pub(super) async fn renew(admin: Data<Admin>, origin: Path<String>, body: Bytes) -> Answer {
    let running = find_by_id(&admin, &origin, &body)?;
    let mut running = lock(&running);
    let now = clock::now();
    running.renew(now);
    Ok(reply::ok(&experiment_json(&running, now)))
}

/// `DELETE`: ends an experiment.
pub(super) async fn stop(
    request: HttpRequest,
    admin: Data<Admin>,
    origin: Path<String>,
    body: Bytes,
) -> Answer {
    let running = if body.is_empty() {
        find_running(&admin, &origin)?
    } else {
        find_by_id(&admin, &origin, &body)?
    };
    let mut running = lock(&running);
    if running.experiment.is_over() {
        return Err(reply::conflict(
            "the experiment has ended; GET has its result",
        ));
    }
    let subject = subject(&origin);
    let author = Author::of(&request);
    author.log("experiment stopped", &subject, (None, "the file"), None);
    find::stop(&mut running);
    Ok(reply::ok(&experiment_json(&running, clock::now())))
}

/// Finds the last experiment of an origin.
fn find_running(admin: &Admin, origin: &str) -> Result<Arc<Mutex<Running>>, Refusal> {
    if let Some(running) = admin.experiments.of(origin) {
        return Ok(running);
    }
    gates::find_origin(&*admin.serving()?, origin)?;
    Err(reply::not_found(format!(
        "origin {origin:?} has had no experiment since the gateway started; POST /api/find starts one, and GET /api/find lists them"
    )))
}

/// Finds the experiment whose id is in the body.
fn find_by_id(admin: &Admin, origin: &str, body: &[u8]) -> Result<Arc<Mutex<Running>>, Refusal> {
    let IdBody { id } = parse(body, r#"{"id": 1}, the id of the experiment"#)?;
    let running = find_running(admin, origin)?;
    if lock(&running).id == id {
        return Ok(running);
    }
    let message = format!("experiment {id} has ended, and another one has begun");
    Err(reply::conflict(message))
}

/// Refuses an experiment that the origin cannot have.
fn check_settings(origin: &Origin, settings: &FindSettings) -> Result<(), Refusal> {
    let sets_rate = matches!(settings.target, Target::Rate { .. });
    let origin = origin.settings();
    let fits = OverrideRefusal::check(origin, sets_rate, !sets_rate);
    fits.map_err(|unfit| gates::refusal(&origin.name, unfit))
}

/// Refuses an experiment while an override is in force, because the experiment would replace it.
fn check_override(
    origin: &Origin,
    present: Option<&GateOverride>,
    now: Moment,
) -> Result<(), Refusal> {
    // The override of an experiment is no obstacle: the start checks whether an experiment runs.
    let is_obstacle = |set: &&GateOverride| set.until > now && set.owner.as_deref() != Some(OWNER);
    let Some(obstacle) = present.filter(is_obstacle) else {
        return Ok(());
    };
    let owner = obstacle.owner.as_deref();
    let owner = owner.map_or(String::new(), |owner| format!(" of {owner}"));
    let name = &origin.settings().name;
    let message = format!(
        "an override{owner} is in force for origin {name:?}; undo it first by DELETE /api/origins/{name}/override"
    );
    Err(reply::conflict(message))
}

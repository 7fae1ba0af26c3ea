//! `/api/find`: starts, renews, shows and stops experiments that find what an origin can take.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data, Path};
use serde::Deserialize;

use super::body::parse;
use super::gates;
use super::span::from_1s_to_24h;
use crate::admin::Admin;
use crate::admin::author::{Author, Changed};
use crate::admin::find::{self, FindStart, Running, locked, text};
use crate::admin::reply::{self, Answer, Refusal};
use crate::config::ChangedBy;
use crate::gate::GateOverride;
use crate::limit::find::{AbortReason, FindPlan, FindSettings, Objective, Target, Timing, plan};
use crate::limit::{Moment, Percent, Rate};
use crate::origin::Origin;
use crate::status::gates::place;
use crate::status::views::{self, Finds, Plain};
use crate::time::clock;

/// Most places that are tried.
const MAX_PLACES: u32 = 1_000_000;

/// The body of a POST.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct FindBody {
    origin: String,
    slo: String,
    /// `rate`, if it is not given, or `places`.
    find: Option<String>,
    from: String,
    to: String,
    step: Option<String>,
    min_step: Option<String>,
    confirm: Option<String>,
    /// How long to wait for requests.
    wait: Option<String>,
    /// Says what would be done, and does nothing.
    dry_run: Option<bool>,
}

/// The body of a PUT that renews.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct RenewBody {
    id: u64,
}

pub(super) async fn list(admin: Data<Admin>) -> Answer {
    let now = clock::now();
    let all = admin.experiments.list();
    let experiments = all.iter().map(|it| text::view(&locked(it), now)).collect();
    Ok(reply::ok(&Finds { experiments }))
}

pub(super) async fn show(admin: Data<Admin>, origin: Path<String>) -> Answer {
    let running = of(&admin, &origin)?;
    let view = text::view(&locked(&running), clock::now());
    Ok(reply::ok(&view))
}

pub(super) async fn start(request: HttpRequest, admin: Data<Admin>, body: Bytes) -> Answer {
    let gateway = admin.serving()?;
    let (author, now) = (Author::of(&request), clock::now());
    let example = r#"{"origin": "app", "slo": "p95<400ms, errors<0.5%", "from": "50r/s", "to": "400r/s"}, with find, step, min_step, confirm, wait and dry_run"#;
    let body: FindBody = parse(&body, example)?;
    let (origin, gate) = gates::find(&gateway, &body.origin)?;
    let settings = settings(&body, now)?;
    check(origin, gate.overridden().as_ref(), &settings, now)?;
    if body.dry_run == Some(true) {
        return Ok(reply::ok(&planned(&plan(&settings))));
    }
    let (by, what) = (author.shown(), describe(&body));
    let wanted = FindStart {
        settings,
        by: by.into(),
    };
    let Some(running) = find::start(&admin, wanted, (origin, gate)) else {
        let message = format!(
            "an experiment runs for origin {:?}; wait for its end, or stop it by DELETE /api/find/{}",
            body.origin, body.origin
        );
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    };
    let place = place(&body.origin);
    author.log(&Changed {
        event: "experiment started",
        what: &place,
        from: None,
        to: &what,
        until: None,
    });
    let change = format!("{place}: experiment started: {what}, by {by}");
    admin.history.add(now, ChangedBy::Api, vec![change]);
    let view = text::view(&locked(&running), now);
    Ok(reply::ok(&view))
}

pub(super) async fn renew(admin: Data<Admin>, origin: Path<String>, body: Bytes) -> Answer {
    let RenewBody { id } = parse(&body, r#"{"id": 1}, the id of the experiment"#)?;
    let running = of(&admin, &origin)?;
    let mut it = locked(&running);
    if it.id != id {
        let message = format!("experiment {id} has ended, and another one has begun");
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    }
    let now = clock::now();
    it.renew(now);
    Ok(reply::ok(&text::view(&it, now)))
}

pub(super) async fn stop(request: HttpRequest, admin: Data<Admin>, origin: Path<String>) -> Answer {
    let running = of(&admin, &origin)?;
    let mut it = locked(&running);
    if it.experiment.is_over() {
        let message = "the experiment has ended; GET has its result";
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    }
    let place = place(&origin);
    Author::of(&request).log(&Changed {
        event: "experiment stopped",
        what: &place,
        from: None,
        to: "the file",
        until: None,
    });
    it.stop(AbortReason::Stopped);
    Ok(reply::ok(&text::view(&it, clock::now())))
}

fn of(admin: &Admin, origin: &str) -> Result<Arc<Mutex<Running>>, Refusal> {
    admin.experiments.of(origin).ok_or_else(|| {
        let message = format!(
            "origin {origin:?} has had no experiment; POST /api/find starts one, and GET /api/find lists them"
        );
        Refusal::new(StatusCode::NOT_FOUND, message)
    })
}

/// Refuses an experiment that the origin cannot have.
fn check(
    origin: &Origin,
    known: Option<&GateOverride>,
    settings: &FindSettings,
    now: Moment,
) -> Result<(), Refusal> {
    let mut wanted = GateOverride {
        rate: None,
        max_in_flight: None,
        is_paused: false,
        since: now,
        until: now,
        by: "".into(),
        owner: None,
    };
    for target in &settings.targets {
        match target {
            Target::Rate { from, .. } => wanted.rate = Some(*from),
            Target::Places { .. } => wanted.max_in_flight = Some(NonZeroUsize::MIN),
        }
    }
    let origin = origin.settings();
    let fits = wanted.check_fits(origin);
    fits.map_err(|unfit| gates::refusal(&origin.name, unfit))?;
    if known.is_some_and(|it| it.owner.is_none()) {
        let message = format!(
            "an override is in force for origin {:?}; undo it first by DELETE /api/origins/{}/override",
            origin.name, origin.name
        );
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    }
    Ok(())
}

fn describe(body: &FindBody) -> String {
    let what = body.find.as_deref().unwrap_or("rate");
    format!("{what} {} to {}, {}", body.from, body.to, body.slo)
}

fn settings(body: &FindBody, now: Moment) -> Result<FindSettings, Refusal> {
    let objective = body.slo.parse::<Objective>();
    let objective =
        objective.map_err(|error| reply::bad_query(format!("slo is {:?}: {error}", body.slo)))?;
    let step = body.step.as_deref().unwrap_or("5%");
    let step = step
        .parse::<Percent>()
        .map_err(|error| reply::bad_query(format!("step is {step:?}: {error}")))?;
    let mut timing = Timing::default();
    for (name, text, part) in [
        ("min_step", &body.min_step, &mut timing.min_step),
        ("confirm", &body.confirm, &mut timing.confirm),
        ("wait", &body.wait, &mut timing.idle),
    ] {
        if let Some(text) = text {
            *part = from_1s_to_24h(name, text, "20s")?;
        }
    }
    timing.max_step = timing.max_step.max(timing.min_step * 3);
    let until = body.wait.as_ref().map(|_| now + timing.idle);
    Ok(FindSettings {
        targets: vec![target(body)?],
        objective,
        step,
        until,
        timing,
    })
}

fn target(body: &FindBody) -> Result<Target, Refusal> {
    let (from, to) = (&*body.from, &*body.to);
    let bad = |message: String| reply::bad_query(message);
    match body.find.as_deref().unwrap_or("rate") {
        "rate" => {
            let rate = |name: &str, text: &str| {
                let rate = text.parse::<Rate>();
                let rate = rate.map_err(|error| bad(format!("{name} is {text:?}: {error}")))?;
                if rate.is_unlimited() {
                    return Err(bad(format!(
                        "{name} is {text:?}; give a rate such as 50r/s"
                    )));
                }
                Ok(rate)
            };
            let (low, high) = (rate("from", from)?, rate("to", to)?);
            if low.per_second() >= high.per_second() {
                return Err(bad(format!(
                    "from is {from:?} and to is {to:?}; from must be the lower rate"
                )));
            }
            Ok(Target::Rate {
                from: low,
                to: high,
            })
        }
        "places" => {
            let places = |name: &str, text: &str| {
                let places = text.parse::<u32>().ok();
                places.filter(|it| (1..=MAX_PLACES).contains(it)).ok_or_else(|| {
                    bad(format!(
                        "{name} is {text:?}; it must be a number of places from 1 to {MAX_PLACES}"
                    ))
                })
            };
            let (low, high) = (places("from", from)?, places("to", to)?);
            if low >= high {
                return Err(bad(format!(
                    "from is {from:?} and to is {to:?}; from must be the lower number"
                )));
            }
            Ok(Target::Places {
                from: low,
                to: high,
            })
        }
        other => Err(bad(format!(
            "find is {other:?}; it must be \"rate\" or \"places\""
        ))),
    }
}

/// What an experiment would do, as the API shows it.
fn planned(plan: &FindPlan) -> views::FindPlan {
    let levels = plan.levels.iter().flatten();
    views::FindPlan {
        levels: levels.map(|it| Plain::new(&it.to_string())).collect(),
        shortest: plan.shortest.as_secs_f64(),
        longest: plan.longest.as_secs_f64(),
    }
}

//! `/api/origins/{origin}/what-if`: what would other numbers do at the gate of an origin?

use actix_web::web::{Bytes, Data, Path};
use serde::Deserialize;

use super::body::parse;
use super::gates::{find, places, rate, refusal};
use super::replays;
use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::gate::Unfit;
use crate::status::views::{GateWhatIf, Plain, Sample};
use crate::status::what_if::{OtherGate, replay_gate, seconds};

/// The body of a POST.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct Body {
    rate: Option<String>,
    max_in_flight: Option<u64>,
}

pub(super) async fn ask(admin: Data<Admin>, name: Path<String>, body: Bytes) -> Answer {
    let gateway = admin.serving()?;
    let (origin, _) = find(&gateway, &name)?;
    let wanted: Body = parse(&body, r#"{"rate": "20r/s"}, with rate and max_in_flight"#)?;
    let rate = wanted.rate.as_deref().map(rate).transpose()?;
    let most = wanted.max_in_flight.map(places).transpose()?;
    if rate.is_none() && most.is_none() {
        return Err(reply::bad_query(
            "the body has no number to try; give rate, max_in_flight or both, such as {\"rate\": \"20r/s\"}",
        ));
    }
    let origin = origin.settings().clone();
    let fits = Unfit::check(&origin, rate.is_some(), most.is_some());
    fits.map_err(|unfit| refusal(&origin.name, unfit))?;
    let Some(permit) = replays::begin() else {
        return Ok(replays::busy());
    };
    let samples = admin.recent.live.kept();
    let replay = move || {
        let name = Plain::new(&origin.name);
        let samples = samples.iter();
        let samples = samples.filter_map(|json| serde_json::from_slice::<Sample>(json).ok());
        let of_origin = samples.filter_map(|it| Some((it.time, it.origin(&name)?.clone())));
        let of_origin: Vec<_> = of_origin.collect();
        let (waiting, seconds) = seconds(&of_origin);
        if seconds.is_empty() {
            return None;
        }
        let wanted = OtherGate {
            rate,
            max_in_flight: wanted.max_in_flight,
        };
        let view = replay_gate((waiting, &seconds), gateway.settings(), &origin, wanted);
        Some(GateWhatIf {
            since: of_origin.first().map_or(0.0, |(at, _)| *at),
            ..view
        })
    };
    let none = "the gateway has watched this gate for less than two seconds; try again in a moment";
    replays::answer(permit, replay, none).await
}

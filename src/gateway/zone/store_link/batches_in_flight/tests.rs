//! Tests of the order of answers to batches.

use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use limit::{Cost, Delay, Limit, Moment};

use super::super::{Paces, Reply, SharedKey, Sharing, StoreLink};
use super::*;
use crate::observe::metrics::ZoneMetrics;
use crate::store::{StoreHealth, simulated};
use crate::time::pacer::Pacer;

const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

/// Creates the link of a zone in Redis.
fn link() -> Rc<StoreLink> {
    let settings = crate::test_settings::with(
        "[redis]\nurl = \"redis://127.0.0.1\"\n\
         [zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/s\"\nstore = \"redis\"",
    );
    let zone = &settings.zones[0];
    let sharing = Sharing {
        store_health: Arc::new(StoreHealth::new(config::Redis::default())),
        paces: Paces::new(zone, START).unwrap(),
        divergence: Arc::default(),
    };
    let (metrics, pacer) = (Arc::<ZoneMetrics>::default(), Pacer::standing_at(START));
    StoreLink::new(&Arc::new(zone.clone()), &sharing, &metrics, &pacer, None)
}

/// Creates a batch with a join of each of these keys.
fn batch(link: &Rc<StoreLink>, keys: [&str; 2]) -> Rc<[ChargeRequest]> {
    let join = |key: &str| {
        let limit = Limit::unlimited(Delay::Above(0), Cost::ONE);
        let key = SharedKey::new(link, key.as_bytes());
        ChargeRequest::join(key, limit, START, Reply::new(drop), None)
    };
    keys.map(join).into()
}

#[actix::test]
async fn an_answer_waits_for_earlier_requests_of_its_key() {
    let _network = simulated::set_network(Rc::new(simulated::NoStore));
    let (link, batches, answered) = (link(), BatchesInFlight::default(), RefCell::new(Vec::new()));
    let respond = |request: &ChargeRequest, name: &'static str| {
        request.respond(Err(NoReply));
        answered.borrow_mut().push(name);
    };
    let (first, second) = (batch(&link, ["a", "b"]), batch(&link, ["c", "b"]));
    batches.add(&first);
    batches.add(&second);
    let mut overtakes = pin!(batches.respond_in_order(&second, vec!["c", "second b"], respond));
    assert!(overtakes.as_mut().now_or_never().is_none());
    assert_eq!(answered.take(), ["c"]);
    let answers = vec!["a", "first b"];
    batches.respond_in_order(&first, answers, respond).await;
    batches.notify_answered();
    overtakes.await;
    assert_eq!(answered.take(), ["a", "first b", "second b"]);
}

#[actix::test]
async fn no_answer_waits_for_requests_that_were_abandoned() {
    let _network = simulated::set_network(Rc::new(simulated::NoStore));
    let (link, batches) = (link(), BatchesInFlight::default());
    let (first, second) = (batch(&link, ["a", "b"]), batch(&link, ["b", "a"]));
    batches.add(&first);
    batches.add(&second);
    let mut overtakes = pin!(batches.respond_in_order(&second, vec![(), ()], |_, ()| {}));
    assert!(overtakes.as_mut().now_or_never().is_none());
    batches.abandon(|other| Rc::ptr_eq(other, &first));
    overtakes.await;
}

//! Tests of overrides of a zone and of keys: pauses and rates.

use limit::{Account, DestinationId};

use super::super::{Overrides, ZoneOverride, ZoneValues};
use super::handover::hand_over;
use super::*;

/// Returns an override with these values that lasts for an hour.
fn overriding(values: ZoneValues) -> ZoneOverride {
    ZoneOverride {
        values,
        since: START,
        until: START + 3600 * SECOND,
        ..ZoneOverride::default()
    }
}

fn pause() -> ZoneOverride {
    overriding(ZoneValues {
        pause: true,
        ..ZoneValues::default()
    })
}

impl Bench {
    async fn change_overrides(&self, change: impl FnOnce(&mut Overrides)) {
        self.zone.change_overrides(change);
        Self::settle().await;
    }

    /// Sets the override of a key.
    async fn override_key(&self, key: &str, new: ZoneOverride) {
        let key = Key::from(key.as_bytes());
        self.change_overrides(|it| drop(it.keys.insert(key, new)))
            .await;
    }

    async fn pause_zone(&self) {
        self.change_overrides(|it| it.zone = Some(pause())).await;
    }

    async fn resume_zone(&self) {
        self.change_overrides(|it| it.zone = None).await;
    }
}

#[actix::test]
async fn a_pause_stops_the_queue_as_if_no_time_passed() {
    let bench = Bench::new("10r/s", 10);
    let mut joins = bench.joins(4, "a", burst(9)).await;
    assert_eq!(passed(&mut joins).await, 1);
    bench.advance(50 * MS).await;
    bench.pause_zone().await;
    bench.advance(20 * SECOND).await;
    assert_eq!(passed(&mut joins).await, 0, "in the pause");
    joins.push(bench.joined("a", burst(9)).await);
    bench.resume_zone().await;
    assert_eq!(joins.len(), 4);
    // 50 ms were left. Then they leave evenly, without a surge.
    bench.admits_after(50 * MS, &mut joins[0]).await;
    for joining in &mut joins[1..] {
        bench.admits_after(100 * MS, joining).await;
    }
}

#[actix::test]
async fn a_key_saved_in_a_pause_keeps_its_level_and_its_waiters_follow_the_pause() {
    let bench = Bench::new("1r/s", 10);
    let onward = Some(DestinationId(std::num::NonZeroU16::MIN));
    let join = |_| {
        let request = bench.request("a", burst(9));
        bench.zone.join(Join { onward, ..request })
    };
    let mut joins: Vec<_> = (0..4).map(join).collect();
    Bench::settle().await;
    assert_eq!(passed(&mut joins).await, 1);
    bench.pause_zone().await;
    bench.advance(20 * SECOND).await;
    let departures = bench.zone.expected_departures().await;
    let mut dues: Vec<_> = departures.iter().map(|it| it.to_come.due).collect();
    dues.sort_unstable();
    assert_eq!(dues, [1, 2, 3].map(|nth| pause().until + nth * SECOND));
    let (saved, now) = hand_over(&bench).await;
    let rate: Rate = "1r/s".parse().unwrap();
    let account = saved[0].account.as_ref().expect("charges of the waiters");
    let restored = Account::restored(account, rate, now);
    assert_eq!(restored.drained_at(rate), now + 4 * SECOND);
}

#[actix::test]
async fn a_request_waits_for_the_end_of_the_pause_and_may_leave() {
    let bench = Bench::new("10r/s", 10);
    bench.pause_zone().await;
    let mut stays = vec![bench.join("a", burst(9))];
    let leaves = bench.join("a", burst(9));
    let mut other = bench.joins(1, "b", burst(9)).await;
    assert_eq!(bench.zone.stats(1).await.depth, 3);
    drop(leaves);
    bench.advance(5 * SECOND).await;
    assert_eq!(bench.zone.stats(1).await.depth, 2);
    assert_eq!(passed(&mut stays).await + passed(&mut other).await, 0);
    bench.resume_zone().await;
    assert_eq!(passed(&mut stays).await, 1);
    assert_eq!(passed(&mut other).await, 1);
    assert_eq!(bench.zone.stats(1).await.depth, 0);
}

#[actix::test]
async fn a_paused_key_does_not_delay_others() {
    let bench = Bench::new("10r/s", 10);
    bench.override_key("a", pause()).await;
    let mut paused = bench.joins(1, "a", burst(9)).await;
    let mut other = bench.joins(1, "b", burst(9)).await;
    assert_eq!(passed(&mut other).await, 1);
    assert_eq!(passed(&mut paused).await, 0);
    bench.change_overrides(|it| it.keys.clear()).await;
    assert_eq!(passed(&mut paused).await, 1);
}

#[actix::test]
async fn a_full_queue_rejects_in_a_pause_and_reports_its_end() {
    let mut bench = Bench::new("10r/s", 10);
    bench.pause_zone().await;
    let mut joins = bench.joins(4, "a", burst(2)).await;
    let rejection = peek(&mut joins[3]).await.expect("an answer");
    let rejection = rejection.err().expect("burst is 2");
    assert_eq!(rejection.reason, Rejected::Paused);
    assert!(rejection.retry_after >= 3600 * SECOND);
    assert_eq!(bench.zone.stats(1).await.depth, 3);
    // Without a rate there is no level that would bound the waiters.
    bench.retune(Rate::UNLIMITED);
    let mut more = bench.joins(4, "b", burst(2)).await;
    assert_eq!(rejected(&mut more[3]).await, Some(Rejected::Paused));
    assert_eq!(bench.zone.stats(1).await.depth, 6);
}

#[actix::test]
async fn a_new_configured_rate_in_a_pause_applies_after_it() {
    let mut bench = Bench::new("10r/s", 10);
    let mut joins = bench.joins(3, "a", burst(9)).await;
    assert_eq!(passed(&mut joins).await, 1);
    bench.pause_zone().await;
    bench.retune("1r/s".parse().unwrap());
    bench.advance(60 * SECOND).await;
    assert_eq!(passed(&mut joins).await, 0, "a reload keeps the pause");
    bench.resume_zone().await;
    bench.admits_after(SECOND, &mut joins[0]).await;
    assert!(waits(&mut joins[1]).await);
}

#[actix::test]
async fn an_overridden_rate_applies_at_once_and_expires() {
    let bench = Bench::new("1r/s", 10);
    let faster = |rate: &str| {
        overriding(ZoneValues {
            rate: Some(rate.parse().unwrap()),
            ..ZoneValues::default()
        })
    };
    let mut joins = bench.joins(10, "a", burst(20)).await;
    let mut other = bench.joins(10, "b", burst(20)).await;
    assert_eq!((passed(&mut joins).await, passed(&mut other).await), (1, 1));
    let zone_override = Some(faster("2r/s"));
    bench.change_overrides(|it| it.zone = zone_override).await;
    bench.advance(SECOND).await;
    assert_eq!((passed(&mut joins).await, passed(&mut other).await), (2, 2));
    bench.override_key("a", faster("4r/s")).await;
    bench.advance(SECOND).await;
    assert_eq!((passed(&mut joins).await, passed(&mut other).await), (4, 2));
    let none = Overrides::default();
    bench.change_overrides(|it| *it = none).await;
    bench.advance(SECOND).await;
    assert_eq!((passed(&mut joins).await, passed(&mut other).await), (1, 1));
}

#[actix::test]
async fn a_bucket_parked_after_a_pause_has_leaked_only_outside_the_pause() {
    let bench = Bench::new("1r/s", 10);
    let limit = nodelay(burst(9));
    let mut joins = bench.joins(5, "a", limit).await;
    assert_eq!(passed(&mut joins).await, 5);
    bench.pause_zone().await;
    joins.push(bench.join("a", limit));
    bench.advance(100 * SECOND).await;
    bench.resume_zone().await;
    assert_eq!(passed(&mut joins).await, 1, "level 5 as before the pause");
    let excess = bench.zone.keys(Order::Excess, 1).await[0].excess;
    assert!((4.9..=5.0).contains(&excess), "{excess}");
    // The actor is parked, and its bucket goes on leaking by the real clock.
    bench.advance(3 * SECOND).await;
    let key = &bench.zone.keys(Order::Excess, 1).await[0];
    assert!((1.9..=2.1).contains(&key.excess), "{key:?}");
}

#[actix::test]
async fn a_pause_frees_no_permit_and_max_wait_counts_after_it() {
    let bench = Bench::new("1000r/s", 10);
    let limit = Limit {
        max_wait: Some(SECOND),
        ..at_most(1, 5)
    };
    let permit = bench.pass("a", limit).await.expect("a permit");
    let mut next = bench.join("a", limit);
    bench.advance(500 * MS).await;
    bench.pause_zone().await;
    let mut late = bench.join("a", limit);
    drop(permit);
    bench.advance(30 * SECOND).await;
    assert!(waits(&mut next).await, "in the pause");
    bench.resume_zone().await;
    let _permit = used(&mut next).await;
    assert!(waits(&mut late).await, "no permit is free");
    bench.advance(1_001 * MS).await;
    assert_eq!(rejected(&mut late).await, Some(Rejected::MaxWait));
}

#[actix::test]
async fn a_removed_zone_is_not_paused_any_more() {
    let bench = Bench::new("10r/s", 10);
    bench.pause_zone().await;
    let mut joining = bench.joined("a", burst(9)).await;
    assert!(waits(&mut joining).await);
    bench.zone.retire();
    Bench::settle().await;
    used(&mut joining).await;
}

#[actix::test]
async fn the_longest_wait_includes_the_pause() {
    let bench = Bench::new("1r/s", 10);
    let _joins = bench.joins(3, "a", burst(9)).await;
    bench.advance(500 * MS).await;
    bench.pause_zone().await;
    bench.advance(10 * SECOND).await;
    assert_eq!(bench.zone.stats(1).await.oldest_wait, 10_500 * MS);
    bench.resume_zone().await;
    bench.advance(100 * MS).await;
    assert_eq!(bench.zone.stats(1).await.oldest_wait, 10_600 * MS);
}

#[test]
fn expired_overrides_end_and_the_rest_stays() {
    let until = |seconds: u32| ZoneOverride {
        until: START + seconds * SECOND,
        ..pause()
    };
    let key = |name: &str| Key::from(name.as_bytes());
    let mut overrides = Overrides {
        zone: Some(until(1)),
        ..Overrides::default()
    };
    overrides.keys.insert(key("a"), until(2));
    overrides.keys.insert(key("b"), until(3));
    assert!(!overrides.any_expired(START));
    let now = START + 2 * SECOND;
    assert!(overrides.any_expired(now));
    assert_eq!(overrides.take_expired(now), [None, Some(key("a"))]);
    assert_eq!(overrides.keys.len(), 1);
    assert!(!overrides.any_expired(now) && !overrides.is_empty());
}

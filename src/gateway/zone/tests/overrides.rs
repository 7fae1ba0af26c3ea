//! Tests of overrides.

use limit::{Account, DestinationId};

use super::super::{Overrides, SavedKey, ZoneOverride, ZoneValues};
use super::*;

const MS: Duration = Duration::from_millis(1);

/// Returns an override that changes nothing.
fn nothing() -> ZoneOverride {
    ZoneOverride {
        since: START,
        until: START + Duration::from_secs(3600),
        ..ZoneOverride::default()
    }
}

fn overriding(values: ZoneValues) -> ZoneOverride {
    ZoneOverride {
        values,
        ..nothing()
    }
}

fn pause() -> ZoneOverride {
    overriding(ZoneValues {
        pause: true,
        ..ZoneValues::default()
    })
}

impl Bench {
    async fn change(&self, change: impl FnOnce(&mut Overrides)) {
        self.zone.change_overrides(change);
        Self::settle().await;
    }

    async fn pause_zone(&self) {
        self.change(|it| it.zone = Some(pause())).await;
    }

    async fn resume_zone(&self) {
        self.change(|it| it.zone = None).await;
    }
}

#[actix::test]
async fn a_pause_stops_the_queue_as_if_no_time_passed() {
    let bench = Bench::new("10r/s", 10);
    let mut joins = bench.joins(4, "a", burst(9)).await;
    assert_eq!(passed(&mut joins).await, 1);
    bench.advance(50 * MS).await;
    bench.pause_zone().await;
    bench.advance(Duration::from_secs(20)).await;
    assert_eq!(passed(&mut joins).await, 0, "in the pause");
    joins.push(bench.join("a", burst(9)));
    Bench::settle().await;
    bench.resume_zone().await;
    bench.advance(49 * MS).await;
    assert_eq!(passed(&mut joins).await, 0, "50 ms were left");
    bench.advance(MS).await;
    assert_eq!(passed(&mut joins).await, 1);
    for _ in 0..3 {
        bench.advance(99 * MS).await;
        assert_eq!(passed(&mut joins).await, 0);
        bench.advance(MS).await;
        assert_eq!(passed(&mut joins).await, 1, "evenly, without a surge");
    }
    assert!(joins.is_empty());
}

#[actix::test]
async fn a_key_saved_in_a_pause_keeps_its_level_and_its_waiters_follow_the_pause() {
    let bench = Bench::new("1r/s", 10);
    let onward = Some(DestinationId(std::num::NonZeroU16::MIN));
    let mut joins: Vec<_> = (0..4)
        .map(|_| {
            let request = bench.request("a", burst(9));
            bench.zone.join(Join { onward, ..request })
        })
        .collect();
    Bench::settle().await;
    assert_eq!(passed(&mut joins).await, 1);
    bench.pause_zone().await;
    bench.advance(Duration::from_secs(20)).await;
    let turns = bench.zone.expected_departures().await;
    let mut dues: Vec<_> = turns.iter().map(|turn| turn.to_come.due).collect();
    dues.sort_unstable();
    let end = pause().until;
    assert_eq!(
        dues,
        [1, 2, 3].map(|second| end + Duration::from_secs(second))
    );
    bench.zone.hand_over().await;
    let mut saved = Vec::new();
    let take = async |keys: Vec<SavedKey>| {
        saved.extend(keys);
        true
    };
    let now = bench.pacer.now();
    bench.zone.save(now, take).await;
    let rate: Rate = "1r/s".parse().unwrap();
    let account = saved[0].account.as_ref().expect("its waiters");
    let restored = Account::restored(account, rate, now);
    assert_eq!(restored.drained_at(rate), now + Duration::from_secs(4));
}

#[actix::test]
async fn a_request_waits_for_the_end_of_the_pause_and_may_leave() {
    let bench = Bench::new("10r/s", 10);
    bench.pause_zone().await;
    let mut stays = vec![bench.join("a", burst(9))];
    let leaves = bench.join("a", burst(9));
    let mut other = vec![bench.join("b", burst(9))];
    Bench::settle().await;
    assert_eq!(bench.zone.stats(1).await.depth, 3);
    drop(leaves);
    bench.advance(Duration::from_secs(5)).await;
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
    bench
        .change(|it| {
            it.keys.insert(Key::from(&b"a"[..]), pause());
        })
        .await;
    let mut held = vec![bench.join("a", burst(9))];
    let mut other = vec![bench.join("b", burst(9))];
    Bench::settle().await;
    assert_eq!(passed(&mut other).await, 1);
    assert_eq!(passed(&mut held).await, 0);
    bench.change(|it| it.keys.clear()).await;
    assert_eq!(passed(&mut held).await, 1);
}

#[actix::test]
async fn a_full_queue_rejects_in_a_pause_and_reports_its_end() {
    let mut bench = Bench::new("10r/s", 10);
    bench.pause_zone().await;
    let mut joins = bench.joins(4, "a", burst(2)).await;
    let rejection = peek(&mut joins[3]).await.expect("an answer");
    let rejection = rejection.err().expect("burst is 2");
    assert_eq!(rejection.reason, Rejected::Paused);
    assert!(rejection.retry_after >= Duration::from_secs(3600));
    assert_eq!(bench.zone.stats(1).await.depth, 3);
    // Without a rate there is no level that would bound the waiters.
    bench.retune(Rate::UNLIMITED);
    let mut more = bench.joins(4, "b", burst(2)).await;
    let rejection = peek(&mut more[3]).await.expect("an answer");
    assert_eq!(rejection.err().map(|it| it.reason), Some(Rejected::Paused));
    assert_eq!(bench.zone.stats(1).await.depth, 6);
}

#[actix::test]
async fn a_new_configured_rate_in_a_pause_applies_after_it() {
    let mut bench = Bench::new("10r/s", 10);
    let mut joins = bench.joins(3, "a", burst(9)).await;
    assert_eq!(passed(&mut joins).await, 1);
    bench.pause_zone().await;
    bench.retune("1r/s".parse().unwrap());
    bench.advance(Duration::from_secs(60)).await;
    assert_eq!(passed(&mut joins).await, 0, "a reload keeps the pause");
    bench.resume_zone().await;
    bench.advance(999 * MS).await;
    assert_eq!(passed(&mut joins).await, 0);
    bench.advance(MS).await;
    assert_eq!(passed(&mut joins).await, 1);
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
    let mut joins: Vec<_> = (0..10).map(|_| bench.join("a", burst(20))).collect();
    let mut other = bench.joins(10, "b", burst(20)).await;
    assert_eq!((passed(&mut joins).await, passed(&mut other).await), (1, 1));
    bench.change(|it| it.zone = Some(faster("2r/s"))).await;
    bench.advance(Duration::from_secs(1)).await;
    assert_eq!((passed(&mut joins).await, passed(&mut other).await), (2, 2));
    bench
        .change(|it| {
            it.keys.insert(Key::from(&b"a"[..]), faster("4r/s"));
        })
        .await;
    bench.advance(Duration::from_secs(1)).await;
    assert_eq!((passed(&mut joins).await, passed(&mut other).await), (4, 2));
    bench.change(|it| *it = Overrides::default()).await;
    bench.advance(Duration::from_secs(1)).await;
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
    bench.advance(Duration::from_secs(100)).await;
    bench.resume_zone().await;
    assert_eq!(passed(&mut joins).await, 1, "level 5 as before the pause");
    let excess = bench.zone.keys(Order::Excess, 1).await[0].excess;
    assert!((4.9..=5.0).contains(&excess), "{excess}");
    // The actor is parked, and its bucket goes on leaking by the real clock.
    bench.advance(Duration::from_secs(3)).await;
    let key = &bench.zone.keys(Order::Excess, 1).await[0];
    assert!((1.9..=2.1).contains(&key.excess), "{key:?}");
}

#[actix::test]
async fn a_pause_frees_no_permit_and_max_wait_counts_after_it() {
    let bench = Bench::new("1000r/s", 10);
    let limit = Limit {
        max_wait: Some(Duration::from_secs(1)),
        ..at_most(1, 5)
    };
    let mut running = bench.join("a", limit);
    Bench::settle().await;
    let running = peek(&mut running).await.expect("runs").expect("a turn");
    let permit = running.take().expect("a place");
    let mut waits = vec![bench.join("a", limit)];
    bench.advance(500 * MS).await;
    bench.pause_zone().await;
    let mut late = bench.join("a", limit);
    drop(permit);
    bench.advance(Duration::from_secs(30)).await;
    assert_eq!(passed(&mut waits).await, 0, "in the pause");
    bench.resume_zone().await;
    let first = peek(&mut waits[0])
        .await
        .expect("its place")
        .expect("a turn");
    let _permit = first.take();
    assert!(peek(&mut late).await.is_none(), "it waits for the place");
    bench.advance(1_001 * MS).await;
    let rejection = peek(&mut late).await.expect("an answer").err();
    assert_eq!(rejection.map(|it| it.reason), Some(Rejected::MaxWait));
}

#[actix::test]
async fn a_removed_zone_is_not_paused_any_more() {
    let bench = Bench::new("10r/s", 10);
    bench.pause_zone().await;
    let mut joins = vec![bench.join("a", burst(9))];
    Bench::settle().await;
    assert_eq!(passed(&mut joins).await, 0);
    bench.zone.retire();
    Bench::settle().await;
    assert_eq!(passed(&mut joins).await, 1);
}

#[actix::test]
async fn the_longest_wait_includes_the_pause() {
    let bench = Bench::new("1r/s", 10);
    let _joins = bench.joins(3, "a", burst(9)).await;
    bench.advance(500 * MS).await;
    bench.pause_zone().await;
    bench.advance(Duration::from_secs(10)).await;
    let oldest = bench.zone.stats(1).await.oldest_wait;
    assert_eq!(oldest, Duration::from_millis(10_500));
    bench.resume_zone().await;
    bench.advance(100 * MS).await;
    let oldest = bench.zone.stats(1).await.oldest_wait;
    assert_eq!(oldest, Duration::from_millis(10_600));
}

#[test]
fn expired_overrides_end_and_the_rest_stays() {
    let until = |seconds| ZoneOverride {
        until: START + Duration::from_secs(seconds),
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
    let now = START + Duration::from_secs(2);
    assert!(overrides.any_expired(now));
    assert_eq!(overrides.take_expired(now), [None, Some(key("a"))]);
    assert_eq!(overrides.keys.len(), 1);
    assert!(!overrides.any_expired(now) && !overrides.is_empty());
}

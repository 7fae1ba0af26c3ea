use super::*;

#[test]
fn keys_are_listed_in_steps_that_miss_none_who_stays() {
    run(async {
        let bench = Bench::new("1r/d", 5_000);
        let limit = Limit {
            delay: Delay::Never,
            ..burst(9)
        };
        for key in 0..4_000 {
            let _used = bench.join(&key.to_string(), limit).await.unwrap().take();
        }
        // Long enough to park them: a parked key is forgotten completely.
        for _ in 0..10 {
            bench.advance(Duration::from_secs(3)).await;
        }
        let come_and_go = async {
            for key in 0..1_000 {
                let gone = Key::from(key.to_string().as_bytes());
                assert_eq!(bench.zone.forget(gone, Waiters::Stay).await, Some(0));
                let _used = bench
                    .join(&format!("new{key}"), limit)
                    .await
                    .unwrap()
                    .take();
            }
        };
        let (listed, ()) = tokio::join!(bench.zone.keys(Order::Excess, 5_000), come_and_go);
        for keys in [listed, bench.zone.keys(Order::Excess, 5_000).await] {
            let mut names: Vec<_> = keys.iter().map(|state| &state.key).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), keys.len(), "each once");
            for key in 1_000..4_000 {
                let name = Key::from(key.to_string().as_bytes());
                assert!(names.binary_search(&&name).is_ok(), "{key}");
            }
        }
        let stats = bench.zone.stats(1).await;
        assert_eq!(stats.active + stats.parked, 4_000);
    });
}

use std::time::Duration;

use super::*;
use crate::status::views::Zones;

fn sample(seq: u32, depth: u64) -> Sample {
    Sample {
        seq: seq.into(),
        time: 1000.0 + f64::from(seq),
        zones: vec![ZoneSample {
            name: Plain::new("a"),
            rate: Some(10.0),
            delayed: 10,
            depth,
            ..ZoneSample::default()
        }],
        ..Sample::default()
    }
}

fn model(samples: Vec<Sample>) -> Model {
    let mut model = Model::default();
    let zones = vec![Zone {
        name: Plain::new("a"),
        rate: Plain::new("10r/s"),
        ..Zone::default()
    }];
    model.hear(News::Zones(Zones { zones }), Moment::default());
    model.hear(News::History(samples), Moment::default());
    model
}

#[test]
fn a_row_is_the_last_second() {
    let mut model = model(vec![sample(1, 5), sample(2, 9)]);
    let row = &model.rows()[0];
    assert_eq!((row.came, row.now.out(), row.now.depth), (14, 10, 9));
    assert_eq!(row.depths, [5, 9]);
    model.hear(News::Sample(Box::new(sample(3, 0))), Moment::default());
    let row = &model.rows()[0];
    assert_eq!((row.came, row.now.out(), row.now.depth), (1, 10, 0));
}

#[test]
fn a_zone_without_samples_is_all_zero() {
    let row = &model(Vec::new()).rows()[0];
    assert_eq!((row.came, row.now.depth, row.now.wait_p95), (0, 0, None));
    assert!(!model(Vec::new()).is_whole());
}

#[test]
fn the_course_is_in_seconds_before_now_and_marks_retunes() {
    let mut retuned = sample(3, 1);
    retuned.reload = 1;
    let mut last = sample(4, 0);
    last.reload = 1;
    let course = model(vec![sample(1, 5), sample(2, 9), retuned, last]).course(&Plain::new("a"));
    assert_eq!(
        course.depth,
        [(-3.0, 5.0), (-2.0, 9.0), (-1.0, 1.0), (0.0, 0.0)]
    );
    assert_eq!(course.rate[0], (-3.0, 10.0));
    assert_eq!(course.retunes, [-1.0]);
}

#[test]
fn ten_minutes_are_kept_and_another_process_begins_anew() {
    let mut model = model((1..700).map(|seq| sample(seq, 1)).collect());
    assert_eq!(model.samples.len(), SECONDS);
    model.hear(News::Sample(Box::new(sample(3, 1))), Moment::default());
    assert_eq!(model.samples.len(), 1);
}

#[test]
fn lost_since_the_first_failure() {
    let mut model = model(vec![sample(1, 5)]);
    let at = |seconds| Moment::default() + Duration::from_secs(seconds);
    model.hear(News::Lost(Lost::Ended), at(5));
    model.hear(News::Lost(Lost::Silent), at(9));
    let (since, why) = (at(5), Lost::Silent);
    assert_eq!(model.link, Link::Lost { since, why });
    model.hear(News::History(Vec::new()), at(12));
    assert_eq!(model.link, Link::Open { since: at(12) });
    assert_eq!(model.samples.len(), 1, "what was known stays");
}

#[test]
fn who_was_rejected_most_comes_first_whatever_the_zone() {
    let mut second = sample(1, 5);
    let rejected = |key: &str, rejections| HeavyKey {
        key: Plain::new(key),
        rejections,
        ..HeavyKey::default()
    };
    second.zones.push(ZoneSample {
        name: Plain::new("b"),
        rejected_keys: vec![rejected("x", 9), rejected("y", 2)],
        ..ZoneSample::default()
    });
    second.zones[0].rejected_keys = vec![rejected("z", 5)];
    let model = model(vec![second]);
    let keys = model.rejected().into_iter();
    let keys: Vec<_> = keys
        .map(|(zone, key)| (zone.as_str(), key.key.as_str()))
        .collect();
    assert_eq!(keys, [("b", "x"), ("a", "z"), ("b", "y")]);
    assert_eq!(model.keys(Sort::Rejections).len(), 3);
}

#[test]
fn keys_in_each_order() {
    let deep = |zone: &str, key: &str, depth, oldest_wait| KeySample {
        zone: Plain::new(zone),
        key: Plain::new(key),
        plan: None,
        depth,
        oldest_wait,
    };
    let mut second = sample(1, 5);
    second.deepest = vec![
        deep("b", "x", 9, 0.1),
        deep("a", "y", 3, 0.3),
        deep("a", "z", 5, 0.2),
        deep("a", "idle", 0, 0.0),
    ];
    let model = model(vec![second]);
    let keys = |sort| -> String {
        let keys = model.deepest(sort).into_iter();
        keys.map(|key| key.key.as_str()).collect()
    };
    let mut sort = Sort::default();
    for expected in ["xzy", "yzx", "yzx", "", "xzy"] {
        assert_eq!(keys(sort), expected, "{}", sort.name());
        sort = sort.next();
    }
}

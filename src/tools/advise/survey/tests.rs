use super::*;

/// What a hostile log can make of each plan: keys without end.
#[test]
fn the_keys_of_all_plans_together_are_bounded_and_each_plan_has_a_part() {
    let most = 10 * 2 * (MAX_PLANS + 1);
    let template = "$remote_addr".parse().unwrap();
    let survey = Survey::new(template, most).unwrap();
    let mut survey = survey.of_zone("z".to_owned());
    let mut known = Vec::new();
    for (second, nth) in (0..100 * 40).enumerate() {
        // One plan after the other, so that the first ones could have all keys.
        let (plan, key) = (nth / 100, nth % 100);
        let line = format!(
            "{{\"msec\":{second},\"zone\":\"z\",\"key\":\"{key}\",\"plan\":\"p{plan}\",\"target\":\"/\"}}"
        );
        let line = Form::Json.read(&line).unwrap();
        let (time, item) = survey.item(&line).unwrap();
        survey.count(time, item).unwrap();
        let plans = survey.plans.iter().map(|(_, group)| group.keys.slots());
        known = plans.chain([survey.rest.keys.slots()]).collect();
    }
    let sum: usize = known.iter().sum();
    assert!(sum <= most + most / 2, "{known:?}");
    assert!(known.iter().all(|known| *known >= 10), "{known:?}");
    assert_eq!((known[0], known.len()), (100, MAX_PLANS + 1));
    let surveyed = survey.end().unwrap();
    assert_eq!(
        (surveyed.requests(), surveyed.facts.unplanned),
        (4_000, 8 * 100)
    );
}

#[test]
fn a_log_of_too_many_requests_is_an_error() {
    let template = "$remote_addr".parse().unwrap();
    let mut survey = Survey::new(template, 1000).unwrap();
    survey.left = 2;
    let line = Form::Csv.read("1.5,10.0.0.1").unwrap();
    let mut count = || {
        let (time, item) = survey.item(&line).unwrap();
        survey.count(time, item)
    };
    assert!(count().is_ok() && count().is_ok());
    let error = count().unwrap_err().to_string();
    assert_eq!(
        error,
        "more than 250000000 requests: give a part of the log"
    );
}

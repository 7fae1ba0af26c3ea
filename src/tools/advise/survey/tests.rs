use super::*;

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

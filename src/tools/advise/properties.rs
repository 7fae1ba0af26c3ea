//! Property tests of `drip advise`: no log causes a panic, and the lines to paste are valid.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use testing::{cases, text};

use super::{Advice, Survey, read, report, toml_to_paste};

/// Returns the advice for a log, with only three keys remembered at once.
fn advice(log: &str) -> Option<Advice> {
    let template = "$remote_addr".parse().unwrap();
    let mut survey = Survey::new(template, 3).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, log).unwrap();
    read(&[file.path().to_owned()], None, &mut survey).unwrap();
    Advice::new(survey).unwrap()
}

/// Checks that the lines to paste are part of the report, and valid in a file.
fn check_advice(log: &str) -> Result<(), TestCaseError> {
    let Some(advice) = advice(log) else {
        return Ok(());
    };
    let toml = toml_to_paste(&advice);
    prop_assert!(report(&advice).contains(&toml));
    let file = format!(
        "[origins.a]\nservers = [\"http://a\"]\n[[routes]]\npath = \"/\"\norigin = \"a\"\n{toml}"
    );
    let checked = config::parse(&file, Path::new("gateway.toml"), false);
    prop_assert!(checked.is_ok(), "{}", file);
    Ok(())
}

/// Lines of CSV with a time and one of six keys. Most times are within 8 seconds.
fn line() -> impl Strategy<Value = String> {
    let near = (0..200u64).prop_map(|steps| steps * 37_000_000);
    let nanos = prop_oneof![20 => near, 1 => any::<u64>()];
    let time = nanos.prop_map(|it| format!("{}.{:09}", it / 1_000_000_000, it % 1_000_000_000));
    (time, 0..6u8).prop_map(|(time, key)| format!("{time},{key}"))
}

proptest! {
    #![proptest_config(cases(8, 2048))]

    #[test]
    fn any_requests_give_valid_lines_to_paste(lines in prop::collection::vec(line(), 1..150)) {
        check_advice(&lines.join("\n"))?;
    }

    #[test]
    fn any_text_is_read_without_a_panic(lines in prop::collection::vec(text("traces"), 1..20)) {
        check_advice(&lines.join("\n"))?;
    }
}

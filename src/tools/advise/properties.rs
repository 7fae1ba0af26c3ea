//! Property tests of `drip advise`: no log causes a panic, and the lines to paste are valid.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use testing::{cases, text};

use super::{Advice, Survey, read, report, toml};

/// Returns the advice for a log, with only three keys remembered at once.
fn advice(log: &str) -> Option<Advice> {
    let template = "$remote_addr".parse().unwrap();
    let mut survey = Survey::new(template, 3).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, log).unwrap();
    read(&[file.path().to_owned()], None, &mut survey).unwrap();
    Advice::new(survey).unwrap()
}

fn holds(log: &str) -> Result<(), TestCaseError> {
    let Some(advice) = advice(log) else {
        return Ok(());
    };
    let toml = toml(&advice);
    prop_assert!(report(&advice).contains(&toml));
    let file = format!(
        "[origins.a]\nservers = [\"http://a\"]\n[[routes]]\npath = \"/\"\norigin = \"a\"\n{toml}"
    );
    let checked = config::parse(&file, Path::new("gateway.toml"), false);
    prop_assert!(checked.is_ok(), "{}", file);
    Ok(())
}

fn line() -> impl Strategy<Value = String> {
    let near = (0..200u64).prop_map(|at| at * 37_000_000);
    let any = any::<u64>();
    let at = prop_oneof![20 => near, 1 => any];
    (at, 0..6u8)
        .prop_map(|(at, key)| format!("{}.{:09},{key}", at / 1_000_000_000, at % 1_000_000_000))
}

proptest! {
    #![proptest_config(cases(8, 2048))]

    #[test]
    fn any_requests_give_lines_that_are_valid(lines in prop::collection::vec(line(), 1..150)) {
        holds(&lines.join("\n"))?;
    }

    #[test]
    fn whatever_is_read_it_does_not_panic(lines in prop::collection::vec(text("traces"), 1..20)) {
        holds(&lines.join("\n"))?;
    }
}

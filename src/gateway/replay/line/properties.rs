//! Property tests of parsing any line of a trace.

use proptest::prelude::*;
use testing::{config, replay_text, text};

use super::*;

/// Converts seconds to nanoseconds by moving the decimal point. A simple second implementation.
fn naive(text: &str) -> Option<u64> {
    let mut parts = text.splitn(2, '.');
    let (whole, decimals) = (parts.next()?, parts.next().unwrap_or_default());
    if whole.is_empty() || format!("{whole}{decimals}").contains(|c: char| !c.is_ascii_digit()) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let nanos = format!("{decimals:0<9.9}");
    if whole.len() > 11 {
        return None;
    }
    format!("{whole}{nanos}").parse().ok()
}

fn holds(text: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(time::parse_seconds(text), naive(text));
    let _any = Form::detect(text);
    for (_, form) in Form::NAMES {
        let read = form.read(text);
        if form.is_header(text) && form == Form::Csv {
            prop_assert!(read.is_err());
        }
        match read {
            Ok(line) => {
                prop_assert!(
                    !line.path.is_empty() && !line.path.contains(['?', '#']) || form == Form::Csv
                );
                prop_assert_eq!(line.key.is_some(), form == Form::Csv);
                prop_assert_eq!(line.recorded.is_none(), form == Form::Csv);
                let client = line.recorded.and_then(|recorded| recorded.client);
                prop_assert_eq!(client, client.map(|client| client.to_canonical()));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
    Ok(())
}

#[test]
fn the_corpus_holds() {
    replay_text("traces", holds);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_line_is_read_or_refused(line in text("traces")) {
        holds(&line)?;
    }

    #[test]
    fn seconds_are_read_to_the_nanosecond(line in "0{0,20}[0-9]{0,12}\\.?[0-9]{0,12}") {
        holds(&line)?;
    }

    /// Any key can be read from CSV unchanged if it is quoted.
    #[test]
    fn a_quoted_key_is_read_as_it_is(nanos: u64, key in text("traces"), path in text("paths"), quoted: bool) {
        let time = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
        let path = format!("/{path}");
        let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let line = format!("{time}, {} ,{}", quote(&key), quote(&path));
        let read = Form::Csv.read(&line).unwrap();
        prop_assert_eq!(read.time.as_nanos(), nanos);
        prop_assert_eq!(read.key.as_deref(), Some(key.as_bytes()));
        prop_assert_eq!(&*read.path, &path);
        let plain = !key.contains([',', '"']) && !path.contains([',', '"']);
        if plain && !quoted {
            let line = format!("{time},{key},{path}");
            let read = Form::Csv.read(&line).unwrap();
            prop_assert_eq!(read.key.as_deref(), Some(key.trim().as_bytes()));
            prop_assert_eq!(&*read.path, path.trim());
        }
    }
}

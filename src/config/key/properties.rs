//! Property tests of key templates.
//!
//! The crate `testing` has the inputs: `replay` and `replay_text` check each file of a folder in
//! `tests/corpus`, and `bytes` and `text` make variations of these files.

use proptest::prelude::*;
use testing::{config, replay_text, text};

use super::*;

/// Reference parser: returns the template with each variable as `<name>`; `None` if it is invalid.
fn parse_naively(text: &str) -> Option<String> {
    let mut letters = text.chars().peekable();
    let mut out = String::new();
    while let Some(letter) = letters.next() {
        if letter != '$' {
            out.push(letter);
            continue;
        }
        let mut name = String::new();
        if letters.next_if_eq(&'{').is_some() {
            loop {
                match letters.next()? {
                    '}' => break,
                    letter => name.push(letter),
                }
            }
        } else {
            while let Some(letter) =
                letters.next_if(|c| matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_'))
            {
                name.push(letter);
            }
        }
        out.extend(["<", &variable(&name)?, ">"]);
    }
    (!text.is_empty()).then_some(out)
}

/// Reference parser of a variable: returns its name as `Display` writes it; `None` if it is
/// unknown.
fn variable(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    if FIXED.iter().any(|(fixed, _)| *fixed == lower) {
        return Some(lower);
    }
    let (kind, own) = name.split_once('_')?;
    if own.is_empty() || own.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        return None;
    }
    match kind.to_ascii_lowercase().as_str() {
        "http" => Some(lower),
        kind => {
            let prefix = format!("{kind}_");
            if kind == "jwt" {
                let (name, claim) = own.split_once('_')?;
                return (!name.is_empty() && !claim.is_empty()).then(|| prefix + own);
            }
            let is_known = ["cookie", "arg", "path"].contains(&kind);
            is_known.then(|| prefix + own)
        }
    }
}

/// Checks that a text is read as by the reference parser, and that the template reads back.
fn check_template(text: &str) -> Result<(), TestCaseError> {
    let read = text.parse::<KeyTemplate>();
    let filled = read.as_ref().ok().map(|key| {
        let filled =
            key.fill(|variable, key| key.extend_from_slice(format!("<{variable}>").as_bytes()));
        String::from_utf8(filled).unwrap()
    });
    prop_assert_eq!(filled, parse_naively(text));
    let key = match read {
        Ok(key) => key,
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            return Ok(());
        }
    };
    prop_assert!(!key.parts().is_empty());
    for pair in key.parts().windows(2) {
        prop_assert!(!matches!(pair, [Part::Text(_), Part::Text(_)]));
    }
    prop_assert!(!key.parts().contains(&Part::Text(String::new())));
    let shown = key.to_string();
    prop_assert_eq!(shown.parse::<KeyTemplate>(), Ok(key), "{}", shown);
    Ok(())
}

#[test]
fn each_text_of_the_corpus_is_read_as_a_naive_reader_reads_it() {
    replay_text("templates", check_template);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_text_is_read_as_a_naive_reader_reads_it(text in text("templates")) {
        check_template(&text)?;
    }

    #[test]
    fn variables_and_text_in_any_order_are_read_as_a_naive_reader_reads_them(
        pieces in prop::collection::vec(
            prop_oneof![
                Just("$host"), Just("${Uri}"), Just("$http_a-b"), Just("${cookie_A_b}"), Just("$arg_x"), Just("$path_1"), Just("_"),
                Just("9"), Just("$"), Just("{"), Just("}"), Just("é"), Just("-"), Just("s"),
            ],
            0..8,
        ),
    ) {
        check_template(&pieces.concat())?;
    }
}

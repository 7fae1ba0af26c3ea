//! Property tests of cookies with any bytes.

use proptest::prelude::*;
use testing::config;

use super::*;

fn holds(line: &[u8]) -> Result<(), TestCaseError> {
    let read = |line: &[u8]| first([line].into_iter(), "session").map(Cow::into_owned);
    let found = read(line);
    // The name is found in the undecoded line, too.
    let first = line.split(|byte| *byte == b';').find(|piece| {
        let name = piece.split(|byte| *byte == b'=').next().unwrap_or_default();
        name.len() < piece.len() && is_same_variable("session", name)
    });
    prop_assert_eq!(found.is_some(), first.is_some());
    // The first cookie counts; later ones are ignored.
    let longer = [line, b"; session=last"].concat();
    let expected = found.clone().unwrap_or(b"last".to_vec());
    prop_assert_eq!(read(&longer), Some(expected.clone()));
    let first = [b"session = first;", line].concat();
    prop_assert_eq!(read(&first), Some(b"first".to_vec()));
    // The origin gets exactly one cookie of the name, with the same value.
    let names = ["session".to_owned()];
    let passing = |lines: &[&[u8]]| -> Vec<Vec<u8>> {
        let mut repeated = Repeated::new([&names, &[]]);
        let line = |line: &&[u8]| {
            let parts = repeated.without_repeated(line);
            parts.map_or(line.to_vec(), |parts| parts.concat())
        };
        lines.iter().map(line).collect()
    };
    for lines in [passing(&[&longer]), passing(&[line, b"session=last"])] {
        let line = lines.join(&b';');
        let pieces = line.split(|byte| *byte == b';');
        let count = pieces
            .filter(|piece| value_if_named(piece, "session").is_some())
            .count();
        prop_assert_eq!(count, 1);
        prop_assert_eq!(read(&line), Some(expected.clone()));
    }
    Ok(())
}

testing::property_of_bytes!(of_any_cookies_one_is_read_and_passed_on, "cookies", holds);

proptest! {
    #![proptest_config(config())]

    #[test]
    fn of_nearly_matching_cookies_one_is_read_and_passed_on(line in "((session|SESSION|x|sess)?[ =;,\"\\\\]{0,3}){0,6}") {
        holds(line.as_bytes())?;
    }
}

//! Line 22: how many fields a request may have.

use super::bed::{Bed, GET, LAST, each, get_with};

/// The maximum, including Host.
const MOST: usize = 256;

/// A GET with this many fields in total.
fn get_of(fields: usize) -> String {
    let lines = (1..fields).map(|nth| format!("X-{nth}: {nth}\r\n"));
    get_with(&lines.collect::<Vec<_>>().concat())
}

#[test]
fn line_22_256_fields_pass_in_order() {
    // haproxy takes a hundred.
    for bed in each([
        || Bed::nginx("large_client_header_buffers 8 32k;"),
        || Bed::drip("", ""),
    ]) {
        for count in [97, 150, MOST - 1, MOST] {
            let seen = bed.seen(get_of(count));
            let ours = seen.fields.iter().filter(|(name, _)| {
                name.strip_prefix("x-")
                    .is_some_and(|nth| nth.parse::<usize>().is_ok())
            });
            let values: Vec<usize> = ours.map(|(_, value)| value.parse().expect("one")).collect();
            let sent: Vec<usize> = (1..count).collect();
            assert_eq!(values, sent, "{}", bed.who);
        }
    }
}

#[test]
fn line_22_256_lines_of_one_name_pass() {
    let bed = Bed::drip("", "");
    let seen = bed.seen(get_with(&"X-A: 1\r\n".repeat(MOST - 1)));
    assert_eq!(seen.all("x-a").len(), MOST - 1);
}

#[test]
fn line_22_one_field_more_is_a_431() {
    let bed = Bed::drip("", "");
    for count in [MOST + 1, 2 * MOST, 1000] {
        assert_eq!(bed.refusal(get_of(count)), 431, "{count}");
    }
    let client = bed.ask_byte_by_byte(get_of(MOST + 1));
    assert_eq!(bed.refusal_to(client), 431, "byte by byte");
    // On every request of a connection.
    let mut passed = bed.pass(GET, LAST);
    assert_eq!(passed.client.answer().status(), 200);
    passed.client.send(get_of(MOST + 1));
    assert_eq!(bed.refusal_to(passed.client), 431);
}

//! Property tests of `Host` with any bytes.

use http::HeaderValue;
use proptest::prelude::*;
use testing::{bytes, config};

use super::*;
use crate::http::message::fields::without_blanks;
use crate::http::message::test_heads::request;

/// Returns the host of a request with this field, and whether the gateway accepts it.
///
/// Returns `None` if the bytes are not a valid field value.
fn named(field: &[u8]) -> Option<(String, bool)> {
    HeaderValue::from_bytes(field).ok()?;
    let head = request(&[("Host", field)]);
    let server = crate::test_settings::with("").server;
    let context = ConnectionContext::new(Peer::default(), None);
    let info = RequestInfo::new(&head, &context, &server);
    let fits = info.check_fitness().is_ok();
    Some((info.host.into_owned(), fits))
}

fn holds(field: &[u8]) -> Result<(), TestCaseError> {
    // Blanks around the value are not a part of it.
    let field = without_blanks(field);
    let Some((host, fits)) = named(field) else {
        return Ok(());
    };
    prop_assert!(
        !host.bytes().any(|byte| byte.is_ascii_uppercase()),
        "{}",
        host
    );
    let strange = |c: char| c.is_ascii_control() || " \t/?#@,".contains(c);
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if fits {
        prop_assert!(!host.contains(strange), "{}", host);
        prop_assert!(bracketed || !host.contains([':', '[', ']']), "{}", host);
        prop_assert!(!host.ends_with('.') && !host.contains(".."), "{}", host);
    }
    // A host written in another way is the same host.
    let found = named(&field.to_ascii_uppercase());
    prop_assert_eq!(found, Some((host.clone(), fits)));
    let has_port = !(bracketed && field.ends_with(b"]")) && field.contains(&b':');
    if fits && !field.ends_with(b".") && !has_port {
        let mut ends = vec![&b":8080"[..], b":"];
        if !bracketed && !field.is_empty() {
            ends.extend([&b"."[..], b".:80"]);
        }
        for end in ends {
            let found = named(&[field, end].concat());
            prop_assert_eq!(found, Some((host.clone(), true)));
        }
    }
    Ok(())
}

testing::property_of_bytes!(any_host_is_the_same_however_it_is_written, "hosts", holds);

proptest! {
    #![proptest_config(config())]

    #[test]
    fn anything_like_a_host_is_the_same_however_it_is_written(field in "\\[?[a-bA-B0-1.:\\]]{0,8}(:[0-9]{0,5})?") {
        holds(field.as_bytes())?;
    }

    #[test]
    fn hosts_with_other_bytes_than_text_stay_distinct(one in bytes("hosts"), other in bytes("hosts")) {
        if let (Some((one_host, true)), Some((other_host, true))) = (named(&one), named(&other))
            && one_host == other_host
        {
            let bare = |field: &[u8]| {
                let lower = without_blanks(field).to_ascii_lowercase();
                let port = lower.iter().rposition(|byte| *byte == b':').filter(|at| !lower[*at..].contains(&b']'));
                let name = &lower[..port.unwrap_or(lower.len())];
                name.strip_suffix(b".").unwrap_or(name).to_vec()
            };
            prop_assert_eq!(bare(&one), bare(&other));
        }
    }
}

//! The id of a request, which links the logs of all programs on its way.

use std::hash::{BuildHasher, Hasher, RandomState};

use limit::Moment;

use crate::http::message::{RequestHead, only};
use crate::time::clock;

/// Maximum length of an id that a peer sends, in bytes.
const MAX_SIZE: usize = 128;

/// The id of a request.
pub(super) enum RequestId<'r> {
    /// Sent by a trusted peer.
    Sent(&'r str),
    /// Generated here: a UUID.
    Generated([u8; 36]),
}

impl<'r> RequestId<'r> {
    /// Returns the id in the field `name`, or a new one.
    ///
    /// `head`: head of a request from a trusted peer. An id has 1 to 128 visible ASCII characters.
    /// Its field must occur once: programs differ in which one of several they read.
    pub(super) fn find_or_new(name: &str, head: Option<&'r RequestHead>, began: Moment) -> Self {
        if let Some(id) = head.and_then(|head| only(head.fields().named(name)))
            && (1..=MAX_SIZE).contains(&id.len())
            && id.iter().all(u8::is_ascii_graphic)
            && let Ok(id) = str::from_utf8(id)
        {
            return Self::Sent(id);
        }
        Self::Generated(uuid(clock::to_wall(began), random()))
    }

    /// Returns the id as text.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Sent(id) => id,
            Self::Generated(id) => str::from_utf8(id).unwrap_or_default(),
        }
    }
}

/// Returns a random number. It is not fit for secrets.
pub(super) fn random() -> u128 {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    half() << 64 | half()
}

/// Version of the UUIDs.
const VERSION: u128 = 7;

/// Variant of RFC 9562.
const VARIANT: u128 = 0b10;

/// Builds a UUID of version 7 (RFC 9562, section 5.7). These ids sort by time, as databases prefer.
fn uuid(created: Moment, random: u128) -> [u8; 36] {
    let millis = u128::from(created.as_nanos() / 1_000_000);
    let random_high = (random >> 64) & 0xfff;
    let random_low = random & (u128::MAX >> 66);
    // 48 bits of time, 4 of the version, 12 random ones, 2 of the variant, 62 random ones.
    let value = millis << 80 | VERSION << 76 | random_high << 64 | VARIANT << 62 | random_low;
    let mut text = [b'-'; 36];
    // The other four characters are hyphens.
    let digit_indices = (0..36).filter(|index| ![8, 13, 18, 23].contains(index));
    for (nth, index) in digit_indices.enumerate() {
        // The highest four bits come first.
        let digit = (value >> (124 - 4 * nth)) & 0xf;
        text[index] = b"0123456789abcdef"[digit as usize];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::message::test_heads::request;

    #[test]
    fn a_uuid_has_its_time_its_version_and_its_variant() {
        // The example of RFC 9562, appendix A.6.
        let created = Moment::from_nanos(0x017f_22e2_79b0 * 1_000_000 + 999_999);
        let random = 0xcc3_u128 << 64 | 0x18c4_dc0c_0c07_398f;
        for (random, expected) in [
            (random, b"017f22e2-79b0-7cc3-98c4-dc0c0c07398f"),
            (u128::MAX, b"017f22e2-79b0-7fff-bfff-ffffffffffff"),
        ] {
            assert_eq!(&uuid(created, random), expected);
        }
    }

    #[test]
    fn one_valid_id_is_taken_and_others_are_replaced() {
        let id = |fields: &[(&str, &[u8])]| {
            let head = request(fields);
            let id = RequestId::find_or_new("X-Request-Id", Some(&head), Moment::default());
            matches!(id, RequestId::Sent(_)).then(|| id.as_str().to_owned())
        };
        let long = [b'a'; 129];
        let name = "x-request-id";
        assert_eq!(id(&[(name, b"a\"<~!")]).as_deref(), Some("a\"<~!"));
        assert_eq!(id(&[(name, &long[..128])]).map(|it| it.len()), Some(128));
        for value in [&b""[..], &long, b"a b", b"a\x80"] {
            assert_eq!(id(&[(name, value)]), None, "{value:?}");
        }
        assert_eq!(id(&[]), None);
        assert_eq!(id(&[(name, b"a"), ("X-Request-ID", b"a")]), None);
        assert_eq!(id(&[("x_request_id", b"a")]), None);
        let generate = || RequestId::find_or_new("a", None, Moment::default());
        assert_ne!(generate().as_str(), generate().as_str());
        assert_eq!(generate().as_str().len(), 36);
    }
}

//! Where drip reads what hyper refuses or reads otherwise, and may.

use http::Uri;

use crate::oracle::reading::Reading;

/// Why hyper need not see a message that drip reads.
pub fn of_message(ours: &Reading) -> Option<&'static str> {
    let lengths = ours
        .head
        .fields
        .iter()
        .filter(|(name, _)| name == "content-length");
    let mut lengths = lengths.filter_map(|(_, value)| str::from_utf8(value).ok()?.parse().ok());
    if let Some(target) = &ours.target {
        // hyper takes a target for text, and some bytes in none of them: not what Prometheus and
        // others send. drip passes all that split no line (RFC 9112, section 3.2); an authority it
        // looks at itself before the request goes on.
        if str::from_utf8(target).is_err() || Uri::try_from(&target[..]).is_err() {
            return Some("the target is none for hyper");
        }
    }
    if lengths.any(|length: u64| length > u64::MAX - 2) {
        // It keeps the two largest numbers for itself.
        return Some("the length is a number that hyper means something else by");
    }
    None
}

/// Why hyper may keep a connection that drip closes, or the other way round.
pub fn of_end(ours: &Reading) -> Option<&'static str> {
    let options = ours
        .head
        .fields
        .iter()
        .filter(|(name, _)| name == "connection");
    let is_plain = |byte: &u8| *byte == b'\t' || (b' '..=b'~').contains(byte);
    let mut options = options.map(|(_, value)| value);
    if options.any(|value| !value.iter().all(is_plain)) {
        // hyper reads nothing of such a field, drip each option by itself.
        return Some("an option of the connection is not ASCII");
    }
    None
}

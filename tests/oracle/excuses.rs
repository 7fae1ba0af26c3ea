//! Cases where drip may read what hyper refuses, or may read it differently.

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
        // hyper treats a target as text, and rejects some bytes that Prometheus and others send. drip
        // passes all bytes that do not split a line (RFC 9112, section 3.2), and checks an
        // authority itself before it forwards the request.
        if str::from_utf8(target).is_err() || Uri::try_from(&target[..]).is_err() {
            return Some("the target is none for hyper");
        }
    }
    if lengths.any(|length: u64| length > u64::MAX - 2) {
        // It reserves the two largest numbers.
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
        // hyper ignores such a field, drip reads each option.
        return Some("an option of the connection is not ASCII");
    }
    None
}

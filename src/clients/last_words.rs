use hyper::StatusCode;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

use super::framing::Refusal;
use crate::clock;

/// A whole answer, after which the connection closes.
pub(super) fn last_words(refusal: Refusal) -> Vec<u8> {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let reason = status.canonical_reason().unwrap_or_default();
    let seconds = i64::try_from(clock::now().as_nanos() / 1_000_000_000).unwrap_or_default();
    let now = Timestamp::from_second(seconds).unwrap_or_default();
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&now);
    let date = date
        .map(|date| format!("date: {date}\r\n"))
        .unwrap_or_default();
    format!(
        "HTTP/1.1 {code} {reason}\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n\
         content-length: {length}\r\n{date}\r\n{reason}\n",
        code = status.as_str(),
        length = reason.len() + 1,
    )
    .into_bytes()
}

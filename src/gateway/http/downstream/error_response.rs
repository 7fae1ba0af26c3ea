use http::StatusCode;
use limit::Moment;

use crate::http::message::BadRequest;
use crate::http::message::date::with_date;

/// Builds the complete response to a request that cannot be read.
///
/// The connection closes after it.
pub(super) fn error_response(refusal: BadRequest, now: Moment) -> Vec<u8> {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let reason = status.canonical_reason().unwrap_or_default();
    let body = format!("{reason}: {refusal}\n");
    let date = with_date(now, |date| String::from_utf8_lossy(date).into_owned());
    format!(
        "HTTP/1.1 {code} {reason}\r\nConnection: close\r\nDate: {date}\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{body}",
        code = status.as_str(),
        length = body.len(),
    )
    .into_bytes()
}

//! gRPC: detects calls, parses their deadlines, and maps HTTP status to `grpc-status`.
//!
//! A *call* is a request of gRPC over HTTP/2. See gRPC's documents "gRPC over HTTP2", "Statuscodes
//! and their use in gRPC" and "HTTP to gRPC Status Code Mapping".

use std::time::Duration;

pub(super) use crate::http::message::request::GRPC as CONTENT_TYPE;
use crate::http::message::{FieldName, RequestHead, decimal, strip_start};

/// Status of a call, in `grpc-status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum GrpcStatus {
    Unknown = 2,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl GrpcStatus {
    /// Maps an HTTP status to a gRPC status.
    ///
    /// The mapping is gRPC's own table for responses without `grpc-status`, with more rows. The
    /// table has no 405, 408, 413 and 431, which would be `Unknown`. It maps 429 to `Unavailable`:
    /// here 413 and 429 report an exhausted limit.
    pub(super) fn of_http(status: u16) -> Self {
        match status {
            400 | 431 => Self::Internal,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 | 405 => Self::Unimplemented,
            413 | 429 => Self::ResourceExhausted,
            408 | 502..=504 => Self::Unavailable,
            _ => Self::Unknown,
        }
    }
}

/// Returns whether a response field belongs to the gRPC protocol, so a route must not set it.
pub(super) fn is_of_protocol(name: &[u8]) -> bool {
    strip_start(name, b"grpc-").is_some() || name.eq_ignore_ascii_case(b"content-type")
}

/// Returns the time that a client gives its call (`grpc-timeout`), if it sent one.
pub(super) fn timeout(head: &RequestHead) -> Option<Duration> {
    let value = head.fields().first(FieldName::GrpcTimeout)?;
    let (unit, digits) = value.split_last()?;
    let digits = decimal(digits).filter(|digits| digits.len() <= 8)?;
    let count: u64 = digits.parse().ok()?;
    let timeout = match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    };
    head.is_grpc().then_some(timeout)
}

/// Maximum length of a message, in characters: most clients accept 8 KB of fields.
///
/// Printable ASCII stays far below that. An escaped character takes 3 bytes if it is ASCII, and up
/// to 12 bytes else.
const MAX_MESSAGE: usize = 1000;

/// Encodes a text as `grpc-message`: one line, with all bytes escaped except printable ASCII.
///
/// Also escapes `%`. Cuts the text to the maximum length, and removes white space at its end.
pub(super) fn encode(text: &str) -> String {
    use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
    const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');
    let end = text.char_indices().nth(MAX_MESSAGE);
    let text = end.map_or(text, |(end, _)| &text[..end]);
    utf8_percent_encode(text.trim_end(), ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a request over HTTP/2 with this content type and this timeout.
    fn call(content_type: &str, timeout: &str) -> RequestHead {
        let request = http::Request::post("http://a/pkg.Service/Method");
        let request = request.header("content-type", content_type);
        let request = request.header("grpc-timeout", timeout);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        RequestHead::of_http2(&parts, true).unwrap()
    }

    #[test]
    fn a_call_is_known_by_its_content_type() {
        let kinds = "application/grpc|application/grpc+proto|Application/gRPC;x=y";
        let others = "application/grpc-web+proto|application/grpcx|application/json|";
        for (kinds, expected) in [(kinds, true), (others, false)] {
            for kind in kinds.split('|') {
                let head = call(kind, "1S");
                assert_eq!(head.is_grpc(), expected, "{kind}");
                assert_eq!(timeout(&head).is_some(), expected, "{kind}");
            }
        }
        let untyped = http::Request::post("http://a/").header("grpc-timeout", "1S");
        let (parts, ()) = untyped.body(()).unwrap().into_parts();
        let head = RequestHead::of_http2(&parts, true).unwrap();
        assert!(!head.is_grpc() && timeout(&head).is_none());
    }

    #[test]
    fn a_deadline_has_up_to_eight_digits_and_a_unit() {
        // Expected values are in nanoseconds.
        let cases = [
            ("1H", Some(3_600_000_000_000)),
            ("2M", Some(120_000_000_000)),
            ("99999999S", Some(99_999_999_000_000_000)),
            ("250m", Some(250_000_000)),
            ("7u", Some(7000)),
            ("0n", Some(0)),
        ];
        let wrong = ["100000000S", "S", "1", "-1S", "1s", ""].map(|value| (value, None));
        for (value, expected) in cases.into_iter().chain(wrong) {
            let found = timeout(&call("application/grpc", value));
            assert_eq!(found, expected.map(Duration::from_nanos), "{value}");
        }
    }

    #[test]
    fn a_message_is_one_line_of_visible_characters() {
        assert_eq!(encode("Too many requests\n"), "Too many requests");
        assert_eq!(encode("100 %\tdé"), "100 %25%09d%C3%A9");
        assert_eq!(encode(&"é".repeat(1001)), "%C3%A9".repeat(1000));
    }
}

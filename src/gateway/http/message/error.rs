//! Errors of parsing messages. In the texts about a response, "it" is the response.

use thiserror::Error;

/// Reason why a request is rejected as invalid. The message says how to correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadRequest {
    /// The first line or a field is malformed.
    #[error("The request is malformed: each line ends in CR LF, and a field is `name: value`")]
    Malformed,
    /// The method has a lower-case letter.
    #[error("A method must be in capital letters, such as POST")]
    Method,
    /// The target contains a space, a control character or a fragment.
    #[error("The target has a space, a control character or a fragment: escape it as %XX")]
    TargetByte,
    /// The target is neither a path nor an absolute URL, nor `*`.
    #[error("The target must be a path, an absolute URL or, for OPTIONS, *")]
    Target,
    /// The length of the body is ambiguous.
    #[error("The length of the body is ambiguous: send one Content-Length, or chunks")]
    Length,
    /// The request did not arrive in time.
    #[error("The request took too long")]
    TooSlow,
    /// The head is too large.
    #[error("The head of the request is too large")]
    HeadTooLarge,
}

impl BadRequest {
    /// Returns the status of the response to the client.
    pub fn status(self) -> u16 {
        match self {
            Self::TooSlow => 408,
            Self::HeadTooLarge => 431,
            _ => 400,
        }
    }
}

/// Reason why an origin's response is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidResponse {
    /// The response is not HTTP/1.
    #[error("it is not HTTP/1")]
    Malformed,
    /// The head is longer than `max_header_size`, or has too many fields.
    #[error("its head is too large")]
    HeadTooLarge,
    /// The body has a transfer coding other than `chunked`.
    ///
    /// The gateway accepts no other coding (RFC 9112, section 6.1).
    #[error("its body has a transfer coding other than chunked")]
    Coding,
    /// The response has several different lengths (RFC 9110, section 8.6).
    #[error("it has several lengths")]
    Length,
    /// The response switches to a protocol that was not requested, or opens a WebSocket wrongly.
    ///
    /// A client over HTTP/2 takes any 2xx for the start of its WebSocket.
    #[error(
        "it switches to a protocol that the request did not offer, or does not switch as requested"
    )]
    Protocol,
}

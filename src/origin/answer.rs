//! What must be right about an origin's answer before it goes on.

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::{Response, StatusCode};
use hyper::body::{Body, Incoming};
use thiserror::Error;

/// What is wrong with an answer that hyper takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unsound {
    /// Its body is coded in a way that nobody asked for, and that ends here (RFC 9112, section 6.1).
    #[error("its body is coded otherwise than in chunks")]
    Coding,
    /// It tells several lengths (RFC 9110, section 8.6).
    #[error("it tells several lengths")]
    Length,
    /// It changes to a protocol that was not asked for.
    #[error("it changes to a protocol that was not asked for")]
    Protocol,
}

/// Looks at an answer to a request that asked for the protocols `wanted`, and leaves one length in it at most: none
/// where chunks tell it (RFC 9112, section 6.3), and of several that are the same one.
pub(super) fn check(
    answer: &mut Response<Incoming>,
    wanted: Option<&HeaderValue>,
) -> Result<(), Unsound> {
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        let offered = wanted.map(tokens).unwrap_or_default();
        let chosen = answer
            .headers()
            .get(UPGRADE)
            .map(tokens)
            .unwrap_or_default();
        let asked_for = |protocol: &String| offered.contains(protocol);
        if chosen.is_empty() || !chosen.iter().all(asked_for) {
            return Err(Unsound::Protocol);
        }
    }
    let mut codings = answer.headers().get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") || codings.next().is_some() {
            return Err(Unsound::Coding);
        }
        answer.headers_mut().remove(CONTENT_LENGTH);
    } else if let Some((length, several)) = one_length(answer.headers())? {
        let told = answer.body().size_hint().exact();
        if !answer.body().is_end_stream() && told != Some(length) {
            return Err(Unsound::Length);
        }
        if several {
            answer.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
    }
    Ok(())
}

/// The length that a message tells, and whether it tells it several times.
fn one_length(headers: &HeaderMap) -> Result<Option<(u64, bool)>, Unsound> {
    let mut length = None;
    for line in headers.get_all(CONTENT_LENGTH) {
        for told in line.as_bytes().split(|byte| *byte == b',') {
            let told = str::from_utf8(told.trim_ascii()).map_err(|_| Unsound::Length)?;
            let told: u64 = told.parse().map_err(|_| Unsound::Length)?;
            length = match length {
                None => Some((told, false)),
                Some((before, _)) if before == told => Some((told, true)),
                Some(_) => return Err(Unsound::Length),
            };
        }
    }
    Ok(length)
}

fn tokens(line: &HeaderValue) -> Vec<String> {
    let line = String::from_utf8_lossy(line.as_bytes()).to_ascii_lowercase();
    line.split(',')
        .map(|token| token.trim().to_owned())
        .collect()
}

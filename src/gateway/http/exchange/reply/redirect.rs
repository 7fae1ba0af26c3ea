//! Redirect to HTTPS, on a listener that serves only the checks of a certificate authority.

use std::fmt::Write as _;
use std::num::NonZeroU16;

use percent_encoding::{CONTROLS, percent_encode};

use super::super::request_info::{RequestInfo, UnfitRequest};
use super::{MoreFields, Reply};

impl Reply<'_> {
    /// Returns the redirect of a request to the HTTPS port `port`.
    ///
    /// The status is 308 and not 301: the method and the body stay the same (RFC 9110, section
    /// 15.4.9).
    pub(in crate::http::exchange) fn redirect(info: &RequestInfo<'_>, port: NonZeroU16) -> Self {
        if info.host.is_empty() {
            return UnfitRequest::Host.into();
        }
        let mut url = format!("https://{}", info.host);
        if port.get() != 443 {
            // Writing to a string does not fail.
            let _ = write!(url, ":{port}");
        }
        let target = info.head.path_and_query();
        if !target.starts_with(b"/") {
            url.push('/');
        }
        // `*` stands for the whole server. The parser accepts only visible ASCII characters and
        // bytes above ASCII, which are percent-encoded here.
        if target != b"*" {
            url.extend(percent_encode(target, CONTROLS));
        }
        Self {
            more_fields: MoreFields::Location(url.into()),
            ..Self::of_status(308)
        }
    }
}

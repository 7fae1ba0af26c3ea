use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::http::header::HeaderValue;

use super::client::Client;
use crate::access::escape;
use crate::config::Server;
use crate::target;

/// A request as it came, with what is read off it once: who sent it and what for.
pub(super) struct Arrival<'a> {
    pub(super) request: &'a HttpRequest,
    pub(super) client: Client,
    /// Without a port, in lower case; empty where the request names none.
    pub(super) host: String,
    /// As it is compared: decoded and resolved.
    pub(super) path: Cow<'a, [u8]>,
}

impl<'a> Arrival<'a> {
    pub(super) fn new(request: &'a HttpRequest, server: &Server) -> Self {
        Self {
            request,
            client: Client::of(request, server),
            host: host(request),
            path: target::path(request.uri().path()),
        }
    }

    /// A header field's value, where it is plain text.
    pub(super) fn field(&self, name: &str) -> Option<&'a str> {
        self.request.headers().get(name)?.to_str().ok()
    }

    /// `http` or `https`, by the connection.
    pub(super) fn scheme(&self) -> &'static str {
        if self.request.app_config().secure() {
            "https"
        } else {
            "http"
        }
    }
}

/// The host that the request is for, without its port or a dot at its end, in lower case; empty where it names none.
/// Bytes that are no text are kept apart, so that nobody escapes a limit by them.
fn host(request: &HttpRequest) -> String {
    let named = match request.uri().host() {
        Some(host) => Cow::Borrowed(host),
        None => match request.headers().get("host").map(HeaderValue::as_bytes) {
            None => return String::new(),
            Some(host) => match str::from_utf8(host) {
                Ok(host) => Cow::Borrowed(host),
                Err(_) => Cow::Owned(escape(host)),
            },
        },
    };
    let port = named
        .rfind(':')
        .filter(|colon| !named[*colon..].contains(']'));
    let name = &named[..port.unwrap_or(named.len())];
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

use std::borrow::Cow;

use actix_web::HttpRequest;

use super::client::Client;
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

/// The host that the request is for, without its port, in lower case; empty where it names none.
fn host(request: &HttpRequest) -> String {
    let named = match request.uri().host() {
        Some(host) => host,
        None => request
            .headers()
            .get("host")
            .and_then(|host| host.to_str().ok())
            .unwrap_or_default(),
    };
    let port = named
        .rfind(':')
        .filter(|colon| !named[*colon..].contains(']'));
    named[..port.unwrap_or(named.len())].to_ascii_lowercase()
}

use std::net::IpAddr;

use actix_web::HttpRequest;

/// The address of whoever sent the request.
pub(super) fn address(request: &HttpRequest) -> Option<IpAddr> {
    request.peer_addr().map(|peer| peer.ip().to_canonical())
}

/// The host that the request is for, without its port, in lower case; empty where it names none.
pub(super) fn host(request: &HttpRequest) -> String {
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

use std::net::IpAddr;

use actix_web::HttpRequest;

use super::client;
use crate::actors::Key;
use crate::config::{Part, Variable, Zone};

/// The key that a zone takes of a request; `None` where it comes out empty: then the request is not limited there.
pub(super) fn take(zone: &Zone, request: &HttpRequest, host: &str) -> Option<Key> {
    let mut key = Vec::new();
    for part in zone.key.parts() {
        match part {
            Part::Text(text) => key.extend_from_slice(text.as_bytes()),
            Part::Variable(variable) => add_variable(&mut key, variable, zone, request, host),
        }
    }
    (!key.is_empty()).then(|| Key::from(key))
}

fn add_variable(
    key: &mut Vec<u8>,
    variable: &Variable,
    zone: &Zone,
    request: &HttpRequest,
    host: &str,
) {
    match variable {
        Variable::RemoteAddr => {
            if let Some(address) = client::address(request) {
                key.extend_from_slice(cut(address, zone.ipv6_prefix).to_string().as_bytes());
            }
        }
        Variable::Host => key.extend_from_slice(host.as_bytes()),
        Variable::Uri => key.extend_from_slice(request.uri().path().as_bytes()),
        Variable::RequestUri => {
            let target = request
                .uri()
                .path_and_query()
                .map_or("", |target| target.as_str());
            key.extend_from_slice(target.as_bytes());
        }
        Variable::RequestMethod => key.extend_from_slice(request.method().as_str().as_bytes()),
        Variable::Scheme => {
            key.extend_from_slice(request.uri().scheme_str().unwrap_or("http").as_bytes());
        }
        Variable::ServerPort => key.extend_from_slice(
            request
                .app_config()
                .local_addr()
                .port()
                .to_string()
                .as_bytes(),
        ),
        Variable::Header(name) => {
            // nginx joins repeated fields the same way.
            for (nth, value) in request.headers().get_all(name.as_str()).enumerate() {
                if nth > 0 {
                    key.extend_from_slice(b", ");
                }
                key.extend_from_slice(value.as_bytes());
            }
        }
        Variable::Cookie(name) => {
            let lines = request.headers().get_all("cookie");
            let mut pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
            key.extend_from_slice(
                pairs
                    .find_map(|pair| named(pair.trim_ascii_start(), name))
                    .unwrap_or_default(),
            );
        }
        Variable::Arg(name) => {
            let mut pairs = request
                .uri()
                .query()
                .unwrap_or_default()
                .as_bytes()
                .split(|byte| *byte == b'&');
            key.extend_from_slice(pairs.find_map(|pair| named(pair, name)).unwrap_or_default());
        }
    }
}

/// The value in `name=value`. Names are compared without regard to case, as nginx does.
fn named<'a>(pair: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (found, value) = pair.split_at_checked(name.len())?;
    found
        .eq_ignore_ascii_case(name.as_bytes())
        .then_some(value)?
        .strip_prefix(b"=")
}

/// `address` cut to its prefix where it is of IPv6: whoever has one address there has a whole prefix.
fn cut(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(whole) => {
            let mask = u128::MAX
                .checked_shl(128 - u32::from(prefix.min(128)))
                .unwrap_or(0);
            IpAddr::V6((whole.to_bits() & mask).into())
        }
    }
}

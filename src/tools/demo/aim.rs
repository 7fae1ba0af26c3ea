use std::net::SocketAddr;

use config::{
    HostPattern, KeyTemplate, Listen, ListenAddress, ListenService, OriginServer, Part,
    PathPattern, Route, Settings, Variable, Zone,
};
use gateway::server::reachable;
use limit::{Limit, Rate};
use thiserror::Error;

/// What the demo takes from the settings: the first route with limits, and how to request it.
#[derive(Clone, Debug)]
pub(super) struct Aim {
    /// The address that the crowd connects to. Always loopback.
    pub(super) gateway: SocketAddr,
    pub(super) admin: Option<SocketAddr>,
    /// The addresses that the sample origin listens on. At least one.
    pub(super) servers: Vec<OriginServer>,
    /// The name of the origin.
    pub(super) origin: String,
    /// The method of the crowd's requests.
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    /// The zone that sets the pace: the slowest of the route's zones.
    pub(super) zone: String,
    pub(super) rate: Rate,
    pub(super) limit: Limit,
    pub(super) dry_run: bool,
    pub(super) reject_status: u16,
}

/// Why there is nothing for the demo to show.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum AimError {
    #[error(
        "no route has limits, so there is nothing to smooth; add limits = [{{ zone = \"per_client\", burst = 20 }}] to one"
    )]
    NoLimits,
    #[error(
        "server.listen has no loopback address with a port, and the demo uses no other; add \"127.0.0.1:8080\""
    )]
    NoAddress,
    #[error(
        "the first route with limits has a regular expression for its path, and the demo needs a path to ask for; put a route with a plain path before it"
    )]
    Pattern,
    #[error(
        "the demo's clients do not speak TLS; add {{ address = \"127.0.0.1:8080\", tls = false }} to server.listen, or give it a copy of the file without [server.tls]"
    )]
    Encrypted,
}

impl Aim {
    pub(super) fn of(settings: &Settings) -> Result<Self, AimError> {
        let listen = settings.server.listen.iter();
        let callable = listen.filter_map(|listen| Some((callable(listen)?, listen.service)));
        let callable: Vec<_> = callable.collect();
        let is_plain = |(_, service): &&(_, ListenService)| *service == ListenService::Plain;
        let gateway = callable.iter().find(is_plain).map(|(address, _)| *address);
        if gateway.is_none() && !callable.is_empty() {
            return Err(AimError::Encrypted);
        }
        let limited = |route: &&Route| !route.limits.is_empty();
        let route = settings
            .routes
            .iter()
            .find(limited)
            .ok_or(AimError::NoLimits)?;
        let zone = |index: usize| &settings.zones[index];
        let slowest = route
            .limits
            .iter()
            .max_by_key(|limit| zone(limit.zone).rate.interval());
        let slowest = slowest.ok_or(AimError::NoLimits)?;
        let Zone { name, rate, .. } = zone(slowest.zone);
        let origin = route.origin().ok_or(AimError::NoLimits)?;
        let origin = &settings.origins[origin];
        let keys = route.limits.iter().map(|limit| &zone(limit.zone).key);
        let (query, mut headers) = naming(keys);
        headers.extend(route.hosts.first().map(|host| {
            let host = match host {
                HostPattern::Exact(name) => name.clone(),
                HostPattern::Below(end) => format!("demo{end}"),
            };
            ("host".to_owned(), host)
        }));
        let path = match &route.path {
            PathPattern::Prefix(path) | PathPattern::Exact(path) => path,
            PathPattern::Regex(_) => return Err(AimError::Pattern),
        };
        Ok(Self {
            gateway: gateway.ok_or(AimError::NoAddress)?,
            admin: settings.server.admin,
            servers: origin.servers.clone(),
            origin: origin.name.clone(),
            method: route
                .methods
                .first()
                .map_or("GET", String::as_str)
                .to_owned(),
            target: format!("{path}{query}"),
            headers,
            zone: name.clone(),
            rate: *rate,
            limit: slowest.limit,
            dry_run: route.dry_run,
            reject_status: route.reject_status,
        })
    }
}

/// The loopback address at which clients on this machine reach `listen`, if there is one.
fn callable(listen: &Listen) -> Option<SocketAddr> {
    let ListenAddress::Tcp(address) = &listen.address else {
        return None;
    };
    let address = reachable(*address);
    (address.ip().is_loopback() && address.port() != 0).then_some(address)
}

/// The query and fields that a request needs so that these keys are not empty.
///
/// An empty key would leave the request unlimited.
fn naming<'a>(keys: impl Iterator<Item = &'a KeyTemplate>) -> (String, Vec<(String, String)>) {
    let (mut query, mut headers) = (String::new(), Vec::new());
    for part in keys.flat_map(KeyTemplate::parts) {
        match part {
            Part::Variable(Variable::Header(name)) if name != "host" => {
                headers.push((name.clone(), "demo".to_owned()));
            }
            Part::Variable(Variable::Cookie(name)) => {
                headers.push(("cookie".to_owned(), format!("{name}=demo")));
            }
            Part::Variable(Variable::Arg(name)) => {
                query.push(if query.is_empty() { '?' } else { '&' });
                query.push_str(name);
                query.push_str("=demo");
            }
            Part::Text(_) | Part::Variable(_) => {}
        }
    }
    (query, headers)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use config;

    fn aim(server: &str, key: &str, route: &str) -> Result<Aim, AimError> {
        let text = format!(
            "[server]\n{server}\n[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n\
             [zones.slow]\nkey = {key:?}\nrate = \"1r/s\"\n[zones.fast]\nkey = \"all\"\nrate = \"100r/s\"\n\
             [[routes]]\npath = \"/free\"\norigin = \"app\"\n\
             [[routes]]\norigin = \"app\"\n{route}\n"
        );
        Aim::of(&config::parse(&text, Path::new("gateway.toml"), false).unwrap())
    }

    #[test]
    fn the_first_route_with_limits_and_its_slowest_zone() {
        let route = "path = \"= /a\"\nhost = \"b.example\"\nmethods = [\"POST\"]\n\
                     limits = [{ zone = \"fast\" }, { zone = \"slow\", burst = 3 }]";
        let aim = aim(
            "listen = [\"unix:drip.sock\", \"0.0.0.0:81\"]",
            "$remote_addr",
            route,
        );
        let aim = aim.unwrap();
        assert_eq!(aim.gateway, "127.0.0.1:81".parse().unwrap());
        assert_eq!((aim.method.as_str(), aim.target.as_str()), ("POST", "/a"));
        assert_eq!((aim.zone.as_str(), aim.limit.burst), ("slow", 3));
        assert_eq!(aim.headers, [("host".to_owned(), "b.example".to_owned())]);
    }

    #[test]
    fn no_key_comes_out_empty() {
        let key = "$http_x_api_key$cookie_session$arg_a$arg_b$host";
        let aim = aim("", key, "path = \"/\"\nlimits = [{ zone = \"slow\" }]").unwrap();
        assert_eq!(aim.target, "/?a=demo&b=demo");
        let headers = [("x-api-key", "demo"), ("cookie", "session=demo")];
        assert_eq!(
            aim.headers,
            headers.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn nothing_to_show() {
        assert_eq!(
            aim("", "a", "path = \"/\"").unwrap_err(),
            AimError::NoLimits
        );
        for listen in ["10.0.0.1:80", "127.0.0.1:0", "unix:drip.sock"] {
            let server = format!("listen = [{listen:?}]");
            let aim = aim(&server, "a", "path = \"/\"\nlimits = [{ zone = \"slow\" }]");
            assert_eq!(aim.unwrap_err(), AimError::NoAddress, "{listen}");
        }
    }
}

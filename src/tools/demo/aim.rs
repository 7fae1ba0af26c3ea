use std::net::SocketAddr;

use config::{
    Listen, ListenAddress, ListenService, OriginServer, Part, PathPattern, Route, RouteLimit,
    Settings, Variable, Zone,
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
    /// The path of the crowd's requests.
    pub(super) path: String,
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
        "no route fits the demo: it needs one with a plain path, for GET and for any host, with limits by $remote_addr; add limits = [{{ zone = \"per_client\", burst = 20 }}] to one"
    )]
    NoLimits,
    #[error(
        "server.listen has no loopback address with a port, and the demo uses no other; add \"127.0.0.1:8080\""
    )]
    NoAddress,
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
        let mut routes = settings.routes.iter();
        let found = routes.find_map(|route| Some((route, path(route, settings)?)));
        let (route, path) = found.ok_or(AimError::NoLimits)?;
        let zone = |index: usize| &settings.zones[index];
        let slowest = route
            .limits
            .iter()
            .max_by_key(|limit| zone(limit.zone).rate.interval());
        let slowest = slowest.ok_or(AimError::NoLimits)?;
        let Zone { name, rate, .. } = zone(slowest.zone);
        let origin = route.origin().ok_or(AimError::NoLimits)?;
        let origin = &settings.origins[origin];
        Ok(Self {
            gateway: gateway.ok_or(AimError::NoAddress)?,
            admin: settings.server.admin,
            servers: origin.servers.clone(),
            origin: origin.name.clone(),
            path: path.to_owned(),
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

/// The path to ask for, if a plain `GET` comes to this route and its limits.
fn path<'a>(route: &'a Route, settings: &Settings) -> Option<&'a str> {
    let takes_get = route.methods.is_empty() || route.methods.iter().any(|it| it == "GET");
    // With an empty key a request would be unlimited.
    let has_key = |limit: &RouteLimit| {
        let mut parts = settings.zones[limit.zone].key.parts().iter();
        parts.any(|part| matches!(part, Part::Text(_) | Part::Variable(Variable::RemoteAddr)))
    };
    let is_limited = !route.limits.is_empty() && route.limits.iter().all(has_key);
    let (PathPattern::Prefix(path) | PathPattern::Exact(path)) = &route.path else {
        return None;
    };
    (takes_get && is_limited && route.hosts.is_empty()).then_some(path)
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
        let route = "path = \"= /a\"\n\
                     limits = [{ zone = \"fast\" }, { zone = \"slow\", burst = 3 }]";
        let aim = aim(
            "listen = [\"unix:drip.sock\", \"0.0.0.0:81\"]",
            "$remote_addr",
            route,
        );
        let aim = aim.unwrap();
        assert_eq!(aim.gateway, "127.0.0.1:81".parse().unwrap());
        assert_eq!((&*aim.path, &*aim.zone, aim.limit.burst), ("/a", "slow", 3));
    }

    #[test]
    fn nothing_to_show() {
        let limits = "limits = [{ zone = \"slow\" }]";
        for (key, route) in [
            ("a", "path = \"/\"".to_owned()),
            ("$http_x_key", format!("path = \"/\"\n{limits}")),
            ("a", format!("path = \"regex:^/a\"\n{limits}")),
            ("a", format!("path = \"/\"\nhost = \"a.example\"\n{limits}")),
            ("a", format!("path = \"/\"\nmethods = [\"POST\"]\n{limits}")),
        ] {
            let aim = aim("", key, &route);
            assert_eq!(aim.unwrap_err(), AimError::NoLimits, "{route}");
        }
        for listen in ["10.0.0.1:80", "127.0.0.1:0", "unix:drip.sock"] {
            let server = format!("listen = [{listen:?}]");
            let aim = aim(&server, "a", "path = \"/\"\nlimits = [{ zone = \"slow\" }]");
            assert_eq!(aim.unwrap_err(), AimError::NoAddress, "{listen}");
        }
    }
}

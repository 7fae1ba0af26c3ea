mod origin;
mod route;
mod server;
mod store;

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

pub use origin::{Health, Host, HostRule, Origin, Scheme, ServerUrl};
pub use route::{Dialects, PathPattern, Route, RouteLimit};
pub use server::{CertPair, ForwardedHeader, Listen, Server, Tls};
pub use store::{Keeper, OnStoreFailure, Redis};

use super::KeyTemplate;
use crate::limit::{Algorithm, Rate};

/// Everything a gateway is told by its file, checked: indices point at what is there, names are unique,
/// numbers are in range.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The gateway's own side: addresses, workers, patience with clients.
    pub server: Server,
    /// In the order of the file; at least one.
    pub origins: Vec<Origin>,
    /// In the order of the file; may be empty.
    pub zones: Vec<Zone>,
    /// Where zones are kept that are shared.
    pub redis: Redis,
    /// In the order of the file; at least one.
    pub routes: Vec<Route>,
    /// What is logged, and where.
    pub log: Log,
}

impl Settings {
    /// The route that takes a request, and its index: the longest matching path wins; of those with the same path one
    /// that names the host before one that does not; then the first in the file. What is not known of the request, its
    /// host or its method, rules no route out.
    #[must_use]
    pub fn route(
        &self,
        path: &[u8],
        host: Option<&str>,
        method: Option<&str>,
    ) -> Option<(usize, &Route)> {
        let takes = |route: &Route| {
            let by_host = route
                .host
                .as_deref()
                .zip(host)
                .is_none_or(|(named, host)| named == host);
            let by_method = |method| {
                route.methods.is_empty() || route.methods.iter().any(|named| named == method)
            };
            route.path.matches(path) && by_host && method.is_none_or(by_method)
        };
        let matching = self
            .routes
            .iter()
            .enumerate()
            .filter(|(_, route)| takes(route));
        // Of equals `max_by_key` takes the last, and the first is wanted.
        matching
            .rev()
            .max_by_key(|(_, route)| (route.path.precedence(), route.host.is_some()))
    }

    /// The same with the password of the store left out, for those who may see the settings and not their file.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut settings = self.clone();
        settings.redis.url = settings.redis.url.without_password();
        settings
    }

    /// What differs from the settings that the process was started with, and cannot change while it runs.
    #[must_use]
    pub fn needing_restart(&self, started_with: &Self) -> Vec<&'static str> {
        let (new, old) = (&self.server, &started_with.server);
        let fixed = [
            ("server.listen", new.listen != old.listen),
            ("server.admin", new.admin != old.admin),
            ("server.workers", new.workers != old.workers),
            (
                "server.max_connections",
                new.max_connections != old.max_connections,
            ),
            ("server.tls", new.tls != old.tls),
            ("log.format", self.log.format != started_with.log.format),
        ];
        fixed
            .into_iter()
            .filter_map(|(name, changed)| changed.then_some(name))
            .collect()
    }
}

/// `[zones.NAME]`: a bucket for each value of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// Letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// What tells one bucket from another.
    pub key: KeyTemplate,
    /// How fast each bucket leaks; of windows, how many requests each takes and how long it is.
    pub rate: Rate,
    /// How the requests of a key are counted.
    pub algorithm: Algorithm,
    /// Remembered keys, over all workers.
    pub max_keys: NonZeroUsize,
    /// A drained key is forgotten after this.
    pub idle_timeout: Duration,
    /// IPv6 addresses in keys are cut to this many bits, 0 to 128.
    pub ipv6_prefix: u8,
    /// Client addresses that are never limited.
    pub exempt: Vec<IpNet>,
    /// Who keeps the buckets.
    pub store: Keeper,
    /// What goes on without it; of a zone in memory, nothing.
    pub on_store_failure: OnStoreFailure,
}

impl Zone {
    /// Whether requests of this client are never limited here.
    #[must_use]
    pub fn is_exempt(&self, client: IpAddr) -> bool {
        self.exempt.iter().any(|net| net.contains(&client))
    }

    /// `address` cut to `ipv6_prefix` where it is of IPv6: whoever has one address there has a whole prefix.
    #[must_use]
    pub fn cut(&self, address: IpAddr) -> IpAddr {
        cut(address, self.ipv6_prefix)
    }
}

/// `address` cut to `prefix` bits where it is of IPv6.
pub(crate) fn cut(address: IpAddr, prefix: u8) -> IpAddr {
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

/// `[log]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The least severe message that is written.
    pub level: Level,
    /// Of both logs.
    pub format: Format,
    /// Where the access log goes.
    pub access: Access,
}

/// How severe a message is, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something will not work for long.
    Warn,
    /// What an operator wants to know on a good day.
    Info,
    /// What a developer of the gateway wants to know.
    Debug,
    /// Everything.
    Trace,
}

/// How a line of a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// A file, absolute.
    File(PathBuf),
}

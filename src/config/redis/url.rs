//! URL of a Redis server or cluster.

use std::fmt;
use std::str::FromStr;

use redis::IntoConnectionInfo;

/// URL of a Redis server or cluster, validated.
///
/// Schemes: `redis://`, `rediss://` (TLS), `redis+unix://`, `redis+cluster://` and
/// `rediss+cluster://`. The URL of a cluster lists hosts of the cluster, and need not list all of
/// them.
///
/// `Display` omits the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// URL as written in the file. It may contain the password, which `Display` omits.
    text: String,
    /// Servers, with the password.
    pub servers: Servers,
}

/// One server, or the nodes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Servers {
    /// URL of a server.
    Server(String),
    /// URLs of the listed nodes.
    Cluster(Vec<String>),
}

impl Servers {
    /// Returns the URL of each server.
    fn urls(&self) -> &[String] {
        match self {
            Self::Server(url) => std::slice::from_ref(url),
            Self::Cluster(nodes) => nodes,
        }
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "a Redis is written \"redis://host:6379\", \"rediss://host:6379\" (TLS), \"redis+unix:///run/redis.sock\" or \"redis+cluster://one:6379,two:6379\"";
        let (scheme, rest) = text.split_once("://").ok_or(FORM)?;
        let servers = match scheme {
            "redis" | "rediss" | "redis+unix" => Servers::Server(text.to_owned()),
            "redis+cluster" => Servers::Cluster(node_urls("redis", rest)?),
            "rediss+cluster" => Servers::Cluster(node_urls("rediss", rest)?),
            _ => return Err(FORM.to_owned()),
        };
        for url in servers.urls() {
            check_port(url)?;
            let read = url.as_str().into_connection_info();
            read.map_err(|error| format!("this is not the URL of a Redis: {error}"))?;
        }
        let text = text.to_owned();
        Ok(Self { text, servers })
    }
}

/// Checks the port of a server, if the URL has one. A Unix socket has none.
fn check_port(url: &str) -> Result<(), String> {
    let Some((_, rest)) = url.split_once("://").filter(|it| it.0 != "redis+unix") else {
        return Ok(());
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    // The colons of an IPv6 address are in brackets.
    let port = match host.rsplit_once(']') {
        Some((_, behind)) => behind.strip_prefix(':'),
        None => host.rsplit_once(':').map(|(_, port)| port),
    };
    match port.filter(|port| !port.is_empty()).map(str::parse::<u16>) {
        Some(Err(_) | Ok(0)) => Err(format!(
            "the port of {host} must be a number from 1 to 65535, such as 6379"
        )),
        _ => Ok(()),
    }
}

/// Returns the URL of each node of a cluster. A user before `@` applies to all nodes.
///
/// `rest`: the text after the scheme of the URL.
fn node_urls(scheme: &str, rest: &str) -> Result<Vec<String>, &'static str> {
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    // `user` includes the `@` behind it.
    let (user, hosts) = rest.rsplit_once('@').map_or(("", rest), |(_, hosts)| {
        rest.split_at(rest.len() - hosts.len())
    });
    if hosts.contains('/') {
        return Err("a cluster has only one database; remove what follows the hosts");
    }
    let node = |host: &str| format!("{scheme}://{user}{}", host.trim());
    Ok(hosts.split(',').map(node).collect())
}

impl Url {
    /// Returns the same URL, shown as `text`.
    pub fn shown_as(&self, text: String) -> Self {
        let servers = self.servers.clone();
        Self { text, servers }
    }

    /// Returns the same URL with `***` as its password.
    pub fn without_password(&self) -> Self {
        self.shown_as(self.to_string())
    }

    /// Returns whether connections use TLS.
    pub fn is_encrypted(&self) -> bool {
        let mut urls = self.servers.urls().iter();
        urls.any(|url| url.starts_with("rediss:"))
    }

    /// Returns whether the URL is that of a cluster, whose keys are on several nodes.
    pub fn is_cluster(&self) -> bool {
        matches!(self.servers, Servers::Cluster(_))
    }

    /// Returns the URL as written, with its password unless that comes from the environment.
    pub fn written(&self) -> &str {
        &self.text
    }
}

/// Writes the URL as in the file, with `***` instead of the password.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = self.text.split_once("://").and_then(|(scheme, rest)| {
            let (user, hosts) = rest.rsplit_once('@')?;
            let (name, _) = user.split_once(':')?;
            Some((scheme, name, hosts))
        });
        match secret {
            Some((scheme, name, hosts)) => write!(f, "{scheme}://{name}:***@{hosts}"),
            None => f.write_str(&self.text),
        }
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_all_its_nodes_with_one_user() {
        let url = Url::from_str("rediss+cluster://me:a@b@one:7000, [::1]:7001/").unwrap();
        let nodes = ["rediss://me:a@b@one:7000", "rediss://me:a@b@[::1]:7001"];
        let expected = Servers::Cluster(nodes.map(str::to_owned).into());
        assert_eq!(url.servers, expected);
    }

    #[test]
    fn a_password_is_never_shown() {
        for (written, shown) in [
            ("redis://:secret@h:1/2", "redis://:***@h:1/2"),
            (
                "redis+cluster://u:s:t@h:1,i:2",
                "redis+cluster://u:***@h:1,i:2",
            ),
            ("redis://h:1", "redis://h:1"),
        ] {
            let url: Url = written.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), shown);
            assert_eq!(url.written(), written);
        }
    }

    #[test]
    fn an_invalid_url_is_reported() {
        let check = |text: &str, begin: &str| {
            let message = text.parse::<Url>().unwrap_err();
            assert!(message.starts_with(begin), "{text}: {message}");
        };
        check("localhost:6379", "a Redis is written");
        check("http://h:1", "a Redis is written");
        check("redis+cluster://h:1/3", "a cluster has only one database");
        check("redis://h:1/x", "this is not the URL of a Redis: ");
        for host in ["h:99999", "h:notaport", "h:0", "[::1]:x"] {
            let begin = format!("the port of {host} must be");
            check(&format!("redis://a:b@{host}/0"), &begin);
        }
        check("redis+cluster://h:1,", "this is not the URL of a Redis: ");
    }
}

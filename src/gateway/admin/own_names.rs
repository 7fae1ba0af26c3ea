//! Names of this host that requests to the admin port may use.

use std::fs;
use std::net::IpAddr;

/// Names of this host, in lower case.
///
/// The name of the kernel (uname(2)), its part before the first dot, and the names on the same line
/// of `/etc/hosts`, of which one usually has the domain. DNS is not used, because an attacker could
/// answer.
pub(super) struct OwnNames(Vec<String>);

impl OwnNames {
    /// Collects the names of this host.
    pub(super) fn of_this_host() -> Self {
        let uname = rustix::system::uname();
        let hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
        Self::new(&uname.nodename().to_string_lossy(), &hosts)
    }

    /// Collects the names. `node`: name of the kernel. `hosts`: text of `/etc/hosts`.
    fn new(node: &str, hosts: &str) -> Self {
        let node = node.to_ascii_lowercase();
        let short = node.split('.').next().unwrap_or(&node);
        let mut names = vec![node.clone(), short.to_owned()];
        for line in hosts.lines() {
            let line = line.split('#').next().unwrap_or(line).to_ascii_lowercase();
            // The first word is an address.
            let line_names = line.split_ascii_whitespace().skip(1);
            if line_names.clone().any(|name| name == node || name == short) {
                names.extend(line_names.map(ToOwned::to_owned));
            }
        }
        Self(names)
    }

    /// Returns whether `host`, the value of the field `Host`, names this host.
    ///
    /// That is a name of this host, an address, `localhost`, or one of the `configured` names.
    /// Another site cannot have any of these as its name.
    pub(super) fn contain(&self, host: &str, configured: &[String]) -> bool {
        let without_port = match host.strip_prefix('[') {
            Some(ipv6) => ipv6.split(']').next().unwrap_or(""),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        let host = without_port.strip_suffix('.').unwrap_or(without_port);
        let is_host = |name: &String| !host.is_empty() && name.eq_ignore_ascii_case(host);
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok()
            || self.0.iter().any(is_host)
            || configured.iter().any(is_host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: &str = "127.0.0.1 localhost\n10.0.0.7\tGw-1.example.com gw-1 # the edge\n\
        0.0.0.0 ads.example other\n";

    #[test]
    fn names_of_the_host_addresses_and_the_given_names_are_known() {
        let more = ["drip.internal".to_owned()];
        let names = OwnNames::new("gw-1", HOSTS);
        let knowns = "gw-1|GW-1:9090|gw-1.example.com|gw-1.example.com.:80|localhost:1|\
            LOCALHOST|127.0.0.1|10.1.2.3:9090|[::1]:9090|[fe80::1]|\
            Drip.Internal:9090";
        for known in knowns.split('|') {
            assert!(names.contain(known, &more), "{known}");
        }
        let foreigns = "|:9090|.|evil.example|gw-1.evil.example|ads.example|other|\
            localhost.evil.example|127.0.0.1.evil.example|[evil.example]|\
            drip.internal.x|gw-1@evil.example|evil.example:127.0.0.1";
        for foreign in foreigns.split('|') {
            assert!(!names.contain(foreign, &more), "{foreign}");
        }
    }

    #[test]
    fn a_long_name_of_the_kernel_is_known_by_its_first_part_too() {
        let names = OwnNames::new("gw.example.com", "");
        assert!(names.contain("gw", &[]) && names.contain("gw.example.com", &[]));
        assert!(!names.contain("", &[]) && !OwnNames::new("", "").contain("", &[]));
    }
}

use std::net::IpAddr;

use ipnet::IpNet;

use super::annotations::{Annotation, Annotations};
use crate::tools::import::notes::Notes;

/// The networks in an annotation; `None` if one of them is wrong, which is noted.
pub(super) fn read(
    annotations: &Annotations,
    annotation: &Annotation,
    notes: &mut Notes,
) -> Option<Vec<IpNet>> {
    let mut networks: Vec<IpNet> = Vec::new();
    let texts = annotation.value.split(',').map(str::trim);
    for text in texts.filter(|text| !text.is_empty()) {
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        let network = text.parse::<IpNet>().or_else(|_| address());
        let is_mapped = |network: &IpNet| match network {
            IpNet::V6(network) => network.addr().to_ipv4_mapped().is_some(),
            IpNet::V4(_) => false,
        };
        let Some(network) = network.ok().filter(|network| !is_mapped(network)) else {
            let what = format!("{text} is not a network such as 10.0.0.0/8");
            annotations.note(annotation, &what, notes);
            return None;
        };
        if !networks.contains(&network.trunc()) {
            networks.push(network.trunc());
        }
    }
    Some(networks)
}

/// Which clients may send requests.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Access {
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    /// The status of all requests, if nobody may.
    pub(super) refuse: Option<u16>,
}

impl Access {
    /// Reads both lists of an Ingress.
    pub(super) fn read(annotations: &Annotations, notes: &mut Notes) -> Self {
        let mut access = Self::default();
        let lists = [
            ["allowlist-source-range", "whitelist-source-range"],
            ["denylist-source-range", "blacklist-source-range"],
        ];
        let mut networks = lists.map(|names| {
            let annotation = annotations.any(&names);
            let annotation = annotation.filter(|it| !it.value.is_empty())?;
            let read = read(annotations, annotation, notes);
            if read.is_none() {
                annotations.note(
                    annotation,
                    "ingress-nginx takes no Ingress with this value, and requests get 503",
                    notes,
                );
                access.refuse = Some(503);
            }
            read
        });
        let [allow, deny] = &mut networks;
        // ingress-nginx writes the rules that deny first, and nginx takes the first that fits. drip
        // takes that of the smallest network.
        if let (Some(allow), Some(deny)) = (allow.as_mut(), deny.as_ref()) {
            allow.retain(|inner| !deny.iter().any(|outer| outer.contains(inner)));
        }
        if allow.as_ref().is_some_and(Vec::is_empty) {
            access.refuse.get_or_insert(403);
        }
        let shown = |networks: &Option<Vec<IpNet>>| {
            let networks = networks.iter().flatten();
            networks.map(ToString::to_string).collect()
        };
        access.allow = shown(allow);
        access.deny = shown(deny);
        access
    }
}

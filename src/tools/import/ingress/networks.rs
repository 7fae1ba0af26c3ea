//! Reads the lists of allowed and denied networks in annotations.
//!
//! Networks of IPv4-mapped IPv6 addresses (`is_mapped`) are refused: no client is in them.

use ipnet::IpNet;

use super::annotations::{Annotation, Annotations};
use crate::import::translate::networks::{Networks, is_mapped, network};

/// Reads the networks of an annotation; `None` if one is wrong, which is noted.
pub(super) fn read(annotations: &Annotations, annotation: &Annotation) -> Option<Vec<IpNet>> {
    let mut networks: Vec<IpNet> = Vec::new();
    let texts = annotation.value.split(',').map(str::trim);
    for text in texts.filter(|text| !text.is_empty()) {
        let Some(network) = network(text).filter(|network| !is_mapped(network)) else {
            let what = format!("{text} is not a network such as 10.0.0.0/8");
            annotations.note(annotation, what);
            return None;
        };
        if !networks.contains(&network) {
            networks.push(network);
        }
    }
    Some(networks)
}

/// Clients that may send requests.
#[derive(Debug, Default)]
pub(super) struct Access {
    pub(super) networks: Networks,
    /// Status with which all requests are refused; `None` if some clients are allowed.
    pub(super) refuse: Option<u16>,
}

impl Access {
    /// Reads the allow list and the deny list of an Ingress.
    pub(super) fn read(annotations: &Annotations) -> Self {
        let mut refuse = None;
        let lists = [
            ["allowlist-source-range", "whitelist-source-range"],
            ["denylist-source-range", "blacklist-source-range"],
        ];
        let [allow, deny] = lists.map(|names| {
            let annotation = annotations.any(&names);
            let annotation = annotation.filter(|annotation| !annotation.value.is_empty())?;
            let read = read(annotations, annotation);
            if read.is_none() {
                let what = "ingress-nginx takes no Ingress with this value, and requests get 503";
                annotations.note(annotation, what);
                refuse = Some(503);
            }
            read
        });
        let deny = deny.unwrap_or_default();
        let allow = allow.map(|mut allow| {
            // ingress-nginx writes the deny rules first, and nginx applies the first rule that
            // matches: a network within a denied one is denied. In drip the smallest network
            // decides, so such a network must not be in the list.
            allow.retain(|inner| !deny.iter().any(|outer| outer.contains(inner)));
            if allow.is_empty() {
                refuse.get_or_insert(403);
            }
            allow
        });
        let allow = allow.unwrap_or_default();
        Self {
            networks: Networks { allow, deny },
            refuse,
        }
    }
}

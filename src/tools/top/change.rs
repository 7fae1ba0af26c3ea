//! What can be changed from here, in words and as requests to the admin port.
//!
//! The words are those of the live page.

use std::num::NonZeroU32;

use awc::http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use crate::limit::Rate;
use crate::status::views::Plain;

/// What a change is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Gateway,
    Zone(Plain),
    Key {
        zone: Plain,
        key: Plain,
    },
    /// The gate of an origin.
    Origin(Plain),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// An override, for as long as `span` says.
    Override {
        what: Override,
        span: String,
    },
    /// Ends an override. `paused`: a pause is what the user sees of it.
    Undo {
        paused: bool,
    },
    /// `rejecting`: the waiting requests of the key, too.
    Forget {
        rejecting: bool,
    },
    Reload,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Override {
    Rate(Rate),
    /// `max_in_flight` of an origin.
    Places(NonZeroU32),
    Pause,
    DryRun(bool),
}

/// A request to the admin port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    /// JSON.
    pub(super) body: Option<String>,
}

impl Target {
    /// As a title.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Gateway => "the gateway".to_owned(),
            Self::Zone(zone) => format!("zone {zone}"),
            Self::Key { zone, key } => format!("key {key} in {zone}"),
            Self::Origin(origin) => format!("origin {origin}"),
        }
    }

    /// All of its requests.
    fn all(&self) -> String {
        match self {
            Self::Gateway => self.name(),
            Self::Zone(name) | Self::Origin(name) => name.to_string(),
            Self::Key { .. } => "this key".to_owned(),
        }
    }

    fn path(&self) -> String {
        let part = |name: &Plain| utf8_percent_encode(name.as_str(), NON_ALPHANUMERIC).to_string();
        match self {
            Self::Gateway => "/api".to_owned(),
            Self::Zone(zone) => format!("/api/zones/{}", part(zone)),
            Self::Key { zone, key } => format!("/api/zones/{}/keys/{}", part(zone), part(key)),
            Self::Origin(origin) => format!("/api/origins/{}", part(origin)),
        }
    }
}

impl Change {
    /// What is done, as on a button.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Override { what, .. } => match what {
                Override::Rate(_) => "Set the rate",
                Override::Places(_) => "Set the places",
                Override::Pause => "Pause",
                Override::DryRun(true) => "Start the dry run",
                Override::DryRun(false) => "End the dry run",
            },
            Self::Undo { paused: true } => "Resume",
            Self::Undo { paused: false } => "Undo",
            Self::Forget { rejecting: false } => "Forget",
            Self::Forget { rejecting: true } => "Forget and reject",
            Self::Reload => "Reload",
        }
    }

    /// What will happen.
    pub(super) fn will(&self, target: &Target) -> String {
        let all = target.all();
        match self {
            Self::Override { what, span } => {
                let does = match what {
                    Override::Rate(rate) => {
                        let each = match target {
                            Target::Key { .. } => "This key".to_owned(),
                            Target::Origin(origin) => format!("The gate of {origin}"),
                            _ => format!("Each key of {all}"),
                        };
                        format!("{each} gets {rate} for {span}.")
                    }
                    Override::Places(most) => {
                        format!("At most {most} requests are at {all} at once for {span}.")
                    }
                    Override::Pause => format!(
                        "No request of {all} leaves for {span}: requests wait, and are rejected where a queue is full."
                    ),
                    Override::DryRun(true) => format!(
                        "For {span} no request of {all} is delayed or rejected; what would have been is counted."
                    ),
                    Override::DryRun(false) => format!(
                        "For {span} requests of {all} are limited, even where a route says dry_run."
                    ),
                };
                format!("{does} Afterwards, or after a restart, the file holds again.")
            }
            Self::Undo { .. } => format!("What differs from the file for {all} ends now."),
            Self::Forget { rejecting: false } => {
                "What the key has used is forgotten. Requests that wait keep their order and pace."
                    .to_owned()
            }
            Self::Forget { rejecting: true } => {
                "What the key has used is forgotten, and its waiting requests get 503.".to_owned()
            }
            Self::Reload => {
                "The gateway reads its file now. A file with an error changes nothing.".to_owned()
            }
        }
    }

    pub(super) fn request(&self, target: &Target) -> Request {
        let path = target.path();
        let request = |method, path, body| Request { method, path, body };
        match self {
            Self::Override { what, span } => {
                let body = match what {
                    Override::Rate(rate) => json!({"rate": rate.to_string(), "for": span}),
                    Override::Places(most) => json!({"max_in_flight": most.get(), "for": span}),
                    Override::Pause => json!({"pause": true, "for": span}),
                    Override::DryRun(on) => json!({"dry_run": on, "for": span}),
                };
                let body = Some(body.to_string());
                request(Method::PUT, format!("{path}/override"), body)
            }
            Self::Undo { .. } => request(Method::DELETE, format!("{path}/override"), None),
            Self::Forget { rejecting } => {
                request(Method::DELETE, format!("{path}?drop={rejecting}"), None)
            }
            Self::Reload => request(Method::POST, format!("{path}/reload"), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_a_request() {
        let zone = || Target::Zone(Plain::new("per client"));
        let key = || Target::Key {
            zone: Plain::new("z"),
            key: Plain::new("2001:db8::1/48"),
        };
        let timed = |what| Change::Override {
            what,
            span: "10m".to_owned(),
        };
        let rate = || timed(Override::Rate("20r/s".parse().unwrap()));
        for (target, change, method, path, body) in [
            (
                zone(),
                rate(),
                "PUT",
                "/api/zones/per%20client/override",
                Some(r#"{"for":"10m","rate":"20r/s"}"#),
            ),
            (
                key(),
                timed(Override::Pause),
                "PUT",
                "/api/zones/z/keys/2001%3Adb8%3A%3A1%2F48/override",
                Some(r#"{"for":"10m","pause":true}"#),
            ),
            (
                zone(),
                timed(Override::DryRun(false)),
                "PUT",
                "/api/zones/per%20client/override",
                Some(r#"{"dry_run":false,"for":"10m"}"#),
            ),
            (
                zone(),
                Change::Undo { paused: true },
                "DELETE",
                "/api/zones/per%20client/override",
                None,
            ),
            (
                key(),
                Change::Forget { rejecting: true },
                "DELETE",
                "/api/zones/z/keys/2001%3Adb8%3A%3A1%2F48?drop=true",
                None,
            ),
            (
                Target::Origin(Plain::new("my app")),
                timed(Override::Places(NonZeroU32::MIN)),
                "PUT",
                "/api/origins/my%20app/override",
                Some(r#"{"for":"10m","max_in_flight":1}"#),
            ),
            (
                Target::Origin(Plain::new("my app")),
                Change::Undo { paused: false },
                "DELETE",
                "/api/origins/my%20app/override",
                None,
            ),
            (Target::Gateway, Change::Reload, "POST", "/api/reload", None),
        ] {
            let request = change.request(&target);
            assert_eq!(
                (
                    request.method.as_str(),
                    &*request.path,
                    request.body.as_deref()
                ),
                (method, path, body),
                "{change:?}"
            );
        }
        assert_eq!(
            rate().will(&zone()),
            "Each key of per client gets 20r/s for 10m. Afterwards, or after a restart, the file holds again."
        );
    }
}

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue, REFERER, USER_AGENT};
use http::uri::PathAndQuery;
use hyper::{Method, Uri, Version};

use super::arrival::Arrival;
use super::client::Client;
use super::limits::{Judged, Judgement, Place};
use crate::access;
use crate::config::{Route, ServerUrl};
use crate::gateway::Gateway;
use crate::limit::Moment;
use crate::metrics::LimitStatus;
use crate::pacer::Pacer;

/// What is logged and counted where the client left before an answer had begun, as in nginx.
const CLIENT_GONE: u16 = 499;

/// One request, from its head to the last byte of its answer. However it ends, it is counted and logged once: when this
/// is dropped.
pub(super) struct Served {
    gateway: Arc<Gateway>,
    pacer: Rc<Pacer>,
    pub(super) began: Moment,
    client: Client,
    /// Kept where there is a log.
    told: Option<Told>,
    pub(super) route: Option<usize>,
    /// Where it waits, while it does.
    pub(super) place: Option<Place>,
    pub(super) judged: Option<Judged>,
    /// The origin's server that was asked, and how long the head of its answer took.
    pub(super) server: Option<Arc<ServerUrl>>,
    pub(super) origin_took: Option<Duration>,
    status: u16,
    bytes: u64,
}

/// What the log tells of a request's head.
struct Told {
    method: Method,
    uri: Uri,
    version: Version,
    referer: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
}

impl Served {
    /// A request whose head has come; `None`: one that could not be read. Boxed, as it goes through many hands.
    pub(super) fn new(
        gateway: Arc<Gateway>,
        pacer: Rc<Pacer>,
        client: Client,
        arrival: Option<&Arrival>,
    ) -> Box<Self> {
        let began = pacer.now();
        let told = arrival.filter(|_| gateway.access_log().is_some());
        Box::new(Self {
            gateway,
            pacer,
            began,
            client,
            told: told.map(Told::of),
            route: None,
            place: None,
            judged: None,
            server: None,
            origin_took: None,
            status: CLIENT_GONE,
            bytes: 0,
        })
    }

    pub(super) fn answer_began(&mut self, status: u16) {
        self.status = status;
    }

    pub(super) fn sent(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// What the limits said; of a request whose client left while it waited, that.
    fn limited(&self) -> Option<access::Limited<'_>> {
        let zone = |index| self.gateway.zone(index).settings().name.as_str();
        if let Some(Place {
            zone: index, key, ..
        }) = &self.place
        {
            let (status, excess) = (LimitStatus::Cancelled, None);
            return Some(access::Limited {
                zone: zone(*index),
                key,
                status,
                excess,
            });
        }
        let Judgement {
            zone: index,
            key,
            status,
            excess,
            ..
        } = self.judged.as_ref()?.decisive()?;
        Some(access::Limited {
            zone: zone(*index),
            key,
            status: *status,
            excess: Some(*excess),
        })
    }

    fn entry(&self, duration: Duration, now: Moment) -> access::Entry<'_> {
        let settings = self.gateway.settings();
        let route = self.route.and_then(|route| settings.routes.get(route));
        let decisive = self.judged.as_ref().and_then(Judged::decisive);
        let text = |value: &'_ HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let field = |field: fn(&Told) -> &Option<HeaderValue>| {
            let value = field(self.told.as_ref()?).as_ref();
            value.map(|value| text(value).into())
        };
        access::Entry {
            time: now,
            client: self.client.address,
            line: self.told.as_ref().map(Told::line),
            status: self.status,
            bytes: self.bytes,
            route: route.map(Route::name),
            origin: self
                .server
                .as_ref()
                .and(route)
                .map(|route| self.gateway.origin(route.origin).settings().name.as_str()),
            server: self.server.as_ref().map(ToString::to_string),
            limited: self.limited(),
            queue: match &self.place {
                Some(place) => Some(now.since(place.since)),
                None => decisive
                    .and(self.judged.as_ref())
                    .map(|judged| judged.waited),
            },
            origin_took: self.origin_took,
            duration,
            referer: field(|told| &told.referer),
            user_agent: field(|told| &told.user_agent),
        }
    }
}

impl Told {
    fn of(arrival: &Arrival) -> Self {
        let field = |name: HeaderName| arrival.head.headers.get(name).cloned();
        Self {
            method: arrival.head.method.clone(),
            uri: arrival.head.uri.clone(),
            version: arrival.head.version,
            referer: field(REFERER),
            user_agent: field(USER_AGENT),
        }
    }

    fn line(&self) -> access::Line<'_> {
        let target = self.uri.path_and_query().map(PathAndQuery::as_str);
        // HTTP/2 sends a target in parts, and these are always there.
        let parts = self.version == Version::HTTP_2 || self.uri.authority().is_none();
        access::Line {
            method: self.method.as_str(),
            target: match target.filter(|_| parts) {
                Some(target) => target.into(),
                None => self.uri.to_string().into(),
            },
            protocol: match self.version {
                Version::HTTP_10 => "HTTP/1.0",
                Version::HTTP_2 => "HTTP/2.0",
                _ => "HTTP/1.1",
            },
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let now = self.pacer.now();
        let duration = now.since(self.began);
        self.gateway
            .count_request(self.route, self.status, duration);
        if let Some(log) = self.gateway.access_log() {
            log.write(&self.entry(duration, now));
        }
    }
}

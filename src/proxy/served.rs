use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;

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
    began: Moment,
    request: HttpRequest,
    client: Client,
    pub(super) route: Option<usize>,
    /// Where it waits, while it does.
    pub(super) place: Option<Place>,
    pub(super) judged: Option<Judged>,
    /// The origin's server that was asked, and how long the head of its answer took.
    pub(super) server: Option<ServerUrl>,
    pub(super) origin_took: Option<Duration>,
    status: u16,
    bytes: u64,
}

impl Served {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        pacer: Rc<Pacer>,
        request: HttpRequest,
        client: Client,
    ) -> Self {
        let began = pacer.now();
        Self {
            gateway,
            pacer,
            began,
            request,
            client,
            route: None,
            place: None,
            judged: None,
            server: None,
            origin_took: None,
            status: CLIENT_GONE,
            bytes: 0,
        }
    }

    pub(super) fn answer_began(&mut self, status: u16) {
        self.status = status;
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
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
        let field = |name| {
            Some(String::from_utf8_lossy(
                self.request.headers().get(name)?.as_bytes(),
            ))
        };
        let settings = self.gateway.settings();
        let route = self.route.and_then(|route| settings.routes.get(route));
        let decisive = self.judged.as_ref().and_then(Judged::decisive);
        access::Entry {
            time: now,
            client: self.client.address,
            method: self.request.method().as_str(),
            target: self
                .request
                .uri()
                .path_and_query()
                .map_or("*", |target| target.as_str()),
            protocol: format!("{:?}", self.request.version()),
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
            referer: field("referer"),
            user_agent: field("user-agent"),
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

use std::rc::Rc;
use std::sync::Arc;

use http::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use http::request::Parts;
use hyper::body::{Body as _, Incoming};
use hyper::{Request, Response, StatusCode, Uri, Version};

use super::answer::{Answer, Body};
use super::arrival::Arrival;
use super::client::Client;
use super::served::Served;
use super::{Worker, dialects, headers, limits, reply, tunnel, unread};
use crate::clients::{Answering, Peer, Visit};
use crate::config::{Route, Server};
use crate::gateway::Gateway;
use crate::origin::{BrokenBody, Forwarded, FromClient, OriginError, forward};

impl Answering for Worker {
    type Body = Answer;

    /// Serves one request, from its head to the head of its answer; bodies follow on this worker as they come.
    async fn answer(&self, mut request: Request<Incoming>, visit: &Visit) -> Response<Answer> {
        let gateway = self.gateway().await;
        let client_side = headers::is_upgrade(request.version(), request.headers())
            .then(|| hyper::upgrade::on(&mut request));
        let (head, body) = request.into_parts();
        let arrival = Arrival::new(&head, visit.peer(), &gateway.settings().server);
        let client = arrival.client;
        let pacer = Rc::clone(&self.pacer);
        let mut served = Served::new(Arc::clone(&gateway), pacer, client, Some(&arrival));
        let length = body.size_hint().exact();
        let mut response = match admit(self, &gateway, &arrival, length, &mut served).await {
            Err(mut response) => {
                unread::discard(&head, body, response.headers_mut()).await;
                response
            }
            Ok(route) => {
                let settings = &gateway.settings().server;
                let upgrades = client_side.is_some();
                let outgoing = outgoing(head, body, settings, &client, visit, upgrades);
                let origin = gateway.origin(route.origin);
                // Boxed: whoever waits for a turn, or is answered here, needs no room for it.
                let forwarding = Box::pin(forward(&self.pools, &self.pacer, origin, outgoing));
                brought(forwarding.await, &mut served)
            }
        };
        if let (Some(route), Some(judged)) = (served.route, &served.judged) {
            let dialects = gateway.settings().routes[route].headers;
            let took = served.origin_took;
            dialects::write(response.headers_mut(), dialects, &gateway, judged, took);
        }
        served.answer_began(response.status().as_u16());
        match client_side {
            Some(client_side) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                let origin_side = hyper::upgrade::on(&mut response);
                let (head, body) = response.into_parts();
                visit.go_on_with(tunnel::carry(client_side, origin_side, body, served));
                Response::from_parts(head, Answer::of_tunnel())
            }
            _ => response.map(|body| Answer::new(body, served)),
        }
    }

    fn refused(&self, status: u16, peer: &Peer) {
        if let Some(gateway) = self.gateway_now() {
            let client = Client::of_peer(peer);
            Served::new(gateway, Rc::clone(&self.pacer), client, None).answer_began(status);
        }
    }
}

/// Finds the route of a request and waits for its turn. `Err` is the answer where it goes no further.
async fn admit<'a>(
    worker: &Worker,
    gateway: &'a Gateway,
    arrival: &Arrival<'_>,
    length: Option<u64>,
    served: &mut Served,
) -> Result<&'a Route, Response<Body>> {
    if let Some(unfit) = arrival.unfit() {
        return Err(reply::unfit(unfit));
    }
    let method = arrival.head.method.as_str();
    let found = gateway
        .settings()
        .route(&arrival.path, Some(&arrival.host), Some(method));
    let Some((index, route)) = found else {
        return Err(reply::plain(
            404,
            "No route takes this request\n".to_owned(),
        ));
    };
    served.route = Some(index);
    let most = gateway.settings().server.max_body_size;
    if most.is_some_and(|most| length.is_some_and(|length| length > most.get())) {
        return Err(reply::unanswered(&OriginError::ClientBody(
            BrokenBody::TooLarge,
        )));
    }
    let judged = limits::wait(
        worker,
        gateway,
        route,
        arrival,
        served.began,
        &mut served.place,
    )
    .await;
    let judged = served.judged.insert(judged);
    match &judged.rejection {
        Some(rejection) => Err(reply::rejected(route, rejection)),
        None => Ok(route),
    }
}

/// The request as the origin gets it; `upgrades`: it asks to change protocols.
fn outgoing(
    mut head: Parts,
    body: Incoming,
    server: &Server,
    client: &Client,
    visit: &Visit,
    upgrades: bool,
) -> Request<FromClient> {
    headers::to_origin(&mut head, client, visit, upgrades);
    let body = FromClient::new(body, server.max_body_size, server.body_timeout);
    if body.is_chunked() {
        let chunked = const { HeaderValue::from_static("chunked") };
        head.headers.insert(TRANSFER_ENCODING, chunked);
    }
    let mut outgoing = Request::new(body);
    // The host is in its field: the target goes on without it.
    let target = head.uri.path_and_query().cloned();
    *outgoing.uri_mut() = target.map_or_else(Uri::default, Uri::from);
    *outgoing.method_mut() = head.method;
    *outgoing.headers_mut() = head.headers;
    outgoing
}

/// The origin's answer as the client gets it, or an answer that says why there is none.
fn brought(forwarded: Forwarded, served: &mut Served) -> Response<Body> {
    served.server = forwarded.server;
    served.origin_took = Some(forwarded.took);
    match forwarded.answer {
        Ok(answer) => {
            let saved = answer.status() == StatusCode::NOT_MODIFIED
                && answer.headers().contains_key(CONTENT_LENGTH);
            let mut response = answer.map(|body| {
                if saved {
                    Body::Saved
                } else {
                    Body::Origin(body)
                }
            });
            let changes = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            headers::to_client(response.headers_mut(), changes);
            *response.version_mut() = Version::HTTP_11;
            response
        }
        Err(error) => {
            let mut response = reply::unanswered(&error);
            if forwarded.unread {
                // What is left of it nobody reads any more.
                let close = const { HeaderValue::from_static("close") };
                response.headers_mut().insert(CONNECTION, close);
            }
            response
        }
    }
}

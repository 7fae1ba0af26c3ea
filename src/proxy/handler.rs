use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use actix_web::http::{Method, StatusCode, header};
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use http::{Request, Uri};

use super::origin::{FromClient, forward};
use super::reply::{self, Allowance};
use super::{Worker, client, headers, key, routes};
use crate::actors::{Joining, Rejection, Turn};
use crate::config::Route;
use crate::gateway::Gateway;
use crate::limit::Limit;

/// Serves one request, from its head to the head of its answer; bodies follow on this worker as they come.
pub async fn handle(
    worker: Data<Rc<Worker>>,
    request: HttpRequest,
    payload: Payload,
) -> HttpResponse {
    if request.method() == Method::CONNECT {
        return reply::plain(405, "This gateway opens no tunnels\n".to_owned());
    }
    let Some(gateway) = worker.gateway().await else {
        return reply::plain(503, "Service unavailable\n".to_owned());
    };
    let host = client::host(&request);
    let Some((index, route)) = routes::find(gateway.routes(), request.head(), &host) else {
        return reply::plain(404, "No route takes this request\n".to_owned());
    };
    let mut response = match turn(&gateway, route, &request, &host).await {
        Ok(allowance) => {
            let mut response = send_on(&worker, &gateway, route, &request, payload).await;
            if let Some(allowance) = allowance.filter(|_| route.headers.x_ratelimit) {
                allowance.write(response.headers_mut());
            }
            response
        }
        Err(response) => response,
    };
    gateway.count_request(index, response.status().as_u16());
    if gateway.is_stopping() {
        response
            .head_mut()
            .set_connection_type(actix_web::http::ConnectionType::Close);
    }
    response
}

/// Waits until all limits of the route let the request go on.
async fn turn(
    gateway: &Gateway,
    route: &Route,
    request: &HttpRequest,
    host: &str,
) -> Result<Option<Allowance>, HttpResponse> {
    let mut joins = Joins::default();
    for wanted in &route.limits {
        let zone = gateway.zone(wanted.zone);
        if let Some(key) = key::take(zone.settings(), request, host) {
            joins.push(wanted.limit, zone.join(key, wanted.limit, route.dry_run));
        }
    }
    match joins.all().await {
        Ok(turns) => Ok(turns
            .into_iter()
            .map(|(limit, turn)| Allowance::new(limit, turn.take().outlook))
            .reduce(Allowance::tighter)),
        Err((_, rejection)) if route.dry_run && !rejection.is_final() => Ok(None),
        Err((limit, rejection)) => Err(reply::rejected(
            route,
            &rejection,
            Allowance::used_up(limit, &rejection),
        )),
    }
}

/// A request's joins in all the zones of its route.
#[derive(Default)]
struct Joins {
    waiting: Vec<(Limit, Option<Joining>)>,
    turns: Vec<(Limit, Turn)>,
}

impl Joins {
    fn push(&mut self, limit: Limit, joining: Joining) {
        self.waiting.push((limit, Some(joining)));
    }

    /// All turns, as soon as the last has come; or the first rejection, as soon as it has come. Then the others are
    /// dropped, and their charges go back.
    async fn all(mut self) -> Result<Vec<(Limit, Turn)>, (Limit, Rejection)> {
        poll_fn(|cx| {
            let mut pending = false;
            for (limit, slot) in &mut self.waiting {
                let Some(joining) = slot else { continue };
                match Pin::new(joining).poll(cx) {
                    Poll::Pending => pending = true,
                    Poll::Ready(Ok(turn)) => {
                        *slot = None;
                        self.turns.push((*limit, turn));
                    }
                    Poll::Ready(Err(rejection)) => return Poll::Ready(Err((*limit, rejection))),
                }
            }
            if pending {
                Poll::Pending
            } else {
                Poll::Ready(Ok(std::mem::take(&mut self.turns)))
            }
        })
        .await
    }
}

/// Forwards the request and brings the origin's answer, or says why there is none.
async fn send_on(
    worker: &Worker,
    gateway: &Gateway,
    route: &Route,
    request: &HttpRequest,
    payload: Payload,
) -> HttpResponse {
    let origin = gateway.origin(route.origin);
    let answer = match outgoing(request, payload) {
        Ok(outgoing) => forward(&worker.pools, origin, outgoing).await,
        Err(error) => Err(error.into()),
    };
    match answer {
        Ok(answer) => {
            let (head, body) = answer.into_parts();
            let status =
                StatusCode::from_u16(head.status.as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
            let mut response = HttpResponse::with_body(status, body).map_into_boxed_body();
            for (name, value) in headers::to_client(&head.headers) {
                response.headers_mut().append(name, value);
            }
            response
        }
        Err(error) => {
            tracing::warn!(origin = origin.name, %error, "a request got no answer");
            reply::origin_failed(&error)
        }
    }
}

/// The request as the origin gets it.
fn outgoing(request: &HttpRequest, payload: Payload) -> Result<Request<FromClient>, http::Error> {
    let field = |name| request.headers().get(name);
    let length =
        field(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let body = match (length, field(header::TRANSFER_ENCODING)) {
        (None, None) => FromClient::none(),
        (length, _) => FromClient::new(payload.into_inner(), length),
    };
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let mut outgoing = Request::new(body);
    *outgoing.method_mut() = http::Method::from_bytes(request.method().as_str().as_bytes())?;
    *outgoing.uri_mut() = Uri::try_from(target)?;
    *outgoing.headers_mut() = headers::to_origin(request);
    if let Some(length) = length {
        let length: u64 = length;
        outgoing
            .headers_mut()
            .insert(http::header::CONTENT_LENGTH, length.into());
    }
    Ok(outgoing)
}

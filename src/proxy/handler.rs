use std::rc::Rc;

use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::http::{ConnectionType, Method, StatusCode, header};
use actix_web::web::{Data, Payload};
use http::{Request, Uri};

use super::answer::{Answer, Body};
use super::arrival::Arrival;
use super::served::Served;
use super::{Worker, dialects, headers, limits, reply};
use crate::config::Route;
use crate::gateway::Gateway;
use crate::origin::{FromClient, forward};

/// Serves one request, from its head to the head of its answer; bodies follow on this worker as they come.
pub async fn handle(
    worker: Data<Rc<Worker>>,
    request: HttpRequest,
    payload: Payload,
) -> HttpResponse<Answer> {
    let gateway = worker.gateway().await;
    let arrival = Arrival::new(&request, &gateway.settings().server);
    let mut served = Served::new(
        gateway.clone(),
        Rc::clone(&worker.pacer),
        request.clone(),
        arrival.client,
    );
    let mut response = answer(&worker, &gateway, &arrival, payload, &mut served).await;
    if gateway.is_stopping() {
        response
            .head_mut()
            .set_connection_type(ConnectionType::Close);
    }
    served.answer_began(response.status().as_u16());
    response.map_body(|_, body| Answer::new(body, served))
}

async fn answer(
    worker: &Worker,
    gateway: &Gateway,
    arrival: &Arrival<'_>,
    payload: Payload,
    served: &mut Served,
) -> HttpResponse<Body> {
    if arrival.request.method() == Method::CONNECT {
        return reply::plain(405, "This gateway opens no tunnels\n".to_owned());
    }
    let method = arrival.request.method().as_str();
    let settings = gateway.settings();
    let Some((index, route)) = settings.route(&arrival.path, Some(&arrival.host), Some(method))
    else {
        return reply::plain(404, "No route takes this request\n".to_owned());
    };
    served.route = Some(index);
    let judged = limits::wait(worker, gateway, route, arrival, &mut served.place).await;
    let judged = served.judged.insert(judged);
    let mut response = match &judged.rejection {
        Some(rejection) => reply::rejected(route, rejection),
        None => send_on(worker, gateway, route, arrival, payload, served).await,
    };
    if let Some(judged) = &served.judged {
        dialects::write(
            response.headers_mut(),
            route.headers,
            gateway,
            judged,
            served.origin_took,
        );
    }
    response
}

/// Forwards the request and brings the origin's answer, or says why there is none.
async fn send_on(
    worker: &Worker,
    gateway: &Gateway,
    route: &Route,
    arrival: &Arrival<'_>,
    payload: Payload,
    served: &mut Served,
) -> HttpResponse<Body> {
    let origin = gateway.origin(route.origin);
    let outgoing = match outgoing(arrival, payload) {
        Ok(outgoing) => outgoing,
        Err(error) => return reply::origin_failed(&error.into()),
    };
    let forwarded = forward(&worker.pools, &worker.pacer, origin, outgoing).await;
    served.server = forwarded.server;
    served.origin_took = Some(forwarded.took);
    match forwarded.answer {
        Ok(answer) => {
            let (head, body) = answer.into_parts();
            let status =
                StatusCode::from_u16(head.status.as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
            let mut response = HttpResponse::with_body(status, Body::Origin(body));
            headers::to_client(&head.headers, response.headers_mut());
            response
        }
        Err(error) => reply::origin_failed(&error),
    }
}

/// The request as the origin gets it.
fn outgoing(arrival: &Arrival, payload: Payload) -> Result<Request<FromClient>, http::Error> {
    let request = arrival.request;
    let length: Option<u64> = arrival
        .field(header::CONTENT_LENGTH.as_str())
        .and_then(|length| length.parse().ok());
    let body = if length.is_none() && !request.headers().contains_key(header::TRANSFER_ENCODING) {
        FromClient::none()
    } else {
        FromClient::new(payload.into_inner(), length)
    };
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let mut outgoing = Request::new(body);
    *outgoing.method_mut() = http::Method::from_bytes(request.method().as_str().as_bytes())?;
    *outgoing.uri_mut() = Uri::try_from(target)?;
    *outgoing.headers_mut() = headers::to_origin(arrival);
    if let Some(length) = length {
        outgoing
            .headers_mut()
            .insert(http::header::CONTENT_LENGTH, length.into());
    }
    Ok(outgoing)
}

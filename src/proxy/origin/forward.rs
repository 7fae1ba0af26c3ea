use actix_web::body::BodySize;
use http::{Method, Request, Response, StatusCode};
use hyper::body::{Body, Incoming};

use super::body::{FromClient, ToClient};
use super::connection::{Connection, Pools};
use super::error::OriginError;
use crate::config::Origin;

/// Sends a request to the origin and waits for the head of its answer.
///
/// A request that met a connection which the origin was just closing is sent once more, on a new one: always where
/// nothing of it had been written, and else only where its method is idempotent and it has no body.
pub(in crate::proxy) async fn forward(
    pools: &Pools,
    origin: &Origin,
    mut request: Request<FromClient>,
) -> Result<Response<ToClient>, OriginError> {
    let Some(server) = origin.servers.first() else {
        return Err(no_server(origin));
    };
    let pool = pools.of(server);
    let is_head = request.method() == Method::HEAD;
    let again =
        (request.method().is_idempotent() && request.body().is_none()).then(|| head_of(&request));
    let mut connection = match pool.take(origin.keep_alive) {
        Some(connection) => connection,
        None => {
            pool.connect(origin.keep_alive, origin.connect_timeout)
                .await?
        }
    };
    let server = || server.to_string();
    loop {
        let sending = connection.sender.try_send_request(request);
        let answer = tokio::time::timeout(origin.response_timeout, sending).await;
        let answer = answer.map_err(|_| OriginError::ResponseTimeout {
            server: server(),
            limit: origin.response_timeout,
        })?;
        let mut failure = match answer {
            Ok(response) => return Ok(answered(response, connection, is_head)),
            Err(failure) => failure,
        };
        let unsent = failure.take_message();
        let source = failure.into_error();
        request = match (connection.reused, unsent, &again) {
            (true, Some(unsent), _) => unsent,
            (true, None, Some(again)) if source.is_incomplete_message() || is_broken(&source) => {
                head_of(again)
            }
            _ if source.is_user() => return Err(OriginError::ClientBody),
            _ => {
                return Err(OriginError::Answer {
                    server: server(),
                    source,
                });
            }
        };
        connection = pool
            .connect(origin.keep_alive, origin.connect_timeout)
            .await?;
    }
}

fn no_server(origin: &Origin) -> OriginError {
    let source = std::io::Error::other("the origin has no server");
    OriginError::Connect {
        server: origin.name.clone(),
        source,
    }
}

/// Whether the connection broke, as opposed to an answer that makes no sense.
fn is_broken(error: &hyper::Error) -> bool {
    use std::error::Error;
    error
        .source()
        .is_some_and(<dyn std::error::Error + 'static>::is::<std::io::Error>)
}

fn head_of<B>(request: &Request<B>) -> Request<FromClient> {
    let mut copy = Request::new(FromClient::none());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

fn answered(
    response: Response<Incoming>,
    connection: Connection,
    is_head: bool,
) -> Response<ToClient> {
    let status = response.status();
    let length = response
        .headers()
        .get(http::header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok());
    let bodiless =
        is_head || status == StatusCode::NOT_MODIFIED || status == StatusCode::NO_CONTENT;
    let size = match (bodiless, length, response.body().size_hint().exact()) {
        (true, Some(length), _) | (false, _, Some(length)) => BodySize::Sized(length),
        (true, None, _) => BodySize::None,
        (false, _, None) => BodySize::Stream,
    };
    response.map(|body| ToClient::new(body, size, connection))
}

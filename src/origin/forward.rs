use std::cell::Cell;
use std::error::Error;
use std::time::Duration;

use http::header::{HOST, HeaderValue, UPGRADE};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::answer;
use super::body::{FromClient, ToClient, Upload};
use super::connection::{Connection, Pools};
use super::error::OriginError;
use super::server::InFlight;
use super::servers::Origin;
use crate::config::{HostRule, ServerUrl};
use crate::limit::Moment;
use crate::pacer::Pacer;

/// What became of a request at the origin.
pub struct Forwarded {
    /// The server that was asked last, if any was.
    pub server: Option<ServerUrl>,
    /// How long it took until there was an answer's head, or none.
    pub took: Duration,
    /// Whether some of the client's body was left unread.
    pub unread: bool,
    /// The answer, or why there is none.
    pub answer: Result<Response<ToClient>, OriginError>,
}

/// Sends a request to the origin and waits for the head of its answer.
///
/// A request is sent once more, on a new connection, where a kept one broke that the origin was perhaps just closing: if
/// nothing of it had been written, or the method is idempotent and there is no body. Where a server could not be reached
/// the other connection is to another server.
pub async fn forward(
    pools: &Pools,
    pacer: &Pacer,
    origin: &Origin,
    request: Request<FromClient>,
) -> Forwarded {
    let began = pacer.now();
    let mut server = None;
    let upload = request.body().upload();
    let answer = Attempt {
        pools,
        pacer,
        origin,
        began: Cell::new(began),
        server: &mut server,
    }
    .run(request)
    .await;
    match &answer {
        Ok(_) | Err(OriginError::ClientBody(_)) => {}
        Err(error) => origin.tell_unanswered(error, pacer.now()),
    }
    Forwarded {
        server,
        took: pacer.now().since(began),
        unread: !upload.is_over(),
        answer,
    }
}

struct Attempt<'a> {
    pools: &'a Pools,
    pacer: &'a Pacer,
    origin: &'a Origin,
    /// When it had its place at the origin; before, when it asked for one.
    began: Cell<Moment>,
    server: &'a mut Option<ServerUrl>,
}

impl Attempt<'_> {
    async fn run(
        self,
        mut request: Request<FromClient>,
    ) -> Result<Response<ToClient>, OriginError> {
        let wanted = request.headers().get(UPGRADE).cloned();
        let again = (request.method().is_idempotent() && request.body().is_none())
            .then(|| head_of(&request));
        let settings = self.origin.settings();
        let mut in_flight = self.origin.admit(self.began.get()).await?;
        self.began.set(self.pacer.now());
        *self.server = Some(in_flight.server().clone());
        if again.is_none() {
            // It cannot be sent twice: first hear whether the origin has closed any of the kept connections.
            tokio::task::yield_now().await;
        }
        let kept = self.pools.of(in_flight.at()).take(settings);
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect(&mut in_flight).await?,
        };
        *self.server = Some(in_flight.server().clone());
        loop {
            self.set_host(&mut request, in_flight.server());
            let limit = settings.response_timeout;
            let upload = request.body().upload();
            let sending = connection.sender.try_send_request(request);
            let answer = tokio::select! {
                biased;
                answer = sending => Some(answer),
                () = self.silence(&upload, limit) => None,
            };
            let Some(answer) = answer else {
                let server = in_flight.server().to_string();
                return Err(self.failed(&in_flight, OriginError::ResponseTimeout { server, limit }));
            };
            let mut failure = match answer {
                Ok(response) => {
                    return self.bring(response, connection, in_flight, wanted.as_ref());
                }
                Err(failure) => failure,
            };
            let unsent = failure.take_message();
            let source = failure.into_error();
            if let Some(broken) = source.source().and_then(|source| source.downcast_ref()) {
                return Err(OriginError::ClientBody(*broken));
            }
            request = match (connection.reused, unsent, &again) {
                (true, Some(unsent), _) => unsent,
                (true, None, Some(again))
                    if source.is_incomplete_message() || is_broken(&source) =>
                {
                    head_of(again)
                }
                _ => {
                    let server = in_flight.server().to_string();
                    return Err(self.failed(&in_flight, OriginError::Answer { server, source }));
                }
            };
            connection = self.connect(&mut in_flight).await?;
            *self.server = Some(in_flight.server().clone());
        }
    }

    /// The answer, whose body is still to come.
    fn bring(
        &self,
        mut response: Response<Incoming>,
        connection: Connection,
        in_flight: InFlight,
        wanted: Option<&HeaderValue>,
    ) -> Result<Response<ToClient>, OriginError> {
        if let Err(unsound) = answer::check(&mut response, wanted) {
            let server = in_flight.server().to_string();
            return Err(self.failed(&in_flight, OriginError::Unsound { server, unsound }));
        }
        in_flight.answered(self.took());
        let changes = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        Ok(response.map(|body| {
            if changes {
                ToClient::of_tunnel(body, in_flight)
            } else {
                ToClient::new(body, connection, in_flight)
            }
        }))
    }

    /// A new connection, to another server where the first cannot be reached: nothing was sent yet.
    async fn connect(&self, in_flight: &mut InFlight) -> Result<Connection, OriginError> {
        let first = match self.connect_to(in_flight).await {
            Ok(connection) => return Ok(connection),
            Err(error) => self.failed(in_flight, error),
        };
        if self.origin.another(in_flight, self.pacer.now()).is_err() {
            return Err(first);
        }
        let connection = self.connect_to(in_flight).await;
        connection.map_err(|error| self.failed(in_flight, error))
    }

    async fn connect_to(&self, in_flight: &InFlight) -> Result<Connection, OriginError> {
        let pool = self.pools.of(in_flight.at());
        pool.connect(self.origin.settings(), self.origin.dialer())
            .await
    }

    /// Until the origin has had all that the client has sent so far for as long as `limit`.
    async fn silence(&self, upload: &Upload, limit: Duration) {
        let sent = self.pacer.now();
        loop {
            let left = (sent.max(upload.last_piece()) + limit).since(self.pacer.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    fn set_host(&self, request: &mut Request<FromClient>, server: &ServerUrl) {
        let name = match &self.origin.settings().host {
            HostRule::Preserve => return,
            HostRule::Origin => server.authority(),
            HostRule::Literal(name) => name.clone(),
        };
        if let Ok(name) = name.parse() {
            request.headers_mut().insert(HOST, name);
        }
    }

    fn failed(&self, in_flight: &InFlight, error: OriginError) -> OriginError {
        in_flight.failed(error.outcome(), self.took(), self.pacer.now());
        error
    }

    fn took(&self) -> Duration {
        self.pacer.now().since(self.began.get())
    }
}

/// Whether the connection broke, as opposed to an answer that makes no sense.
fn is_broken(error: &hyper::Error) -> bool {
    error
        .source()
        .is_some_and(<dyn Error>::is::<std::io::Error>)
}

fn head_of<B>(request: &Request<B>) -> Request<FromClient> {
    let mut copy = Request::new(FromClient::none());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

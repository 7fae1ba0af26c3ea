use std::error::Error;
use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use http::header::{HOST, HeaderMap, HeaderValue, UPGRADE};
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;

use super::answer;
use super::body::{FromClient, ToClient, Upload};
use super::connection::{Connection, Pools};
use super::error::OriginError;
use super::server::InFlight;
use super::servers::Origin;
use crate::config::{HostRule, ServerUrl};
use crate::limit::Moment;
use crate::pacer::Pacer;

/// Why there was no answer, and the request where none of it was written.
type Unanswered = TrySendError<Request<FromClient>>;

/// What became of a request at the origin.
pub struct Forwarded {
    /// The server that was asked last, if any was.
    pub server: Option<Arc<ServerUrl>>,
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
pub fn forward<'a>(
    pools: &'a Pools,
    pacer: &'a Pacer,
    origin: &'a Origin,
    request: Request<FromClient>,
) -> impl Future<Output = Forwarded> + use<'a> {
    let began = pacer.now();
    let mut attempt = Attempt {
        pools,
        pacer,
        origin,
        began,
        sent: began,
        answered: None,
        upload: request.body().upload(),
        request,
        server: None,
    };
    async move {
        let answer = attempt.run().await;
        let ended = attempt.answered.unwrap_or_else(|| pacer.now());
        match &answer {
            Ok(_) | Err(OriginError::ClientBody(_)) => {}
            Err(error) => origin.tell_unanswered(error, ended),
        }
        Forwarded {
            server: attempt.server,
            took: ended.since(began),
            unread: !attempt.upload.is_over(),
            answer,
        }
    }
}

struct Attempt<'a> {
    pools: &'a Pools,
    pacer: &'a Pacer,
    origin: &'a Origin,
    /// When it had its place at the origin; before, when it asked for one.
    began: Moment,
    /// When it had a connection to be sent on.
    sent: Moment,
    answered: Option<Moment>,
    upload: Upload,
    /// What is to be sent next. It stays here until then: each future that took it would have room for another.
    request: Request<FromClient>,
    server: Option<Arc<ServerUrl>>,
}

impl Attempt<'_> {
    async fn run(&mut self) -> Result<Response<ToClient>, OriginError> {
        let settings = self.origin.settings();
        let mut in_flight = self.origin.admit(self.began).await?;
        if settings.max_in_flight.is_some() {
            self.began = self.pacer.now();
            self.sent = self.began;
        }
        self.server = Some(Arc::clone(in_flight.server()));
        let wanted = self.request.headers().get(UPGRADE).cloned();
        let again = Again::of(&self.request);
        if again.is_none() {
            // It cannot be sent twice: first hear whether the origin has closed any of the kept connections.
            tokio::task::yield_now().await;
        }
        let kept = self.pools.of(in_flight.at()).take(settings);
        let mut connection = match kept {
            Some(connection) => connection,
            // Boxed, as mostly there is one: what waits for an answer should be small.
            None => Box::pin(self.connect(&mut in_flight)).await?,
        };
        loop {
            self.server = Some(Arc::clone(in_flight.server()));
            let Some(answer) = self.send(&mut connection, in_flight.server()).await else {
                let (server, limit) = (in_flight.server().to_string(), settings.response_timeout);
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
            self.request = match (connection.reused, unsent, &again) {
                (true, Some(unsent), _) => unsent,
                (true, None, Some(again))
                    if source.is_incomplete_message() || is_broken(&source) =>
                {
                    again.request()
                }
                _ => {
                    let server = in_flight.server().to_string();
                    return Err(self.failed(&in_flight, OriginError::Answer { server, source }));
                }
            };
            connection = Box::pin(self.connect(&mut in_flight)).await?;
        }
    }

    /// The answer, whose body is still to come.
    fn bring(
        &mut self,
        mut response: Response<Incoming>,
        connection: Connection,
        in_flight: InFlight,
        wanted: Option<&HeaderValue>,
    ) -> Result<Response<ToClient>, OriginError> {
        if let Err(unsound) = answer::check(&mut response, wanted) {
            let server = in_flight.server().to_string();
            return Err(self.failed(&in_flight, OriginError::Unsound { server, unsound }));
        }
        let now = self.pacer.now();
        self.answered = Some(now);
        in_flight.answered(now.since(self.began));
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
    async fn connect(&mut self, in_flight: &mut InFlight) -> Result<Connection, OriginError> {
        let connection = self.connect_to_any(in_flight).await;
        self.sent = self.pacer.now();
        connection
    }

    async fn connect_to_any(&self, in_flight: &mut InFlight) -> Result<Connection, OriginError> {
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

    /// Sends the request; `None` where the origin has had all that the client has sent so far for as long as
    /// `response_timeout`, and has not answered.
    fn send(
        &mut self,
        connection: &mut Connection,
        server: &ServerUrl,
    ) -> impl Future<Output = Option<Result<Response<Incoming>, Unanswered>>> {
        let mut request = mem::replace(&mut self.request, Request::new(FromClient::none()));
        self.set_host(&mut request, server);
        let limit = self.origin.settings().response_timeout;
        let (sent, upload) = (self.sent, &self.upload);
        let Connection {
            sender, silence, ..
        } = connection;
        let sending = sender.try_send_request(request);
        async move {
            let mut sending = pin!(sending);
            let answer = poll_fn(|cx| {
                if let Poll::Ready(answer) = sending.as_mut().poll(cx) {
                    return Poll::Ready(Some(answer));
                }
                silence.set(sent.max(upload.last_piece()) + limit);
                silence.poll(cx).map(|()| None)
            });
            let answer = answer.await;
            if answer.is_some() {
                return answer;
            }
            // Where the machine stood still, timers are seen to be due before the answer is seen to be there.
            tokio::task::yield_now().await;
            sending.now_or_never()
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
        let now = self.pacer.now();
        in_flight.failed(error.outcome(), now.since(self.began), now);
        error
    }
}

/// Whether the connection broke, as opposed to an answer that makes no sense.
fn is_broken(error: &hyper::Error) -> bool {
    error
        .source()
        .is_some_and(<dyn Error>::is::<std::io::Error>)
}

/// The head of a request that may be sent once more.
struct Again {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Again {
    /// `None` where sending it twice might do something twice, or there is a body.
    fn of(request: &Request<FromClient>) -> Option<Self> {
        let may = request.method().is_idempotent() && request.body().is_none();
        may.then(|| Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
        })
    }

    fn request(&self) -> Request<FromClient> {
        let mut request = Request::new(FromClient::none());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

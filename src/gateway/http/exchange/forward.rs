//! Forwards a request to the origin over an idle or a new connection, and its response back.
//!
//! `answer` receives the head, `download` the body, `hold` waits for an origin that cannot be
//! reached. A *permit* is the right to run one request at the origin (`Permit`, of the origin's
//! gate) or of a key (`InFlightPermits`, of zones). An *in-flight entry* (`InFlight`) counts the
//! request at its server. A *tied* connection is reserved for one client.

use std::io;
use std::pin::pin;
use std::time::Duration;

use config::{self, Balance, HostRule, Route};
use limit::{Moment, OriginTime};

use super::cost::UsedAdmissions;
use super::decision::Admitted;
use super::destination::Destination;
use super::failure::{Attempt, Failure};
use super::gate_progress::GateProgress;
use super::heads::{self, OriginRequest};
use super::key;
use super::limits::InFlightPermits;
use super::record::RequestRecord;
use super::reply::send;
use super::upload::Upload;
use crate::gate::{GateRejection, Permit};
use crate::http::downstream::{Aborted, ClientError, ClientStream, unless_disconnected};
use crate::http::message::logs_in_connection;
use crate::origin::{Connection, InFlight, Needs, Origin, OriginError, Sender};

/// Maximum number of times that a request is sent again on another connection.
const MAX_REPEATS: u8 = 2;

/// A request on its way to its origin, with the state of the exchange.
#[expect(clippy::struct_excessive_bools, reason = "each is independent")]
pub(super) struct Forward<'a, 'r> {
    pub(super) route: &'r Route,
    /// Index of the route's origin.
    pub(super) origin: usize,
    pub(super) client: &'a mut dyn ClientStream,
    pub(super) record: &'a mut RequestRecord<'r>,
    pub(super) upload: Upload,
    /// Permit of the gate. Moves to the in-flight entry of a server; `None` if there is no gate.
    pub(super) permit: Option<Box<Permit>>,
    /// Charges of its zones, if the response may change them.
    pub(super) used: UsedAdmissions<'r>,
    /// Permits of its keys in zones (`in_flight`), held until the response has arrived in full.
    pub(super) in_flight_permits: InFlightPermits<'r>,
    /// Instant at which the request departed to its origin.
    pub(super) began: Moment,
    /// Stopwatch of the time at the origin. It stands still while the client is waited for.
    pub(super) origin_time: OriginTime,
    /// Instant at which the request had a connection, and began to be sent.
    pub(super) sent_at: Moment,
    /// Instant at which bytes of the response last arrived for which the gateway had waited.
    pub(super) last_byte: Moment,
    /// With `hold`: instant at which the request first could not be sent, or was lost.
    pub(super) held_since: Option<Moment>,
    /// Whether the client has received a `100 Continue`.
    pub(super) has_continued: bool,
    /// Whether the request is a gRPC call on an HTTP/2 connection. A call may be silent for longer.
    pub(super) is_grpc_call: bool,
    /// Whether the head of any response has arrived, even an interim one.
    ///
    /// If so, the request is not sent again.
    pub(super) has_received_head: bool,
    /// Whether the response is an event stream, a gRPC call or an upgraded connection.
    ///
    /// Known only with `on_client_gone = "finish"`.
    pub(super) is_stream: bool,
    /// Whether the measurement of the origin's work has ended.
    pub(super) has_ended_work: bool,
    /// Fields listed in the response's `Connection`, if trailers may follow.
    pub(super) connection_options: Vec<Box<[u8]>>,
}

/// In-flight entry of a request at the server picked for it, or why no server is available.
pub(super) type Picked<'r> = Result<InFlight<'r>, OriginError>;

/// Connection and in-flight entry of a request, until the last byte of the response has arrived.
pub(super) type AtOrigin<'r> = Option<(Connection, InFlight<'r>)>;

/// Kind of a response's head.
pub(super) enum ResponseKind {
    /// An interim response; another head follows.
    Interim,
    /// A 101: the connection has switched to another protocol.
    Switched,
    /// The final response. `keeps`: the connection may be kept afterwards, here and below.
    Final { keeps: bool },
    /// The client gets a stale answer instead of the response.
    Superseded { keeps: bool },
    /// A page of the route replaces the response. `retry_after` is in seconds; 0: there is none.
    ///
    /// This type is part of each waiting request, so it must be small.
    Replaced { keeps: bool, retry_after: u32 },
}

impl<'a, 'r: 'a> Forward<'a, 'r> {
    /// Creates the state of a request that may go to its origin.
    pub(super) fn new(
        admitted: Admitted<'r>,
        client: &'a mut dyn ClientStream,
        record: &'a mut RequestRecord<'r>,
    ) -> Self {
        let Destination { route, origin } = admitted.to;
        // The clock is read only if the request waited at the gate, or may have waited as a
        // follower.
        let began = match &record.at_gate {
            // The request waited at the gate.
            Some(GateProgress::Passed(span)) if !span.is_zero() => record.now(),
            // The request may have waited as a follower.
            _ if route.collapse.is_some() => record.now(),
            _ => record.began + record.waited(),
        };
        Self {
            route,
            origin,
            client,
            upload: Upload::new(record.gateway.settings().server.max_body_size),
            record,
            permit: admitted.permit,
            used: admitted.used,
            in_flight_permits: admitted.in_flight_permits,
            began,
            origin_time: OriginTime::NEW,
            sent_at: began,
            last_byte: began,
            held_since: None,
            has_continued: false,
            is_grpc_call: false,
            has_received_head: false,
            is_stream: false,
            has_ended_work: false,
            connection_options: Vec::new(),
        }
    }

    /// Sends the request to its origin and forwards the response to the client.
    ///
    /// The request is sent again on a new connection in these cases:
    /// - An idle connection failed, perhaps because the server was just closing it, and no byte of
    ///   the request was written.
    /// - An idle connection failed, the method is idempotent, and the body is empty or completely
    ///   in `request_buffer`.
    /// - The server reported over HTTP/2 that it did not process the request.
    /// - With `hold`, once: a new connection of such an idempotent request ended before any byte of
    ///   a response.
    ///
    /// If a server cannot be reached, the other connection is to another server.
    pub(super) fn run(mut self) -> impl Future<Output = Result<(), Aborted>> {
        async move {
            match self.exchange().await {
                Ok(()) => Ok(()),
                Err(failure) => self.fail(failure)?.await,
            }
        }
    }

    /// Sends the response to a request that got none from its origin.
    fn fail(self, failure: Failure) -> Result<impl Future<Output = Result<(), Aborted>>, Aborted> {
        if let Failure::Origin(error) = &failure {
            let now = self.record.now();
            self.record.note_origin_ended(self.origin_took(now), now);
            self.origin().log_unanswered(error, now);
        }
        let reply = failure.reply(self.route, self.client.has_begun())?;
        Ok(send(reply, self.client, self.record))
    }

    /// Returns the time for which the origin has had the request until `now`.
    pub(super) fn origin_took(&self, now: Moment) -> Duration {
        self.origin_time.since(self.began, now)
    }

    /// Returns the origin of the request.
    pub(super) fn origin(&self) -> &'r Origin {
        self.record.gateway.origin(self.origin)
    }

    /// Returns the configuration of the origin.
    pub(super) fn settings(&self) -> &'r config::Origin {
        self.origin().settings()
    }

    /// Returns the hash by which the origin chooses a server; `None` if it uses no hash.
    pub(super) fn hash(&self) -> Option<u64> {
        match &self.settings().balance {
            Balance::Hash(template) => key::hash(template, self.record.info, self.route),
            Balance::LeastInFlight => None,
        }
    }

    /// Sends the request, and forwards the response. Fails if there is no complete response.
    async fn exchange(&mut self) -> Result<(), Failure> {
        let head = self.record.info.head;
        let may_repeat = head.is_idempotent() && (head.length().is_empty() || self.client.rewind());
        // A request that must not be sent twice takes only connections that are certainly open.
        let mut at_origin = None;
        {
            // `finding`: opens a connection, if there is no idle one.
            let finding = match self.find_idle(!may_repeat) {
                Ok(found) => {
                    at_origin = Some(found);
                    None
                }
                // Boxed: usually there is an idle connection, and the state of a waiting request
                // should be small.
                Err(picked) => Some(Box::pin(self.connect_first(picked))),
            };
            if let Some(finding) = finding {
                at_origin = Some(finding.await?);
            }
        }
        let Some((connection, in_flight)) = &mut at_origin else {
            return Err(Failure::Broken);
        };
        self.write_head(connection, in_flight)?;
        // Sends the request, and waits for a head. If the connection fails, sends it again where
        // that is safe.
        // `is_resent`: the request was lost with a connection once, and was sent again.
        let (mut repeats, mut is_resent) = (0, false);
        let answer = loop {
            match self.wait_for_answer(connection, in_flight).await {
                Ok(answer) => break answer,
                Err(Attempt::Failed(failure)) => {
                    let failure = self.give_up(in_flight, failure);
                    if self.continues_without_client(&failure) {
                        Box::pin(self.finish(&mut at_origin)).await;
                    }
                    return Err(failure);
                }
                Err(Attempt::Closed(source)) => {
                    // The server has refused or certainly not seen the request, or an idle
                    // connection failed and the request may be sent twice.
                    let may_resend = connection.is_refused()
                        || connection.is_reused() && (may_repeat || connection.is_unseen());
                    // With `hold`, a request is sent again once if a new connection is closed, too:
                    // the server may be restarting.
                    let is_lost = !may_resend && may_repeat && !is_resent && self.has_hold_left();
                    let is_lost = is_lost && connection.is_down();
                    if !(may_resend || is_lost) || repeats == MAX_REPEATS {
                        let server = in_flight.server().to_string();
                        let error = OriginError::Broken { server, source };
                        return Err(self.give_up(in_flight, Failure::Origin(error)));
                    }
                    repeats += 1;
                    if is_lost {
                        is_resent = true;
                        self.record_lost(in_flight, &source);
                    }
                    Box::pin(self.reconnect(in_flight, connection, source)).await?;
                }
            }
        };
        // For a final response, this is noted once its body does not arrive at once.
        if !matches!(answer, ResponseKind::Final { .. }) {
            in_flight.note_begun();
        }
        // Forwards the body, or ends the exchange, by the kind of the head.
        match answer {
            ResponseKind::Final { keeps } => {
                let carried = match self.settings().response_buffer {
                    None => self.carry_body(&mut at_origin, keeps).await,
                    // Boxed: few origins have a response buffer.
                    Some(size) => Box::pin(self.read_ahead(&mut at_origin, keeps, size)).await,
                };
                if let Err(failure) = &carried {
                    self.client.report_unanswered();
                    if self.continues_without_client(failure) {
                        Box::pin(self.finish_body(&mut at_origin, keeps)).await;
                    }
                }
                carried
            }
            ResponseKind::Superseded { keeps } => {
                Box::pin(self.end_replaced(at_origin, keeps)).await;
                Ok(())
            }
            ResponseKind::Replaced { keeps, retry_after } => {
                Box::pin(self.replace(at_origin, keeps, retry_after)).await
            }
            _ => Box::pin(self.carry_tunnel(at_origin)).await,
        }
    }

    /// Returns the client and the route of the request, for listings of requests in flight.
    pub(super) fn sender(&self) -> Sender {
        Sender {
            client: self.record.info.client.address,
            route: self.record.route,
        }
    }

    /// Picks a server, and gives it the request's permit.
    #[inline]
    pub(super) fn pick(&mut self) -> Picked<'r> {
        let picked = (self.origin()).pick(self.sender(), self.began, || self.hash());
        let mut in_flight = picked?;
        in_flight.set_permit(self.permit.take());
        self.record.server = Some(in_flight.server());
        Ok(in_flight)
    }

    /// Picks a server and takes an idle connection to it, without waiting.
    ///
    /// Returns `Err` if there is no idle connection to the picked server, or no server. `verified`:
    /// takes only a connection that the kernel reports as open.
    fn find_idle(&mut self, verified: bool) -> Result<(Connection, InFlight<'r>), Picked<'r>> {
        if let Some(found) = self.find_tied(verified) {
            return Ok(found);
        }
        let in_flight = self.pick().map_err(Err)?;
        let pool = self.record.worker.pools.of(in_flight.at_server());
        match pool.take(self.settings(), self.needs(), self.began, verified) {
            Some(idle) => Ok((idle, in_flight)),
            None => Err(Ok(in_flight)),
        }
    }

    /// Takes a connection that is tied to this client, which may be logged in on it.
    fn find_tied(&mut self, verified: bool) -> Option<(Connection, InFlight<'r>)> {
        let tied = self.record.info.context.tied()?;
        let found = (self.origin()).pick_tied(tied, self.sender(), self.began, verified);
        let (connection, mut in_flight) = found?;
        self.record.server = Some(in_flight.server());
        in_flight.set_permit(self.permit.take());
        Some((connection, in_flight))
    }

    /// Returns the connection of a complete exchange to its pool, or to its client.
    pub(super) fn give_back(&self, connection: Connection, in_flight: &InFlight<'_>) {
        let client = || self.record.info.context.tied_or_new();
        connection.give_back(self.settings(), self.last_byte, in_flight, client);
    }

    /// Opens the first connection of a request, to the picked server.
    async fn connect_first(
        &mut self,
        picked: Picked<'r>,
    ) -> Result<(Connection, InFlight<'r>), Failure> {
        let mut in_flight = match picked {
            Ok(picked) => picked,
            Err(none_available) => {
                let since = self.note_held(none_available.is_full());
                let permit = self.permit.take();
                return Box::pin(self.connect_when_back(permit, none_available, since)).await;
            }
        };
        let connection = self.connect(&mut in_flight).await?;
        Ok((connection, in_flight))
    }

    /// Replaces the connection of a request after it failed.
    async fn reconnect(
        &mut self,
        in_flight: &mut InFlight<'r>,
        connection: &mut Connection,
        source: io::Error,
    ) -> Result<(), Failure> {
        let first = in_flight.server();
        let mut broken = std::mem::replace(connection, self.connect(in_flight).await?);
        // Whether the unsent head also fits the new server.
        let head_fits = first == in_flight.server() || self.settings().host != HostRule::Origin;
        if !self.upload.has_begun() || self.client.rewind() {
            self.upload = Upload::new(self.record.gateway.settings().server.max_body_size);
            self.write_head(connection, in_flight)?;
        } else if connection.take_over_body(&mut broken) {
            self.write_head(connection, in_flight)?;
            self.upload.resume();
        } else if head_fits && connection.take_over(&mut broken) {
            self.upload.resume();
        } else {
            // The unsent head names the first server. It cannot be replaced, because body bytes
            // after it were already read; or more bytes were sent on a stream than are kept.
            let server = first.to_string();
            let error = OriginError::Broken { server, source };
            return Err(self.record_failure(in_flight, Failure::Origin(error)));
        }
        Ok(())
    }

    /// Writes the head of the request to the connection.
    ///
    /// A target or host that HTTP/2 cannot carry is the client's error. Nothing is sent if the
    /// request's permit has expired: several gateways share permits by leases.
    fn write_head(
        &mut self,
        connection: &mut Connection,
        in_flight: &InFlight<'_>,
    ) -> Result<(), Failure> {
        if !in_flight.may_start() {
            return Err(Failure::Rejected(GateRejection::LEASE_ENDED));
        }
        self.is_grpc_call =
            matches!(connection, Connection::Http2(_)) && self.record.info.head.is_grpc();
        self.client.let_body_pause(self.is_grpc_call);
        if self.is_grpc_call {
            in_flight.note_begun();
        }
        let traceparent = self.record.traceparent();
        let request = OriginRequest {
            info: self.record.info,
            route: self.route,
            server: in_flight.server(),
            host: &self.settings().host,
            traceparent: traceparent.as_deref().map(str::as_bytes),
            request_id: self.record.request_id(),
        };
        match connection {
            Connection::Http1(connection) => {
                if logs_in_connection(self.record.info.fields()) {
                    connection.is_tied = true;
                }
                let sender = &mut connection.sender;
                heads::write_request(sender.head(), &request);
                sender.begin_body(self.record.info.head.length());
            }
            Connection::Http2(exchange) => {
                let request = heads::http2_request(&request);
                exchange.begin(request.map_err(|_| ClientError::Malformed)?);
            }
        }
        Ok(())
    }

    /// Returns the kind of connection that the request needs.
    fn needs(&self) -> Needs {
        match heads::requested_upgrade(self.record.info.head) {
            Some(_) => Needs::Http1,
            None if logs_in_connection(self.record.info.fields()) => Needs::Own,
            None => Needs::Any,
        }
    }

    /// Opens a new connection, to another server if the first cannot be reached.
    ///
    /// This is safe because nothing was sent yet. nginx does the same (`proxy_next_upstream error
    /// timeout`, its default).
    async fn connect(&mut self, in_flight: &mut InFlight<'r>) -> Result<Connection, Failure> {
        let mut connection = self.connect_to_any(in_flight).await;
        if let Err(Failure::Origin(error)) = connection {
            connection = Box::pin(self.connect_later(in_flight, error)).await;
        }
        self.sent_at = self.record.now();
        self.record.server = Some(in_flight.server());
        connection
    }

    /// Opens a connection to the picked server, or else tries each other server once.
    pub(super) async fn connect_to_any(
        &mut self,
        in_flight: &mut InFlight<'r>,
    ) -> Result<Connection, Failure> {
        match self.connect_to(in_flight).await? {
            Ok(connection) => Ok(connection),
            // The gateway itself caused the error: other servers would fail, too.
            Err(error) if error.is_own() => Err(Failure::Origin(error)),
            Err(error) => {
                let failure = self.record_failure(in_flight, Failure::Origin(error));
                Box::pin(self.connect_to_others(in_flight, failure)).await
            }
        }
    }

    /// Opens a connection to the picked server. The outer error is that of the client.
    pub(super) async fn connect_to(
        &self,
        in_flight: &InFlight<'_>,
    ) -> Result<Result<Connection, OriginError>, ClientError> {
        let pool = self.record.worker.pools.of(in_flight.at_server());
        let connecting = pool.connect(self.settings(), self.origin().dialer(), self.needs());
        unless_disconnected(self.client, pin!(connecting)).await
    }

    /// Records that the request gets no response, or only a part, while it still holds its permit.
    fn give_up(&mut self, in_flight: &InFlight<'_>, failure: Failure) -> Failure {
        self.client.report_unanswered();
        if matches!(failure, Failure::Origin(_)) {
            // `false`: the origin did not answer.
            self.end_work(in_flight, false);
        }
        self.record_failure(in_flight, failure)
    }

    /// Records that the server gave no response, if the server caused that. Returns the failure.
    pub(super) fn record_failure(&self, in_flight: &InFlight<'_>, failure: Failure) -> Failure {
        if let Failure::Origin(error) = &failure {
            let now = self.record.now();
            in_flight.failed(error, self.origin_took(now), now, self.is_impatient());
        }
        failure
    }

    /// Returns whether the route has a shorter `response_timeout` than the origin.
    ///
    /// Then a timeout does not count as a failure of the server.
    fn is_impatient(&self) -> bool {
        let of_route = self.route.response_timeout;
        of_route.is_some_and(|of_route| of_route < self.settings().response_timeout)
    }
}

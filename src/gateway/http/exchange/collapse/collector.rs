//! The client of a leader: collects the origin's answer for the followers, too.
//!
//! A *leader* is the request that fetches an answer from the origin; *followers* are requests that
//! wait for this answer. `lead` runs the leader; `own_copy` sends the collected bytes to the
//! leader's own client.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::own_copy::{OwnCopy, Source};
use crate::collapse::{
    AnswerBody, AnswerFields, AnswerHead, Gathered, Head, Leader, SharedAnswer, Verdict,
};
use crate::gate::{Permit, ReservedPosition};
use crate::http::downstream::{
    ClientError, ClientStream, EachField, OriginHead, Polled, Response, Wait,
};
use crate::http::message::{Buffer, FieldName, Then, Trailers, with_date};
use crate::time::clock;
use crate::time::pacer::Pacer;

/// Client of a leader: passes the answer to its own client, if there is one, and to the followers.
///
/// The answer is read as fast as the origin sends it, however slowly the client reads. It is read
/// to its end while followers wait for it, even if the client has disconnected.
pub(super) struct Collector<'c> {
    /// `None` if the answer is fetched only to refresh a stale one.
    client: Option<&'c mut dyn ClientStream>,
    /// Whether the client has disconnected.
    has_lost_client: Cell<bool>,
    /// The leader's side towards its followers; `None` once they have their answer or were
    /// released.
    leader: Option<Leader>,
    pacer: &'c Pacer,
    stage: Stage,
    /// Progress of the leader's own client.
    own_copy: OwnCopy,
}

/// Progress of the origin's answer.
enum Stage {
    /// No head has arrived.
    Ahead,
    /// The answer is being collected.
    Gathering(Gathered),
    /// The answer is complete. The client may still read it.
    Complete(Arc<AnswerBody>),
    /// The answer is for this client only. The client gets these collected bytes first.
    Passing(Option<Arc<AnswerBody>>),
    /// The client gets this stale answer instead.
    Stale(Arc<SharedAnswer>),
}

impl<'c> Collector<'c> {
    pub(super) fn new(
        client: Option<&'c mut dyn ClientStream>,
        leader: Leader,
        pacer: &'c Pacer,
    ) -> Self {
        Self {
            client,
            has_lost_client: Cell::new(false),
            leader: Some(leader),
            pacer,
            stage: Stage::Ahead,
            own_copy: OwnCopy::default(),
        }
    }

    /// Takes the position in the gate's queue that the previous leader left to this one, if any.
    pub(super) fn take_reserved(&mut self) -> Option<ReservedPosition> {
        self.leader.as_mut().and_then(Leader::take_reserved)
    }

    /// Notes that the request departs to the origin.
    pub(super) fn note_departure(&mut self, permit: Option<&Permit>) {
        if let Some(leader) = &mut self.leader {
            leader.record_departure(permit.map(Permit::departed), self.pacer.now());
        }
    }

    /// Returns whether the answer is fetched only to refresh a stale one, without a client.
    pub(super) fn is_refresh(&self) -> bool {
        self.client.is_none()
    }

    /// Returns whether the client has disconnected.
    pub(super) fn has_lost_client(&self) -> bool {
        self.has_lost_client.get()
    }

    /// Returns whether the gateway dropped the client to free the memory of its unread bytes.
    pub(super) fn is_cut_off(&self) -> bool {
        match &self.stage {
            Stage::Complete(body) | Stage::Passing(Some(body)) => {
                self.has_lost_client() && body.is_cut_off()
            }
            _ => false,
        }
    }

    /// Takes the stale answer that the client gets instead of the origin's, if there is one.
    pub(super) fn take_stale(&mut self) -> Option<Arc<SharedAnswer>> {
        let Stage::Stale(stale) = &self.stage else {
            return None;
        };
        let stale = Arc::clone(stale);
        self.stage = Stage::Passing(None);
        Some(stale)
    }

    /// Stops sharing an answer that is too large. `collected`: bytes that the client gets first.
    fn stop_sharing(&mut self, collected: Option<Arc<AnswerBody>>) {
        if let Some(leader) = self.leader.take() {
            leader.end_too_large(self.pacer.now());
        }
        self.stage = Stage::Passing(collected);
    }

    /// Returns the collected bytes that the client has not received; `None` if there is no client.
    fn take_rest(&mut self, gathered: Gathered) -> Option<Arc<AnswerBody>> {
        let sent = self.own_copy.take_sent();
        let has_client = self.client.is_some() && !self.has_lost_client.get();
        gathered.into_rest(sent).filter(|_| has_client)
    }

    /// Adds a piece of the answer. If the answer becomes too large, only this client gets it.
    fn add_piece(&mut self, piece: &mut Buffer) {
        let stage = std::mem::replace(&mut self.stage, Stage::Ahead);
        let (Stage::Gathering(mut gathered), Some(leader)) = (stage, &self.leader) else {
            return;
        };
        if leader.add(&mut gathered, piece.filled()) {
            piece.clear_for_body();
            self.stage = Stage::Gathering(gathered);
        } else {
            let rest = self.take_rest(gathered);
            self.stop_sharing(rest);
        }
    }

    /// Completes the collected answer.
    fn complete_answer(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Ahead);
        if let (Stage::Gathering(gathered), Some(leader)) = (stage, self.leader.take()) {
            let answer = leader.complete(gathered, self.pacer.now());
            self.stage = Stage::Complete(Arc::clone(answer.body()));
        }
    }

    /// Sends the collected bytes to the client. `end`: sent after them, if the answer is complete.
    fn poll_own_client(&mut self, cx: &mut Context<'_>, end: Option<Then<'_>>) -> Polled {
        let client = self.client.as_deref_mut();
        let Some(client) = client.filter(|_| !self.has_lost_client.get()) else {
            return Poll::Ready(Ok(()));
        };
        let source = match &self.stage {
            Stage::Gathering(gathered) => Source::Gathered(gathered.body()),
            Stage::Complete(body) | Stage::Passing(Some(body)) => Source::Body(body),
            Stage::Ahead | Stage::Passing(None) | Stage::Stale(_) => Source::Gathered(&[]),
        };
        let sent = self.own_copy.poll_send(client, cx, source, end);
        if matches!(sent, Poll::Ready(Err(_))) {
            self.has_lost_client.set(true);
        }
        sent
    }
}

/// Returns the fields that every client gets. `Age` is left out: it is computed for each client.
fn shared_fields(origin: &OriginHead<'_>) -> AnswerFields {
    let mut fields = AnswerFields::default();
    (origin.passing)(&mut |name, value| {
        if !name.eq_ignore_ascii_case(b"age") && !name.eq_ignore_ascii_case(b"x-drip-shared") {
            fields.push(name, value);
        }
    });
    if !origin.head.fields().has(FieldName::Date) {
        with_date(origin.arrived, |date| fields.push(b"Date", date));
    }
    fields
}

impl ClientStream for Collector<'_> {
    /// Ready when the client has disconnected and no follower waits for the answer.
    fn poll_disconnected<'s>(&'s self, wait: &mut Wait<'s>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(client) = self.client.as_deref() else {
            return Poll::Pending;
        };
        if !self.has_lost_client() {
            ready!(client.poll_disconnected(wait, cx));
            self.has_lost_client.set(true);
        }
        let leader = self.leader.as_ref();
        leader.map_or(Poll::Ready(()), |leader| leader.poll_alone(cx))
    }

    fn is_disconnected(&self, cx: &mut Context<'_>) -> bool {
        let client = self.client.as_deref();
        self.leader.is_none() && client.is_some_and(|client| client.is_disconnected(cx))
    }

    /// Returns the end of the body at once: a request with a body never leads.
    fn poll_body(&mut self, _cx: &mut Context<'_>, _piece: &mut Buffer) -> Polled {
        Poll::Ready(Ok(()))
    }

    fn body_is_over(&self) -> bool {
        true
    }

    fn trailers(&self) -> Option<&Trailers> {
        None
    }

    fn send_interim(&mut self, status: u16, reason: &[u8], fields: EachField<'_>) {
        if let Some(client) = self.client.as_deref_mut() {
            client.send_interim(status, reason, fields);
        }
    }

    /// Starts to collect the answer with this head, if it may be shared.
    fn offer(&mut self, origin: &OriginHead<'_>) -> bool {
        let Some(leader) = &self.leader else {
            return false;
        };
        let (head, collapse) = (origin.head, leader.collapse());
        let fields = head.fields().iter().map(|(_, name, value)| (name, value));
        // Rules of HTTP caches, and of the route.
        let verdict = Head {
            status: head.status,
            fields: &fields.collect::<Vec<_>>(),
            sent: clock::to_wall(origin.sent),
            arrived: clock::to_wall(origin.arrived),
        }
        .judge(collapse);
        let is_too_large = |length| length > collapse.max_size.get();
        match verdict {
            Verdict::Shared(_) if head.length.exact().is_some_and(is_too_large) => {
                self.stop_sharing(None);
            }
            Verdict::Shared(terms) => {
                let answer = AnswerHead {
                    status: head.status,
                    reason: head.reason().to_vec(),
                    fields: shared_fields(origin),
                    arrived: origin.arrived,
                    terms,
                    billed: origin.billed,
                };
                let gathered = leader.gather(answer, head.length.exact().is_some());
                self.stage = Stage::Gathering(gathered);
                return true;
            }
            Verdict::Failed => self.report_unanswered(),
            Verdict::Unshareable => {
                if let Some(leader) = self.leader.take() {
                    leader.end_private(self.pacer.now());
                }
                self.stage = Stage::Passing(None);
            }
        }
        false
    }

    /// Ends the lead without a shared answer. The next follower leads, or a stale answer is used.
    fn report_unanswered(&mut self) {
        let Some(leader) = self.leader.take() else {
            return;
        };
        let stale = leader.end_failed(self.pacer.now());
        if matches!(self.stage, Stage::Ahead) {
            self.stage = stale.map_or(Stage::Passing(None), Stage::Stale);
        }
    }

    /// Lets all clients have a stale answer, if there is one; else the followers wait, too.
    fn report_held(&mut self) -> bool {
        let is_refresh = self.is_refresh();
        let Some(leader) = &mut self.leader else {
            return false;
        };
        let stale = leader.stand_in(is_refresh, self.pacer.now());
        if let Some(stale) = stale.filter(|_| !is_refresh) {
            self.leader = None;
            self.stage = Stage::Stale(stale);
            return true;
        }
        leader.hold();
        false
    }

    fn report_resumed(&mut self) {
        if let Some(leader) = &self.leader {
            leader.resume(self.pacer.now());
        }
    }

    fn is_superseded(&self) -> bool {
        matches!(self.stage, Stage::Stale(_))
    }

    fn begin(&mut self, response: &Response<'_>) {
        if matches!(self.stage, Stage::Ahead) {
            // The gateway made this response itself.
            self.report_unanswered();
        }
        let is_replaced = matches!(self.stage, Stage::Stale(_));
        if let Some(client) = self.client.as_deref_mut()
            && !is_replaced
            && !self.has_lost_client.get()
        {
            client.begin(response);
        }
    }

    fn has_begun(&self) -> bool {
        let has_begun = self.client.as_deref().is_some_and(ClientStream::has_begun);
        has_begun || matches!(self.stage, Stage::Stale(_))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, piece: &mut Buffer, then: Then<'_>) -> Polled {
        if let Stage::Gathering(_) = &self.stage {
            self.add_piece(piece);
        }
        match (&self.stage, then) {
            (Stage::Gathering(_), Then::End(_)) => self.complete_answer(),
            (Stage::Gathering(_), Then::More) => {
                // The followers do not wait for this client.
                // `None`: the answer is not complete.
                let _client = self.poll_own_client(cx, None);
                return Poll::Ready(Ok(()));
            }
            _ => {}
        }
        match &self.stage {
            // If the client disconnects, the answer of the origin is complete nevertheless.
            Stage::Complete(_) => return self.poll_own_client(cx, Some(then)).map(|_| Ok(())),
            Stage::Stale(_) => {
                // The client gets the stale answer instead of the gateway's own short response.
                piece.clear_for_body();
                return Poll::Ready(Ok(()));
            }
            // The client gets the collected bytes before the next ones.
            Stage::Passing(collected) if collected.is_some() || self.own_copy.is_sending() => {
                ready!(self.poll_own_client(cx, None))?;
                self.stage = Stage::Passing(None);
            }
            _ => {}
        }
        // The answer is for this client alone, and is not collected.
        match self.client.as_deref_mut() {
            Some(client) if !self.has_lost_client.get() => client.poll_send(cx, piece, then),
            _ => Poll::Ready(Err(ClientError::Disconnected)),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Polled {
        let Some(client) = self.client.as_deref_mut() else {
            return Poll::Ready(Ok(()));
        };
        if self.leader.is_none() {
            return client.poll_flush(cx);
        }
        // Followers wait for the origin and must not wait for this client.
        if !self.has_lost_client.get() && matches!(client.poll_flush(cx), Poll::Ready(Err(_))) {
            self.has_lost_client.set(true);
        }
        Poll::Ready(Ok(()))
    }
}

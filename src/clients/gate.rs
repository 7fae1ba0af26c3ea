use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::exchange::Exchange;
use super::framing::{self, Body, Refusal};
use super::last_words::last_words;
use super::patience::Patience;
use super::socket::{Socket, has_left};
use crate::deadline::Deadline;
use crate::gather;

/// Bytes of further requests that are kept while one is under way; the rest stay with the kernel.
const MOST_AHEAD: usize = 4 * 1024;
/// How often it is looked whether a client has left from whom nothing more is read.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a client that still sends gets to take the last answer: a connection that is closed on unread bytes is
/// reset, and a reset takes the answer with it (RFC 9112, section 9.6).
const LINGER: Duration = Duration::from_secs(5);
/// How much of what it still sends is thrown away meanwhile.
const MOST_LINGERED: usize = 32 * 1024 * 1024;

/// A client's connection as hyper sees it: one request at a time.
///
/// Bytes of the next request are let in once the answer before is over, and only after its head came whole, in time, and
/// is [framed](framing) in one way. So nobody makes the gateway read thousands of requests ahead; whoever hangs up while
/// a request waits is noticed; and each head of a connection has its time limit, not only the first.
#[derive(Debug)]
pub(super) struct Gate<S> {
    socket: S,
    exchange: Arc<Exchange>,
    patience: Patience,
    /// What is still to come of the request's body; `None` between bodies.
    body: Option<Body>,
    /// Read, but for the first `judged` not let in yet.
    held: Vec<u8>,
    judged: usize,
    /// So many bytes of `held` have no end of a head in them.
    searched: usize,
    /// Until the present head is whole or, while the connection is `idle`, until there is one.
    reading: Deadline,
    idle: bool,
    /// While nothing can be written.
    writing: Deadline,
    looking: Deadline,
    closing: Closing,
}

/// How far a connection is on its way to its end.
#[derive(Debug)]
enum Closing {
    Open,
    /// Nothing is read any more; these are the last words, and so many are written.
    Refusing {
        words: Vec<u8>,
        written: usize,
    },
    /// Nothing is sent any more; what still comes, so many bytes so far, is thrown away.
    Lingering(usize),
    Closed,
}

impl<S: Socket> Gate<S> {
    pub(super) fn new(socket: S, exchange: Arc<Exchange>, patience: Patience) -> Self {
        Self {
            socket,
            exchange,
            patience,
            body: None,
            held: Vec::new(),
            judged: 0,
            searched: 0,
            reading: Deadline::default(),
            idle: false,
            writing: Deadline::default(),
            looking: Deadline::default(),
            closing: Closing::Open,
        }
    }

    /// How many of `bytes`, which come next, may be let in: of a head none before it is whole.
    fn judge(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        if let Some(body) = &mut self.body {
            let taken = body.take(bytes)?;
            if body.is_over() {
                self.body = None;
            }
            return Ok(taken);
        }
        let start = framing::empty_lines(bytes);
        let end = framing::end_of_head(&bytes[start..], self.searched.saturating_sub(start));
        if end.unwrap_or(bytes.len() - start) > self.patience.max_header_size {
            return Err(Refusal::HeadTooLarge);
        }
        let Some(end) = end.map(|end| start + end) else {
            self.searched = bytes.len();
            return Ok(0);
        };
        self.searched = 0;
        let mut body = framing::body_after(&bytes[start..end])?;
        let taken = body.take(&bytes[end..])?;
        self.reading.stop();
        let mut socket = None;
        if !body.is_over() {
            // Where no copy of the socket is to be had it is not noticed that the client leaves, and nothing else.
            socket = self.socket.fd().try_clone_to_owned().ok();
            self.body = Some(body);
        }
        self.exchange.begin(socket);
        Ok(end + taken)
    }

    /// Refuses what came: nothing is let in any more. A head is answered by the gate; a body breaks off, and the answer
    /// is left to whoever reads it.
    fn refuse(&mut self, refusal: Refusal) -> io::Result<()> {
        if self.body.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "chunks that are none",
            ));
        }
        self.exchange.refuse(refusal.status());
        self.closing = Closing::Refusing {
            words: last_words(refusal),
            written: 0,
        };
        Ok(())
    }

    /// Reads what comes next, and lets in what may be; nothing where the connection ends.
    fn poll_next(&mut self, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        loop {
            if self.held.is_empty() {
                // Mostly a request comes whole and alone, and stays where it was read to.
                if Pin::new(&mut self.socket).poll_read(cx, to)?.is_pending() {
                    return self.poll_patience(cx);
                }
                let come = &to.filled()[before..];
                if come.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                let judged = self.judge(come);
                let taken = *judged.as_ref().unwrap_or(&0);
                self.held.extend_from_slice(&come[taken..]);
                to.set_filled(before + taken);
                match judged {
                    Ok(0) => {}
                    Ok(_) => return Poll::Ready(Ok(())),
                    Err(refusal) => return Poll::Ready(self.refuse(refusal)),
                }
            } else {
                let held = mem::take(&mut self.held);
                let judged = self.judge(&held);
                self.held = held;
                match judged {
                    Ok(0) => {}
                    Ok(judged) => {
                        self.judged = judged;
                        self.let_in(to);
                        return Poll::Ready(Ok(()));
                    }
                    Err(refusal) => return Poll::Ready(self.refuse(refusal)),
                }
                let mut piece = [0; 2048];
                let mut piece = ReadBuf::new(&mut piece);
                if Pin::new(&mut self.socket)
                    .poll_read(cx, &mut piece)?
                    .is_pending()
                {
                    return self.poll_patience(cx);
                }
                if piece.filled().is_empty() {
                    return Poll::Ready(Ok(()));
                }
                self.held.extend_from_slice(piece.filled());
            }
        }
    }

    /// Nothing has come. Between requests that is borne for `keep_alive`, within a head for `header_timeout`.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.body.is_some() {
            // How long a body may pause is known to whoever reads it.
            return Poll::Pending;
        }
        // A connection that never sends a byte is one with a slow head.
        let idle = self.held.is_empty() && self.exchange.has_begun();
        if idle != self.idle {
            self.idle = idle;
            self.reading.stop();
        }
        self.reading.start(if idle {
            self.patience.idle
        } else {
            self.patience.head
        });
        ready!(self.reading.poll(cx));
        Poll::Ready(if idle {
            Ok(())
        } else {
            self.refuse(Refusal::TooSlow)
        })
    }

    /// hyper flushes after each answer, and then reads on only once the connection tells of new bytes. So here the wait
    /// for the next request begins; one that has come meanwhile is read at once.
    fn after_answer(&mut self, cx: &mut Context<'_>) {
        let between = self.body.is_none() && self.judged == 0 && !self.exchange.is_under_way();
        if !between || self.reading.is_running() || !matches!(self.closing, Closing::Open) {
            return;
        }
        if !self.held.is_empty() || self.poll_patience(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// Closes after an answer that broke off, of which all that came is written. Where only the end of the connection
    /// would tell how long the answer is, that is a reset, so that nobody takes the part for the whole.
    fn poll_break(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.exchange.is_endless() {
            set_socket_linger(self.socket.fd(), Some(Duration::ZERO))?;
        } else {
            ready!(Pin::new(&mut *self).poll_shutdown(cx))?;
        }
        self.exchange.broke_off();
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(()))
    }

    fn let_in(&mut self, to: &mut ReadBuf<'_>) {
        let length = self.judged.min(to.remaining());
        to.put_slice(&self.held[..length]);
        self.held.drain(..length);
        self.judged -= length;
        if self.held.is_empty() {
            // Most connections never hold anything again.
            self.held = Vec::new();
        }
    }

    /// An error where the client of the request under way has left. hyper would notice it by reading on, for which it
    /// takes a buffer a request; it flushes each time round, and so asks here.
    fn look_for_leaving(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let waits = self.body.is_none() && self.exchange.is_under_way();
        let ends = self.exchange.is_breaking() || !matches!(self.closing, Closing::Open);
        if !waits || ends || self.exchange.is_tunnel() {
            return Ok(());
        }
        match self.poll_leaving(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(left) => left.and(Err(io::ErrorKind::ConnectionAborted.into())),
        }
    }

    /// While a request is under way: ready once its client leaves. A little of what it sends ahead is kept.
    fn poll_leaving(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.held.len() < MOST_AHEAD {
            let mut piece = [0; 512];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.held.extend_from_slice(piece.filled());
        }
        loop {
            self.looking.start(LOOK_EVERY);
            ready!(self.looking.poll(cx));
            self.looking.stop();
            if has_left(self.socket.fd()) {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// What came of an attempt to write. A client that takes nothing is borne for `body_timeout`.
    fn wrote<T>(
        &mut self,
        cx: &mut Context<'_>,
        attempt: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.writing.stop();
            return attempt;
        }
        self.look_for_leaving(cx)?;
        self.writing.start(self.patience.body);
        ready!(self.writing.poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: Socket> AsyncRead for Gate<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let gate = self.get_mut();
        if gate.exchange.is_tunnel() {
            gate.judged = gate.held.len();
        }
        if gate.judged > 0 {
            gate.let_in(to);
            return Poll::Ready(Ok(()));
        }
        if gate.exchange.is_tunnel() {
            return Pin::new(&mut gate.socket).poll_read(cx, to);
        }
        if gate.exchange.is_breaking() {
            // Nothing is read any more, and the end is not hyper's to notice before the client has it.
            return Poll::Pending;
        }
        if !matches!(gate.closing, Closing::Open) {
            return Poll::Ready(Ok(()));
        }
        if gate.body.is_none() && (gate.exchange.is_under_way() || gate.writing.is_running()) {
            // First the answers, and that they are taken: whoever takes none asks nothing more.
            return Poll::Pending;
        }
        gate.poll_next(cx, to)
    }
}

impl<S: Socket> AsyncWrite for Gate<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let gate = self.get_mut();
        let attempt = Pin::new(&mut gate.socket).poll_write(cx, bytes);
        gate.wrote(cx, attempt)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let gate = self.get_mut();
        let attempt = gather::poll_write(Pin::new(&mut gate.socket), cx, pieces);
        gate.wrote(cx, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let gate = self.get_mut();
        let attempt = Pin::new(&mut gate.socket).poll_flush(cx);
        ready!(gate.wrote(cx, attempt))?;
        if gate.exchange.is_breaking() {
            return gate.poll_break(cx);
        }
        gate.look_for_leaving(cx)?;
        gate.after_answer(cx);
        Poll::Ready(Ok(()))
    }

    /// Says the last words, if any, and waits until the client has taken them.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let gate = self.get_mut();
        loop {
            match &mut gate.closing {
                Closing::Refusing { words, written } if *written < words.len() => {
                    let attempt = Pin::new(&mut gate.socket).poll_write(cx, &words[*written..]);
                    if let Poll::Ready(Ok(more)) = &attempt {
                        *written += more;
                    }
                    ready!(gate.wrote(cx, attempt))?;
                }
                Closing::Refusing { .. } | Closing::Open => {
                    ready!(Pin::new(&mut gate.socket).poll_shutdown(cx))?;
                    let more_comes = !gate.held.is_empty()
                        || gate.body.is_some()
                        || matches!(gate.closing, Closing::Refusing { .. });
                    gate.closing = if more_comes {
                        // It may be set for the next look at one who waited.
                        gate.looking.stop();
                        Closing::Lingering(0)
                    } else {
                        Closing::Closed
                    };
                }
                Closing::Lingering(thrown) => {
                    gate.looking.start(LINGER);
                    let mut piece = [0; 8192];
                    let mut piece = ReadBuf::new(&mut piece);
                    let read = Pin::new(&mut gate.socket).poll_read(cx, &mut piece);
                    let over = match read {
                        Poll::Ready(read) => {
                            *thrown += piece.filled().len();
                            read.is_err() || piece.filled().is_empty() || *thrown > MOST_LINGERED
                        }
                        Poll::Pending => {
                            ready!(gate.looking.poll(cx));
                            true
                        }
                    };
                    if over || gate.looking.poll(cx).is_ready() {
                        gate.closing = Closing::Closed;
                    }
                }
                Closing::Closed => return Poll::Ready(Ok(())),
            }
        }
    }
}

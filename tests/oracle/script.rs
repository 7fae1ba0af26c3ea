//! A connection whose peer follows a script, and a future that runs without a runtime.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use hyper::rt::{Read, ReadBufCursor, Write};

/// A connection that delivers these pieces, one per read.
#[derive(Clone)]
pub struct Script(Rc<RefCell<State>>);

struct State {
    pieces: VecDeque<Vec<u8>>,
    /// Whether nothing arrives until something was written.
    waits: bool,
    /// Whether the connection ends after the pieces, or stays silent.
    ends: bool,
    written: Vec<u8>,
    reader: Option<Waker>,
}

impl Script {
    pub fn new(pieces: &[Vec<u8>], waits: bool) -> Self {
        let pieces = pieces.iter().filter(|piece| !piece.is_empty());
        Self(Rc::new(RefCell::new(State {
            pieces: pieces.cloned().collect(),
            waits,
            ends: false,
            written: Vec::new(),
            reader: None,
        })))
    }

    /// Makes the connection end after the pieces.
    pub fn end(&self) {
        let mut state = self.0.borrow_mut();
        state.ends = true;
        if let Some(waker) = state.reader.take() {
            waker.wake();
        }
    }

    /// Returns the bytes written so far.
    pub fn written(&self) -> Vec<u8> {
        self.0.borrow().written.clone()
    }
}

impl Read for Script {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.0.borrow_mut();
        let waits = state.waits;
        let Some(piece) = state.pieces.front_mut().filter(|_| !waits) else {
            if state.ends {
                return Poll::Ready(Ok(()));
            }
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let count = piece.len().min(buffer.remaining());
        buffer.put_slice(&piece[..count]);
        piece.drain(..count);
        if piece.is_empty() {
            state.pieces.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for Script {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.0.borrow_mut();
        state.written.extend(bytes);
        state.waits = false;
        if let Some(waker) = state.reader.take() {
            waker.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs `future` until it is done or waits for another event.
pub fn run<F: Future + ?Sized>(future: &mut Pin<&mut F>) -> Poll<F::Output> {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    while woken.0.swap(false, Ordering::SeqCst) {
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            return polled;
        }
    }
    Poll::Pending
}

/// Runs a future that must finish.
pub fn finish<F: Future>(future: F) -> F::Output {
    match run(&mut pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits for something"),
    }
}

//! Samples of the last ten minutes, sent to connected clients as server-sent events.
//!
//! A sample is the status of the gateway in one second. Clients are live pages and `drip top`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;
use tokio::sync::mpsc;

/// Maximum number of kept samples: one for each second.
const MAX_SAMPLES: usize = 600;
/// Maximum memory for the samples, in bytes. With hundreds of zones fewer samples are kept.
const MAX_SAMPLE_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of connected clients. A further one replaces the oldest.
const MAX_LISTENERS: usize = 64;
/// Number of samples that a client may be behind before it is disconnected.
///
/// It connects again and names the last sample that it received.
const MAX_BEHIND: usize = 8;

/// The last samples, and the connected clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live(Arc<Mutex<State>>);

/// Kept samples and connected clients.
#[derive(Debug, Default)]
struct State {
    /// Kept samples, the oldest first.
    samples: VecDeque<Sample>,
    /// Size of all kept samples.
    bytes: usize,
    /// Channels to the connected clients, the oldest client first.
    listeners: Vec<mpsc::Sender<Bytes>>,
}

/// A kept sample as an event.
#[derive(Clone, Debug)]
struct Sample {
    /// Number of the sample.
    seq: u64,
    json: Bytes,
}

impl Live {
    /// Keeps a sample and sends it to all clients. Disconnects a client that is too slow.
    pub(super) fn publish(&self, seq: u64, json: &str) {
        let head = format!("id: {seq}\nevent: sample\ndata: ");
        let event = Bytes::from(format!("{head}{json}\n\n"));
        // The history shares the same bytes.
        let json = event.slice(head.len()..head.len() + json.len());
        let mut state = self.state();
        state
            .listeners
            .retain(|listener| listener.try_send(event.clone()).is_ok());
        state.bytes += json.len();
        state.samples.push_back(Sample { seq, json });
        while state.samples.len() > MAX_SAMPLES || state.bytes > MAX_SAMPLE_BYTES {
            let Some(oldest) = state.samples.pop_front() else {
                break;
            };
            state.bytes -= oldest.json.len();
        }
    }

    /// Registers a client that gets the samples after `since`.
    ///
    /// If there are too many clients, the oldest one is disconnected. A page that is disconnected
    /// connects again.
    pub(crate) fn listen(&self, since: Option<u64>) -> SampleStream {
        let mut state = self.state();
        state.listeners.retain(|listener| !listener.is_closed());
        if state.listeners.len() >= MAX_LISTENERS {
            state.listeners.remove(0);
        }
        let (sender, samples) = mpsc::channel(MAX_BEHIND);
        state.listeners.push(sender);
        // A number above the newest one is from an earlier process.
        let newest = state.samples.back().map(|newest| newest.seq);
        let since = since.filter(|since| Some(*since) <= newest).unwrap_or(0);
        let missed = state.samples.iter().filter(|sample| sample.seq > since);
        let history = history(missed.cloned().collect());
        SampleStream { history, samples }
    }

    /// Returns the newest sample; `None` before the first.
    pub(crate) fn newest(&self) -> Option<Bytes> {
        self.state()
            .samples
            .back()
            .map(|newest| newest.json.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Joins many samples to one event, in pieces that share the samples' memory.
fn history(samples: Vec<Sample>) -> VecDeque<Bytes> {
    // The first line, a colon, is a comment of the event stream: clients ignore it.
    let id = samples.last().map(|newest| format!("id: {}\n", newest.seq));
    let head = format!(
        ":\n\n{}event: history\ndata: {{\"samples\":[",
        id.unwrap_or_default()
    );
    let mut pieces = VecDeque::from([Bytes::from(head)]);
    for (nth, sample) in samples.into_iter().enumerate() {
        if nth > 0 {
            pieces.push_back(Bytes::from_static(b","));
        }
        pieces.push_back(sample.json);
    }
    pieces.push_back(Bytes::from_static(b"]}\n\n"));
    pieces
}

/// Response body for a connected client.
pub(crate) struct SampleStream {
    history: VecDeque<Bytes>,
    samples: mpsc::Receiver<Bytes>,
}

impl MessageBody for SampleStream {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        if let Some(piece) = self.history.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        self.samples.poll_recv(cx).map(|sample| sample.map(Ok))
    }
}

//! An origin over HTTP/2 that sends as many bytes as the windows allow, in frames of one size.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::server::{Builder, SendResponse};
use http::{HeaderMap, Request, Response};

use super::{close, eventually, listen};

/// Number of bytes of a response that the origin may send ahead.
pub const STREAM_WINDOW: usize = 256 * 1024;

/// An origin over HTTP/2 whose target sets the size of the response.
///
/// `/SIZE/COUNT` is answered by `COUNT` frames of `SIZE` bytes, [`content`] in all, and trailers.
/// `/hint/SIZE/COUNT` is answered by the same after two interim responses. Everything else is
/// answered by `ok`.
pub struct StreamOrigin {
    pub address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    /// Errors that ended connections.
    errors: Mutex<Vec<String>>,
    sent: AtomicUsize,
}

/// Returns the first bytes of every large response.
pub fn content(length: usize) -> Vec<u8> {
    (0..length).map(byte).collect()
}

/// Number of bytes after which the content repeats.
const PERIOD: usize = 251;

fn byte(at: usize) -> u8 {
    u8::try_from(at % PERIOD).expect("a small number")
}

impl StreamOrigin {
    pub fn start() -> Self {
        Self::accepting(usize::MAX)
    }

    /// Waits until the origin has sent all that the windows allow, at least `least` bytes.
    pub fn wait_until_stuck(&self, least: usize) {
        let mut before = 0;
        eventually("the origin has used its windows up", || {
            thread::sleep(Duration::from_millis(100));
            let sent = self.sent();
            sent >= least && std::mem::replace(&mut before, sent) == sent
        });
    }

    /// Starts an origin that accepts `most` connections and refuses further ones.
    pub fn accepting(most: usize) -> Self {
        let listener = listen("127.0.0.1:0");
        let address = listener.local_addr().expect("an address");
        let counts = Arc::<Counts>::default();
        let of_origin = Arc::clone(&counts);
        thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().expect("a runtime");
            runtime.block_on(serve(listener, most, of_origin));
        });
        Self { address, counts }
    }

    pub fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Returns the errors that ended connections.
    pub fn errors(&self) -> Vec<String> {
        self.counts.errors.lock().expect("no panic").clone()
    }

    /// Returns the number of bytes of large responses sent so far.
    pub fn sent(&self) -> usize {
        self.counts.sent.load(Ordering::SeqCst)
    }
}

async fn serve(listener: TcpListener, most: usize, counts: Arc<Counts>) {
    listener.set_nonblocking(true).expect("a listener");
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    for _ in 0..most {
        let (tcp, _) = listener.accept().await.expect("a connection");
        let counts = Arc::clone(&counts);
        counts.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            tcp.set_nodelay(true).expect("no delay");
            let mut builder = Builder::new();
            let handshake = builder.max_concurrent_streams(250).handshake(tcp).await;
            // A probe whether the port is open sends nothing.
            let Ok(mut connection) = handshake else {
                return;
            };
            while let Some(request) = connection.accept().await {
                let (request, respond) = match request {
                    Ok(request) => request,
                    Err(error) => {
                        let mut errors = counts.errors.lock().expect("no panic");
                        errors.push(format!("{error:?}"));
                        return;
                    }
                };
                tokio::spawn(answer(request, respond, Arc::clone(&counts)));
            }
        });
    }
    close(&listener);
    std::future::pending::<()>().await;
}

async fn answer<B>(request: Request<B>, mut respond: SendResponse<Bytes>, counts: Arc<Counts>) {
    let path = request.uri().path().trim_start_matches('/');
    let hinted = path.strip_prefix("hint/");
    let asked = hinted.unwrap_or(path).split_once('/');
    let number = |text: &str| text.parse::<usize>().ok();
    let asked = asked.and_then(|(size, count)| Some((number(size)?, number(count)?)));
    // The peer may reset the stream at any time.
    let Some((size, count)) = asked else {
        if let Ok(mut stream) = respond.send_response(Response::new(()), false) {
            let _result = stream.send_data(Bytes::from_static(b"ok"), true);
        }
        return;
    };
    for _ in hinted.iter().flat_map(|_| 0..2) {
        let mut hint = Response::new(());
        *hint.status_mut() = http::StatusCode::EARLY_HINTS;
        let _result = respond.send_informational(hint);
    }
    if let Ok(stream) = respond.send_response(Response::new(()), false) {
        let _result = pieces(stream, size, count, &counts).await;
    }
}

/// Sends the pieces of a response. Returns `None` if the stream is reset.
async fn pieces(
    mut stream: SendStream<Bytes>,
    size: usize,
    count: usize,
    counts: &Counts,
) -> Option<()> {
    let period = Bytes::from(content(PERIOD + size));
    for nth in 0..count {
        let from = nth * size % PERIOD;
        let piece = period.slice(from..from + size);
        stream.reserve_capacity(size);
        while stream.capacity() < size {
            std::future::poll_fn(|cx| stream.poll_capacity(cx))
                .await?
                .ok()?;
        }
        stream.send_data(piece, false).ok()?;
        counts.sent.fetch_add(size, Ordering::SeqCst);
        if nth % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-count", count.into());
    stream.send_trailers(trailers).ok()
}

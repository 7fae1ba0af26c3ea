//! An origin over HTTP/2, made with a library, that records its requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use tokio::net::TcpListener;

/// A request with its complete body.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub authority: Option<String>,
    pub target: String,
    pub fields: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
}

/// An origin that records requests and answers all with `ok`.
pub struct RecordingOrigin {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl RecordingOrigin {
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let to_see = Arc::clone(&seen);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                while let Ok((tcp, _)) = listener.accept().await {
                    let to_see = Arc::clone(&to_see);
                    tokio::spawn(async move {
                        let Ok(mut connection) = h2::server::handshake(tcp).await else {
                            return;
                        };
                        while let Some(Ok((request, respond))) = connection.accept().await {
                            tokio::spawn(answer(request, respond, Arc::clone(&to_see)));
                        }
                    });
                }
            });
        });
        Self { address, seen }
    }

    /// Returns the requests since the last call whose body is complete.
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().expect("no panic"))
    }
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    seen: Arc<Mutex<Vec<Seen>>>,
) {
    let (parts, mut body) = request.into_parts();
    let mut whole = Vec::new();
    while let Some(piece) = body.data().await {
        let Ok(piece) = piece else { return };
        let _reset = body.flow_control().release_capacity(piece.len());
        whole.extend_from_slice(&piece);
    }
    let Ok(trailers) = body.trailers().await else {
        return;
    };
    let is_head = parts.method == http::Method::HEAD;
    let target = parts.uri.path_and_query().map(ToString::to_string);
    seen.lock().expect("no panic").push(Seen {
        method: parts.method.to_string(),
        authority: parts.uri.authority().map(ToString::to_string),
        target: target.unwrap_or_default(),
        fields: parts.headers,
        body: whole,
        trailers,
    });
    let head = Response::builder().header("content-length", "2").body(());
    // The gateway may have disconnected.
    if let Ok(mut stream) = respond.send_response(head.expect("a head"), is_head)
        && !is_head
    {
        let _result = stream.send_data("ok".into(), true);
    }
}

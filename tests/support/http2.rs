//! Requests over HTTP/2, sent by a library that checks the responses.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::handshake;
use http::{HeaderMap, Request, Version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::wire::Head;
use super::{Answer, PATIENCE};

/// A response and its trailers.
#[derive(Debug)]
pub struct Response {
    pub answer: Answer,
    pub trailers: Vec<(String, String)>,
}

/// Sends a GET of `/` with these fields, with prior knowledge.
pub fn get(to: SocketAddr, fields: &[(&str, &str)]) -> Answer {
    fetch(to, "GET", "/", fields, b"").answer
}

/// Sends a request on a new connection, with prior knowledge.
pub fn fetch(
    to: SocketAddr,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    body: &[u8],
) -> Response {
    let uri = format!("http://{to}{path}");
    let exchanged = async {
        let stream = TcpStream::connect(to).await.expect("a connection");
        exchange(stream, request(method, &uri, fields), body).await
    };
    let answered = block_on(exchanged);
    answered.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// Runs a client to its end.
pub fn block_on<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime
        .expect("a runtime")
        .block_on(async { timeout(PATIENCE, client).await });
    done.expect("an answer in time")
}

/// Returns a request without its body. `uri` is absolute.
pub fn request(method: &str, uri: &str, fields: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .version(Version::HTTP_2);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request")
}

/// Sends a request on a new connection, and reads the whole response.
pub async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<()>,
    body: &[u8],
) -> Result<Response, h2::Error> {
    let (sender, connection) = handshake(stream).await?;
    tokio::spawn(connection);
    let mut sender = sender.ready().await?;
    let (response, mut upload) = sender.send_request(request, body.is_empty())?;
    if !body.is_empty() {
        upload.send_data(Bytes::copy_from_slice(body), true)?;
    }
    let (head, mut body) = response.await?.into_parts();
    let mut whole = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        whole.extend_from_slice(&piece);
    }
    let trailers = body.trailers().await?;
    Ok(Response {
        answer: Answer {
            status: head.status.as_u16(),
            head: Head {
                first_line: format!("HTTP/2 {}", head.status),
                fields: fields_of(&head.headers),
            },
            body: whole,
        },
        trailers: fields_of(&trailers.unwrap_or_default()),
    })
}

fn fields_of(map: &HeaderMap) -> Vec<(String, String)> {
    let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    };
    map.iter().map(field).collect()
}

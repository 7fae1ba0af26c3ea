//! Tests of uploads that are refused before they are complete.

use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, SendStream};
use hyper::{Request, Response};
use tempfile::TempDir;

use super::programs::{Program, body};
use crate::chromium::page::webdriver::Browser;
use crate::support::secure::{connect, gateway};
use crate::support::{Gateway, Origin, now};

const RUNS: usize = 10;
/// Length of an upload within `max_body_size`, and of one above it.
///
/// Both are longer than a window of HTTP/2, and so short that Java sends the rest within [`LINGER`]
/// on a busy machine. node resets a stream itself while it holds more than 10 MB.
const LENGTH: usize = 1_500_000;
const TOO_LONG: usize = 2_000_000;
/// Time for which the rest of an upload is read after its response, and maximum of bytes.
const LINGER: Duration = Duration::from_secs(5);
const MAX_LINGERED: usize = 64 << 20;

/// Starts a gateway that refuses each upload: with 413 at `/`, and with 429 at `/limited`.
fn refusing() -> (Gateway, Origin) {
    let origin = Origin::start();
    let file = format!(
        r#"
[origins.app]
servers = ["http://{}"]

[zones.per_client]
key  = "$remote_addr"
rate = "1r/d"

[[routes]]
path   = "/limited"
origin = "app"
limits = [{{ zone = "per_client", burst = 0 }}]

[[routes]]
path   = "/"
origin = "app"
"#,
        origin.address
    );
    let gateway = gateway("max_body_size = \"1500KB\"\nhold_streams = false", &file);
    (gateway, origin)
}

fn check_seen(program: Program) {
    let (gateway, _origin) = refusing();
    let folder = TempDir::new().expect("a folder");
    // Uses the only slot of the day.
    let file = body(folder.path(), 5);
    let url = format!("https://{}/limited", gateway.address());
    Program::Curl.upload(&url, &file, 1, false);
    let file = body(folder.path(), LENGTH);
    let received = program.upload(&url, &file, RUNS, false);
    assert_eq!(received, vec![program.seen(429); RUNS], "{program:?}");
    let file = body(folder.path(), TOO_LONG);
    let url = format!("https://{}/", gateway.address());
    let received = program.upload(&url, &file, RUNS, false);
    assert_eq!(received, vec![program.seen(413); RUNS], "{program:?}");
}

#[test]
fn curl_sees_the_answer_to_each_upload_that_is_refused() {
    check_seen(Program::Curl);
}

#[test]
fn node_sees_the_answer_to_each_upload_that_is_refused_and_its_streams_close() {
    check_seen(Program::Node);
}

#[test]
fn java_sees_the_answer_to_each_upload_that_is_refused() {
    check_seen(Program::Java);
}

#[test]
fn go_sees_the_answer_to_each_upload_that_is_refused() {
    check_seen(Program::Go);
}

#[test]
fn httpx_sees_the_answer_to_each_upload_that_is_refused() {
    check_seen(Program::Httpx);
}

#[test]
fn chromium_sees_the_answer_to_each_upload_that_is_refused() {
    let (gateway, _origin) = refusing();
    let browser = Browser::start(&["--ignore-certificate-errors"]);
    browser.go(&format!("https://{}/limited", gateway.address()));
    browser.run(&format!(
        "window.told = [];
         const upload = async (path, length) => {{
           for (let nth = 0; nth < {RUNS}; nth++) {{
             // A blob: the log of the browser has all other bodies in it.
             const body = new Blob([new Uint8Array(length)]);
             try {{ told.push((await fetch(path, {{ method: 'POST', body }})).status); }}
             catch (error) {{ told.push(String(error)); }}
           }}
         }};
         (async () => {{
           await upload('/limited', {LENGTH});
           await upload('/', {TOO_LONG});
           window.isDone = true;
         }})();"
    ));
    browser.holds("window.isDone === true");
    let received = browser.run("return told.join()");
    let expected = [vec!["429"; RUNS], vec!["413"; RUNS]].concat().join(",");
    assert_eq!(received, expected);
}

async fn connected(gateway: &Gateway) -> SendRequest<Bytes> {
    let (tls, _) = connect(gateway, "a.test", &["h2"]).await;
    let (client, connection) = h2::client::handshake(tls).await.expect("HTTP/2");
    tokio::spawn(connection);
    client
}

/// Sends an upload without an announced length. Returns its 413 response.
async fn refused(client: &SendRequest<Bytes>) -> (Response<h2::RecvStream>, SendStream<Bytes>) {
    let mut client = client.clone().ready().await.expect("a stream");
    let request = Request::post("https://a.test/").header("content-length", u32::MAX);
    let request = request.body(()).expect("a request");
    let (answer, sending) = client.send_request(request, false).expect("a request");
    let answer = answer.await.expect("an answer");
    assert_eq!(answer.status(), 413);
    (answer, sending)
}

/// Sends as the window allows, with this pause, until the stream is reset. Returns the bytes.
async fn send_on(mut sending: SendStream<Bytes>, pause: Duration) -> (usize, Reason) {
    let mut sent = 0;
    loop {
        sending.reserve_capacity(16 << 10);
        let room = std::future::poll_fn(|cx| sending.poll_capacity(cx)).await;
        let Some(Ok(room)) = room else { break };
        sent += room;
        if sending.send_data(vec![b'x'; room].into(), false).is_err() {
            break;
        }
        tokio::time::sleep(pause).await;
    }
    let reset = std::future::poll_fn(|cx| sending.poll_reset(cx)).await;
    (sent, reset.expect("a reset"))
}

async fn check_served(client: &SendRequest<Bytes>) {
    let mut client = client.clone().ready().await.expect("a stream");
    let request = Request::get("https://a.test/").body(()).expect("a request");
    let (answer, _) = client.send_request(request, true).expect("a request");
    assert_eq!(answer.await.expect("an answer").status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_uploads_for_ever_is_reset_without_an_error_after_a_time_or_a_size() {
    let (gateway, _origin) = refusing();
    let client = connected(&gateway).await;
    for pause in [Duration::from_millis(20), Duration::ZERO] {
        let (before, since) = (gateway.peak_memory(), now());
        let (_answer, sending) = refused(&client).await;
        let (sent, reason) = send_on(sending, pause).await;
        let took = now() - since;
        assert_eq!(reason, Reason::NO_ERROR);
        if pause.is_zero() {
            // The client may also have sent bytes ahead.
            assert!(sent < MAX_LINGERED + (2 << 20), "{sent}");
        } else {
            assert!(took > LINGER.mul_f64(0.9), "{took:?}");
            assert!(sent > 512 << 10, "more than a window: {sent}");
        }
        assert!(took < LINGER * 2, "{took:?}");
        let more = gateway.peak_memory() - before;
        assert!(more < 8 << 20, "{more} bytes more");
        check_served(&client).await;
    }
}

//! Reads bytes in pieces with hyper.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use hyper::body::{Body, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::service::service_fn;
use hyper::{Request, Response, Version, client, server};

use crate::oracle::reading::{Head, Reading, of_map};
use crate::oracle::script::{Script, finish, run};

/// More fields than drip accepts, so that drip is the one that refuses.
const MAX_FIELDS: usize = 1000;
const MAX_HEADER_SIZE: usize = 200 * 1024;

type Readings = Rc<RefCell<Vec<Reading>>>;

/// Returns the requests that a hyper server reads.
pub fn requests(pieces: &[Vec<u8>]) -> Vec<Reading> {
    let script = Script::new(pieces, false);
    let readings = Readings::default();
    let service = service_fn(|request: Request<Incoming>| {
        let (parts, body) = request.into_parts();
        let uri = &parts.uri;
        // Includes the slash before a query without a path.
        let path = uri.path_and_query().map(ToString::to_string);
        let path = path.unwrap_or_default();
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let line = [parts.method.as_str(), authority, &path].map(str::to_owned);
        let at = begin(
            &readings,
            Head {
                line,
                is_old: parts.version == Version::HTTP_10,
                fields: of_map(&parts.headers),
                interim: Vec::new(),
            },
        );
        let readings = Rc::clone(&readings);
        async move {
            read_body(body, &readings, at).await;
            Ok::<_, Infallible>(Response::new(String::new()))
        }
    });
    {
        let connection = server::conn::http1::Builder::new()
            .max_headers(MAX_FIELDS)
            .max_header_size(MAX_HEADER_SIZE)
            .serve_connection(script.clone(), service);
        let _done = run(&mut pin!(connection));
    }
    let mut readings = readings.take();
    let kept = kept(&script.written());
    for (reading, keeps) in readings.iter_mut().zip(kept) {
        reading.keeps = reading.whole && keeps;
    }
    readings
}

/// Returns whether each response written by hyper keeps the connection open.
fn kept(written: &[u8]) -> Vec<bool> {
    let text = String::from_utf8_lossy(written).to_ascii_lowercase();
    let heads = text.split("\r\n\r\n");
    heads
        .filter_map(|head| match head.get(..12) {
            Some("http/1.1 200") => Some(!head.contains("\r\nconnection: close")),
            Some("http/1.0 200") => Some(head.contains("\r\nconnection: keep-alive")),
            _ => None,
        })
        .collect()
}

/// Returns the response that a hyper client reads. `to_head`: it answers HEAD.
pub fn answer(pieces: &[Vec<u8>], to_head: bool) -> Option<Reading> {
    let script = Script::new(pieces, true);
    let (mut sender, connection) = finish(
        client::conn::http1::Builder::new()
            .max_headers(MAX_FIELDS)
            .max_header_size(MAX_HEADER_SIZE)
            .handshake::<_, String>(script.clone()),
    )
    .expect("a connection");
    let method = if to_head { "HEAD" } else { "GET" };
    let request = Request::builder().method(method).uri("/");
    let mut request = request.body(String::new()).expect("a request");
    let interim = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&interim);
    hyper::ext::on_informational(&mut request, move |answer| {
        let seen = &mut *seen.lock().expect("one thread");
        seen.push((answer.status().as_u16(), of_map(answer.headers())));
    });
    let answer = sender.send_request(request);
    let readings = Readings::default();
    let reading = async {
        let Ok(answer) = answer.await else { return };
        let (parts, body) = answer.into_parts();
        let reason = match parts.extensions.get::<ReasonPhrase>() {
            Some(reason) => String::from_utf8_lossy(reason.as_bytes()).into_owned(),
            None => parts.status.canonical_reason().unwrap_or_default().into(),
        };
        let line = [parts.status.as_str().to_owned(), reason, String::new()];
        let at = begin(
            &readings,
            Head {
                line,
                is_old: parts.version == Version::HTTP_10,
                fields: of_map(&parts.headers),
                interim: std::mem::take(&mut *interim.lock().expect("one thread")),
            },
        );
        read_body(body, &readings, at).await;
    };
    let (mut connection, mut reading) = (pin!(connection), pin!(reading));
    let (mut closed, mut read) = (false, false);
    let mut both = pin!(poll_fn(|cx| -> Poll<()> {
        closed = closed || connection.as_mut().poll(cx).is_ready();
        read = read || reading.as_mut().poll(cx).is_ready();
        // The reader may have kept the connection open.
        closed = closed || connection.as_mut().poll(cx).is_ready();
        Poll::Pending
    }));
    let _waits = run(&mut both);
    let is_whole = readings.borrow().first().is_some_and(|it| it.whole);
    let keeps = is_whole && sender.is_ready() && !sender.is_closed();
    if !is_whole {
        script.end();
        let _done = run(&mut both);
    }
    let mut reading = readings.take().pop()?;
    reading.keeps = keeps;
    Some(reading)
}

fn begin(readings: &Readings, head: Head) -> usize {
    let mut readings = readings.borrow_mut();
    readings.push(Reading {
        head,
        ..Reading::default()
    });
    readings.len() - 1
}

async fn read_body(mut body: Incoming, readings: &Readings, at: usize) {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        let reading = &mut readings.borrow_mut()[at];
        match frame {
            None => reading.whole = true,
            Some(Err(_)) => {}
            Some(Ok(frame)) => {
                match frame.into_data() {
                    Ok(data) => reading.data.extend(data),
                    Err(frame) => {
                        let trailers = frame.into_trailers().expect("trailers");
                        reading.trailers = of_map(&trailers);
                    }
                }
                continue;
            }
        }
        return;
    }
}

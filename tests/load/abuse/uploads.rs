//! Clients that upload much to an origin that answers at once: each gets the response, no matter
//! when it reads (RFC 9112, section 9.6).

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::load::abuse::{MB, open_gateway};
use crate::support::night::day_or_night;
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::{Exchange, Origin, half_alone, now};

const AT_ONCE: usize = 4;
const SIZE: usize = 200 << 20;
const PIECE: usize = 256 << 10;
/// How long one client may be stuck on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time within which all of them must finish. Undisturbed they take a quarter of it.
const IN_ALL: Duration = Duration::from_secs(60);

const EARLY: &[u8] =
    b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbig\n";

/// What a client does besides sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// It looks for the response all the time, and stops sending when it has one.
    Meanwhile,
    /// The same, but it finishes its upload as far as it can.
    MeanwhileAndSendsOn,
    /// It sends all, and only then looks. If it cannot send it gives up, and has no response.
    AtTheEnd,
}

const KINDS: [Reads; 3] = [
    Reads::Meanwhile,
    Reads::MeanwhileAndSendsOn,
    Reads::AtTheEnd,
];

/// Answers without reading the body; after every second response the connection ends, with a reset
/// because bytes are unread.
fn answers_at_once() -> Origin {
    Origin::answering(|exchange| {
        if !exchange.target().contains("upload") {
            return exchange.reply(b"ok");
        }
        exchange.send(EARLY)?;
        if exchange.target().contains("closes") {
            return Exchange::close();
        }
        loop {
            thread::park();
        }
    })
}

/// Reads until the response is complete, or the connection ends.
fn read_answer(stream: &mut TcpStream) -> Vec<u8> {
    let mut got = Vec::new();
    let mut buffer = [0; 4096];
    while !got.ends_with(b"big\n") {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => got.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    got
}

/// Sends the body in chunks or with a length, for as long as `goes_on`.
fn send_body(stream: &mut TcpStream, chunked: bool, goes_on: impl Fn() -> bool) -> io::Result<()> {
    let piece = vec![b'x'; PIECE];
    for _ in 0..SIZE / PIECE {
        if !goes_on() {
            return Ok(());
        }
        if chunked {
            stream.write_all(format!("{PIECE:x}\r\n").as_bytes())?;
        }
        stream.write_all(&piece)?;
        if chunked {
            stream.write_all(b"\r\n")?;
        }
    }
    if chunked {
        stream.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

/// The part of the response that a client has.
fn upload(to: SocketAddr, nth: usize) -> io::Result<Vec<u8>> {
    let kind = KINDS[nth % KINDS.len()];
    let closes = if (nth / 3).is_multiple_of(2) {
        "closes"
    } else {
        "holds"
    };
    let chunked = (nth / 6).is_multiple_of(2);
    let framing = if chunked {
        "Transfer-Encoding: chunked".to_owned()
    } else {
        format!("Content-Length: {SIZE}")
    };
    let mut stream = TcpStream::connect(to)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!("POST /upload/{closes} HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    if kind == Reads::AtTheEnd {
        send_body(&mut stream, chunked, || true)?;
        return Ok(read_answer(&mut stream));
    }
    let mut reader = stream.try_clone()?;
    thread::scope(|scope| {
        let reading = scope.spawn(move || read_answer(&mut reader));
        let goes_on = || kind == Reads::MeanwhileAndSendsOn || !reading.is_finished();
        // The gateway may have closed; what counts is what was read.
        let _how = send_body(&mut stream, chunked, goes_on);
        Ok(reading.join().expect("no panic"))
    })
}

#[test]
fn an_early_answer_reaches_every_client_that_still_uploads() {
    let _alone = half_alone();
    let clients = day_or_night(18, 90);
    let origin = answers_at_once();
    let gateway = open_gateway(&origin, "");
    let process = Process::of(gateway.id());
    let others = Others::start(&gateway);
    let memory = process.memory();
    let began = now();
    let next = AtomicUsize::new(0);
    let told = thread::scope(|scope| {
        let turns = (0..AT_ONCE).map(|_| {
            scope.spawn(|| {
                let mut told = Vec::new();
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    if nth >= clients || began.elapsed() > IN_ALL {
                        return told;
                    }
                    told.push((nth, upload(gateway.address(), nth)));
                }
            })
        });
        let turns: Vec<_> = turns.collect();
        let told = turns.into_iter().map(|turn| turn.join().expect("no panic"));
        told.flatten().collect::<Vec<_>>()
    });
    println!("{clients} clients in {:?}", began.elapsed());
    let has_it = |answer: &io::Result<Vec<u8>>| {
        answer
            .as_ref()
            .is_ok_and(|got| got.starts_with(b"HTTP/1.1 413 ") && got.ends_with(b"\r\n\r\nbig\n"))
    };
    let missing: Vec<_> = told
        .iter()
        .filter(|(_, answer)| !has_it(answer))
        .map(|(nth, answer)| {
            let got = answer.as_ref().map(|got| String::from_utf8_lossy(got));
            format!("{nth}, who reads {:?}: {got:?}", KINDS[nth % KINDS.len()])
        })
        .collect();
    assert!(
        missing.is_empty(),
        "{} of {} have no answer:\n{}",
        missing.len(),
        told.len(),
        missing.join("\n")
    );
    assert_eq!(told.len(), clients, "those that were through in {IN_ALL:?}");
    others.check();
    let grown = process.memory().saturating_sub(memory);
    assert!(grown < 16 * MB, "{grown} bytes for what nobody wants");
}

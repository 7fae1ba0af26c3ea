//! A server that is killed and started again, and the requests of that time.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::killed::KilledServer;
use super::{MS, ask_all, held, origin_at, statuses, wait_for_depth};
use crate::checklist::haproxy::Haproxy;
use crate::support::{
    Client, Exchange, Gateway, Origin, best_of_three, check_gaps, fetch, free_address, half_alone,
};

/// The statuses of so many requests, sent so far apart; 0 for one without an answer.
fn load(to: SocketAddr, name: &str, requests: usize, apart: Duration) -> Vec<u16> {
    let mut answers = Vec::new();
    for nth in 0..requests {
        let client = Client::ask(to, &format!("/{name}/{nth}?key={}", nth % 3));
        answers.push(thread::spawn(move || {
            let mut client = client;
            client.try_answer().map_or(0, |answer| answer.status)
        }));
        thread::sleep(apart);
    }
    let statuses = answers.into_iter().map(|it| it.join().expect("no panic"));
    statuses.collect()
}

fn failed(statuses: &[u16]) -> usize {
    statuses.iter().filter(|status| **status != 200).count()
}

#[test]
fn a_restart_of_a_second_costs_no_request_and_no_burst_follows() {
    const LOADS: [&str; 3] = ["hold", "no_hold", "haproxy"];
    let _alone = half_alone();
    best_of_three(|attempt| {
        let mut server = KilledServer::start();
        let pace = "rate = \"40r/s\"\nqueue_timeout = \"10s\"\n";
        let fields = format!("{pace}hold = \"10s\"");
        let with_hold = Gateway::start(&held(&[server.address], &fields, ""));
        let without = Gateway::start(&held(&[server.address], pace, ""));
        let haproxy = Haproxy::before(server.address, "    retries 3\n");
        let to = [with_hold.address(), without.address(), haproxy.address];
        let loads = std::iter::zip(to, LOADS);
        let running: Vec<_> = loads
            .map(|(to, name)| thread::spawn(move || load(to, name, 60, 50 * MS)))
            .collect();
        thread::sleep(700 * MS);
        server.kill();
        thread::sleep(1000 * MS);
        server.start_again();
        let answers = running.into_iter().map(|it| it.join().expect("no panic"));
        let lost: Vec<usize> = answers.map(|it| failed(&it)).collect();
        eprintln!("attempt {attempt}: of 60 requests failed: {LOADS:?} {lost:?}");
        assert_eq!(lost[0], 0, "with hold");
        assert!(lost[1] >= 10, "without hold: {lost:?}");
        let stamps = server.stamps("/hold/");
        assert_eq!(stamps.len(), 60, "each arrived, and once");
        in_order_and_paced(&stamps)
    });
}

/// Fails unless each key is in its order, and no two stamps are closer than the pace allows.
fn in_order_and_paced(stamps: &[(u64, String)]) -> Result<(), String> {
    let number = |target: &str| target[6..].split('?').next()?.parse::<usize>().ok();
    for key in ["key=0", "key=1", "key=2"] {
        let of_key = stamps.iter().filter(|(_, target)| target.ends_with(key));
        let numbers: Vec<_> = of_key.filter_map(|(_, target)| number(target)).collect();
        if !numbers.is_sorted() {
            return Err(format!("{key} left as {numbers:?}"));
        }
    }
    // They come every 50 ms, and those who had to wait leave every 25 ms.
    let gaps: Vec<u64> = stamps.windows(2).map(|two| two[1].0 - two[0].0).collect();
    let paced = gaps.iter().filter(|gap| (15..=35).contains(*gap)).count();
    if gaps.iter().any(|gap| *gap < 15) || paced < 15 {
        return Err(format!("the gaps are {gaps:?}"));
    }
    Ok(())
}

#[test]
fn keys_take_turns_after_an_outage_and_who_had_left_goes_first() {
    best_of_three(|_| {
        let address = free_address();
        let fields = "rate = \"20r/s\"\nshare = \"key\"\nqueue_timeout = \"60s\"\nhold = \"30s\"";
        let gateway = Gateway::start(&held(&[address], fields, ""));
        // The first passes, is refused, and waits again.
        let keys = ["x", "a", "a", "a", "b", "b", "x"];
        let targets: Vec<String> = keys.iter().map(|key| format!("/?key={key}")).collect();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let mut clients = ask_all(&gateway, &targets);
        let origin = origin_at(address);
        assert_eq!(statuses(&mut clients), [200; 7]);
        let arrivals = origin.arrivals();
        let order: String = arrivals
            .iter()
            .filter_map(|it| it.target.chars().last())
            .collect();
        if order != "xabxaba" {
            return Err(format!("they left as {order}"));
        }
        let moments: Vec<Instant> = arrivals.iter().map(|it| it.at).collect();
        check_gaps(&moments, 50 * MS, 10 * MS)
    });
}

#[test]
fn a_unix_socket_that_is_not_there_yet_is_an_outage_too() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("app.sock");
    let text = held(&[free_address()], "hold = \"30s\"", "");
    let before = text.lines().find(|line| line.starts_with("servers"));
    let server = format!("servers = [\"unix:{}\"]", path.display());
    let text = text.replace(before.expect("servers"), &server);
    let gateway = Gateway::start(&text);
    let mut clients = ask_all(&gateway, &["/1", "/2"]);
    let _origin = Origin::at_unix(&path, |exchange: &mut Exchange| exchange.reply(b"ok"));
    assert_eq!(statuses(&mut clients), [200; 2]);
}

#[test]
fn a_body_is_whole_after_an_outage_and_is_not_read_before() {
    let address = free_address();
    let begin = || {
        Origin::at(&address.to_string(), |exchange: &mut Exchange| {
            let body = exchange.body()?;
            exchange.reply(&body)
        })
    };
    let gateway = Gateway::start(&held(&[address], "hold = \"30s\"", ""));
    // Far more than the buffers of the kernel hold.
    let body: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 251) as u8).collect();
    let asked: Vec<_> = (0..2)
        .map(|_| {
            let mut client = Client::connect(gateway.address());
            let (mut sender, body) = (client.sender(), body.clone());
            let sent = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&sent);
            let sending = thread::spawn(move || {
                let head = format!(
                    "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                sender.write_all(head.as_bytes())?;
                for piece in body.chunks(10_000) {
                    sender.write_all(piece)?;
                    counted.fetch_add(piece.len(), SeqCst);
                }
                Ok::<_, std::io::Error>(())
            });
            (sending, sent, thread::spawn(move || client.answer()))
        })
        .collect();
    wait_for_depth(&gateway, 2);
    thread::sleep(300 * MS);
    for (_, sent, _) in &asked {
        let sent = sent.load(SeqCst);
        assert!(sent < body.len(), "{sent} bytes were taken");
    }
    let _origin = begin();
    for (sending, _, answer) in asked {
        let answer = answer.join().expect("no panic");
        assert_eq!(answer.status, 200);
        assert!(answer.body == body, "{} bytes came back", answer.body.len());
        sending.join().expect("no panic").expect("it is all taken");
    }
}

#[test]
fn a_post_on_a_kept_connection_that_was_closed_waits_too() {
    let address = free_address();
    let gateway = Gateway::start(&held(&[address], "hold = \"30s\"", ""));
    let origin = Origin::at(&address.to_string(), |exchange: &mut Exchange| {
        exchange.reply(b"ok")?;
        if exchange.target() == "/last" {
            Exchange::close()
        } else {
            Ok(())
        }
    });
    assert_eq!(fetch(gateway.address(), "/last").status, 200);
    drop(origin);
    let mut client = Client::connect(gateway.address());
    client.send(b"POST /post HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello");
    wait_for_depth(&gateway, 1);
    let origin = Origin::at(&address.to_string(), |exchange: &mut Exchange| {
        let body = exchange.body()?;
        exchange.reply(&body)
    });
    let answer = client.answer();
    assert_eq!((answer.status, answer.text()), (200, "hello".to_owned()));
    assert_eq!(origin.arrivals().len(), 1);
}

#[test]
fn without_a_pace_the_origin_gets_one_request_and_then_two_for_each_answer() {
    let address = free_address();
    let gateway = Gateway::start(&held(
        &[address],
        "hold = \"30s\"\nqueue_timeout = \"30s\"",
        "",
    ));
    let targets: Vec<String> = (0..40).map(|nth| format!("/{nth}")).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let mut clients = ask_all(&gateway, &targets);
    // Of each request: how many had been answered when it arrived.
    let answered = Arc::new(Mutex::new((0_usize, Vec::new())));
    let seen = Arc::clone(&answered);
    let _origin = Origin::at(&address.to_string(), move |exchange: &mut Exchange| {
        let mut it = seen.lock().expect("no panic");
        let done = it.0;
        it.1.push(done);
        drop(it);
        thread::sleep(30 * MS);
        // Counted before the gateway can know.
        seen.lock().expect("no panic").0 += 1;
        exchange.reply(b"ok")
    });
    assert_eq!(statuses(&mut clients), [200; 40]);
    let seen = answered.lock().expect("no panic").1.clone();
    assert_eq!(seen.len(), 40);
    for (nth, done) in seen.iter().enumerate() {
        assert!(
            nth < 1 + 2 * done,
            "{nth} were there after {done} answers: {seen:?}"
        );
    }
    assert_eq!(fetch(gateway.address(), "/after").status, 200);
}

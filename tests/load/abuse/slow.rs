//! Clients that send, or read, almost nothing.

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use crate::load::abuse::crowd::{One, raise_descriptors, watch};
use crate::load::abuse::{KB, MB, MORE_DESCRIPTORS, long_until, open_gateway};
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::secure::{started, write_pair};
use crate::support::{
    Client, Exchange, Gateway, Origin, Site, alone, eventually, free_address, half_alone, now,
    one_zone, quarter_alone,
};

/// The timeout in the file.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How much later a connection may be closed when hundreds are due at once on a busy machine.
const LATER: Duration = Duration::from_secs(3);
/// No client is cut off before the time is up.
const EARLIEST: Duration = Duration::from_millis(900);

const HEAD: &[u8] = b"GET /?key=slow HTTP/1.1\r\nHost: a.host.with.a.name\r\nAccept: */*\r\n\r\n";

#[test]
fn heads_that_come_a_byte_a_second_are_cut_off_and_so_are_connections_that_send_nothing() {
    let _alone = half_alone();
    raise_descriptors();
    let origin = Origin::start();
    let gateway = open_gateway(&origin, "header_timeout = \"1s\"");
    let process = Process::of(gateway.id());
    let others = Others::start(&gateway);
    let (descriptors, memory) = (process.descriptors(), process.memory());

    // Two of five begin with a whole request, and are slow with the second head.
    let is_later = |nth: usize| nth % 5 < 2;
    let mut crowd: Vec<_> = (0..200)
        .map(|nth| One::connect(gateway.address(), nth))
        .collect();
    for one in &mut crowd {
        assert_eq!(one.send(HEAD), HEAD.len());
    }
    long_until("the first requests are answered", || {
        crowd
            .iter_mut()
            .all(|one| one.take(usize::MAX) == 0 && one.got.ends_with(b"ok"))
    });
    for one in &mut crowd {
        assert_eq!(one.status(), Some(200));
        one.got.clear();
    }
    let mut rest = (0..300).map(|nth| One::connect(gateway.address(), nth));
    let mut mixed = Vec::new();
    let mut first = crowd.into_iter();
    for nth in 0..500 {
        let next = if is_later(nth) {
            first.next()
        } else {
            rest.next()
        };
        mixed.push(next.expect("five hundred in all"));
    }
    let mut crowd = mixed;

    let began = now();
    for byte in HEAD.iter().take(5) {
        for (nth, one) in crowd.iter_mut().enumerate() {
            // One in five never sends a byte.
            if nth % 5 != 4 && one.ended.is_none() {
                one.send(&[*byte]);
            }
        }
        if watch(&mut crowd, Duration::from_secs(1)) == 0 {
            break;
        }
    }
    for (nth, one) in crowd.iter().enumerate() {
        let what = if is_later(nth) { "later" } else { "first" };
        let Some(ended) = one.ended else {
            panic!("the slow {what} head of connection {nth} is still waited for");
        };
        let took = ended - began;
        assert!(
            took < TIMEOUT + LATER,
            "the {what} head of connection {nth}: {took:?}"
        );
        // Earlier connections were waited for earlier.
        assert!(
            took > EARLIEST / 2,
            "the {what} head of connection {nth}: {took:?}"
        );
        assert!(
            one.got.is_empty() || one.status() == Some(408),
            "connection {nth} got {:?}",
            String::from_utf8_lossy(&one.got)
        );
    }
    others.check();
    assert!(process.memory() < memory + 500 * 32 * KB);
    eventually("the connections are closed", || {
        process.descriptors() <= descriptors + MORE_DESCRIPTORS
    });
}

/// A gateway with TLS at the second address; a peer at 127.0.0.9 must name its client.
fn behind_proxies(origin: &Origin) -> (Gateway, SocketAddr) {
    let (site, tls) = (Site::new(), free_address());
    write_pair(site.folder(), "a", &["a.test"]);
    let more = "workers = 2\nheader_timeout = \"1s\"\nproxy_protocol = [\"127.0.0.9\"]\n\
                [server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n";
    let zone = one_zone(origin, "1000r/s", "burst = 1000");
    let zone = zone.replace("servers =", "keep_alive = 4\nservers =");
    let plain = format!("[\"{}\"]", site.address);
    let both = format!(
        "[{{ address = \"{}\", tls = false }}, \"{tls}\"]",
        site.address
    );
    let text = site.text(&format!("{more}{zone}"));
    fs::write(site.file(), text.replacen(&plain, &both, 1)).expect("a file");
    (started(site), tls)
}

#[test]
fn handshakes_and_headers_of_proxies_that_come_by_the_byte_are_cut_off() {
    const PROXY: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\n";
    // A ClientHello of 508 bytes, as far as its version.
    const HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let _alone = half_alone();
    raise_descriptors();
    let origin = Origin::start();
    let (gateway, tls) = behind_proxies(&origin);
    let plain = gateway.address();
    let process = Process::of(gateway.id());
    let others = Others::start(&gateway);
    let (descriptors, memory) = (process.descriptors(), process.memory());
    // `One` connects from 127.0.0.9 where the remainder of eight is seven.
    let (direct, proxied) = (0, 7);
    let kinds = [
        (tls, direct, HELLO.to_vec()),
        (plain, proxied, PROXY[..20].to_vec()),
        (tls, proxied, [PROXY, HELLO].concat()),
        (plain, proxied, [PROXY, &HEAD[..20]].concat()),
    ];
    let mut crowd: Vec<_> = (0..100)
        .flat_map(|_| &kinds)
        .map(|(to, from, first)| {
            let mut one = One::connect(*to, *from);
            assert_eq!(one.send(first), first.len());
            one
        })
        .collect();
    let mut most = memory;
    long_until("all are cut off", || {
        for one in &mut crowd {
            if one.ended.is_none() {
                one.send(b"1");
            }
        }
        most = most.max(process.memory());
        watch(&mut crowd, Duration::from_millis(200)) == 0
    });
    assert!(most < memory + 400 * 32 * KB, "{} KB", (most - memory) / KB);
    others.check();
    eventually("the connections are closed", || {
        process.descriptors() <= descriptors + MORE_DESCRIPTORS
    });
}

#[test]
fn bodies_that_stop_coming_are_cut_off_with_408_and_slow_ones_that_come_are_not() {
    let _alone = half_alone();
    let origin = Origin::answering(|exchange| {
        let length = exchange.body()?.len();
        exchange.reply(length.to_string().as_bytes())
    });
    let gateway = open_gateway(&origin, "body_timeout = \"1s\"");
    let process = Process::of(gateway.id());
    let others = Others::start(&gateway);
    let memory = process.memory();

    let part = |framing: &str, piece: &str| {
        format!("POST /?key=slow HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n{piece}")
    };
    let with_length = part("Content-Length: 100000", "0123456789");
    let chunked = part("Transfer-Encoding: chunked", "a\r\n0123456789\r\n");
    let mut crowd = Vec::new();
    for nth in 0..300 {
        let mut one = One::connect(gateway.address(), nth);
        let part = if nth % 3 == 0 { &chunked } else { &with_length };
        assert_eq!(one.send(part.as_bytes()), part.len());
        crowd.push((one, now()));
    }
    let slow = thread::spawn({
        let to = gateway.address();
        move || {
            let mut client = Client::connect(to);
            client.send(b"POST /?key=steady HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
            for _ in 0..10 {
                thread::sleep(Duration::from_millis(300));
                client.send(b"a");
            }
            client.answer()
        }
    });
    let (mut crowd, sent): (Vec<_>, Vec<_>) = crowd.into_iter().unzip();
    watch(&mut crowd, TIMEOUT + LATER);
    for (nth, (one, sent)) in crowd.iter().zip(sent).enumerate() {
        let Some(ended) = one.ended else {
            panic!("the rest of the body on connection {nth} is still waited for");
        };
        let took = ended - sent;
        assert!(
            EARLIEST < took && took < TIMEOUT + LATER,
            "the body on connection {nth}: {took:?}"
        );
        assert_eq!(one.status(), Some(408), "connection {nth}");
    }
    let answer = slow.join().expect("no panic");
    assert_eq!((answer.status, answer.text().as_str()), (200, "10"));
    others.check();
    assert!(process.memory() < memory + 300 * 64 * KB);
    eventually("their requests at the origin are cancelled", || {
        gateway.metrics().count("drip_origin_in_flight", &[]) == 0
    });
}

#[test]
fn the_time_that_a_body_waits_for_its_turn_is_not_the_clients() {
    let _alone = quarter_alone();
    let origin = Origin::answering(|exchange| {
        let length = exchange.body()?.len();
        exchange.reply(length.to_string().as_bytes())
    });
    let zone = one_zone(&origin, "24r/m", "burst = 1");
    let gateway = Gateway::start(&format!("body_timeout = \"1s\"\n{zone}"));
    let mut first = Client::ask(gateway.address(), "/?key=a");
    assert_eq!(first.answer().status, 200);
    let mut waiting = Client::connect(gateway.address());
    let mut sender = waiting.sender();
    let sending = thread::spawn(move || {
        use std::io::Write;
        let mut all =
            b"POST /?key=a HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n".to_vec();
        all.resize(all.len() + 8_000_000, b'x');
        sender.write_all(&all)
    });
    let answer = waiting.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "8000000"));
    sending.join().expect("no panic").expect("all is taken");
}

const BIG: usize = 10 << 20;

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn readers_that_do_not_read_are_cut_off_in_little_memory_and_slow_ones_that_do_are_not() {
    const READERS: usize = 500;
    /// Before they are stuck, the bytes that fill the kernel's buffers are copied, for all of them at once.
    const COPYING: Duration = Duration::from_secs(12);
    let _alone = alone();
    raise_descriptors();
    let origin = Origin::answering(|exchange| {
        if !exchange.target().contains("big") {
            return exchange.reply(b"ok");
        }
        exchange.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BIG}\r\n\r\n").as_bytes())?;
        let piece = vec![b'x'; 64 << 10];
        (0..BIG / piece.len()).try_for_each(|_| Exchange::send(exchange, &piece))
    });
    let gateway = open_gateway(&origin, "body_timeout = \"3s\"");
    let process = Process::of(gateway.id());
    let others = Others::start(&gateway);
    let (descriptors, memory) = (process.descriptors(), process.memory());
    let request = b"GET /big?key=greedy HTTP/1.1\r\nHost: a\r\n\r\n";

    let mut steady = One::with_buffer(gateway.address(), 0, Some(64 << 10));
    steady.send(request);
    let steady = thread::spawn(move || {
        // Half a megabyte now and then, until all is there.
        while steady.ended.is_none() && steady.got.len() < BIG {
            thread::sleep(Duration::from_millis(150));
            let mut taken = 0;
            let piece_ends = now() + Duration::from_millis(50);
            while taken < 512 << 10 && now() < piece_ends && steady.ended.is_none() {
                taken += steady.take(64 << 10);
            }
        }
        steady.got.len()
    });
    let mut crowd: Vec<One> = (0..READERS)
        .map(|nth| {
            let mut one = One::with_buffer(gateway.address(), nth, Some(4 << 10));
            assert_eq!(one.send(request), request.len());
            if nth % 50 == 0 {
                // The kernel's buffers take a gigabyte or two in all, which the cores of this machine have to copy.
                thread::sleep(Duration::from_millis(150));
            }
            one
        })
        .collect();
    let mut most = memory;
    let in_flight = || gateway.metrics().count("drip_origin_in_flight", &[]);
    let took = long_until("the answers to those who do not read are given up", || {
        most = most.max(process.memory());
        in_flight() <= i64::from(!steady.is_finished())
    });
    println!("given up after {took:?}, {} MB", (most - memory) / MB);
    assert!(
        took < COPYING + 3 * TIMEOUT + LATER,
        "given up after {took:?}"
    );
    let bound = u64::try_from(READERS).expect("few") * 512 * KB;
    assert!(
        most < memory + bound,
        "{} MB for {READERS} who do not read",
        (most - memory) / MB
    );
    assert!(
        steady.join().expect("no panic") > BIG,
        "who reads slowly gets it all"
    );
    others.check();
    // Now this test has to copy what filled the kernel's buffers.
    watch(&mut crowd, 3 * COPYING);
    for (nth, one) in crowd.iter().enumerate() {
        assert!(one.ended.is_some(), "connection {nth} is still open");
        assert!(one.got.len() < BIG, "connection {nth} got it all after all");
    }
    eventually("the connections are closed", || {
        process.descriptors() <= descriptors + MORE_DESCRIPTORS
    });
}

//! An origin that cannot be reached for a while, and requests that wait for it.

mod killed;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::checklist::haproxy::Haproxy;
use crate::support::{
    Client, Exchange, Gateway, Origin, alone, best_of_three, check_gaps, eventually, fetch,
    free_address, now,
};
use killed::KilledServer;

const MS: Duration = Duration::from_millis(1);

/// How much longer than `hold` an answer may take on a busy machine.
const LATE: Duration = Duration::from_secs(2);

/// A file whose origin `app` has these servers and fields.
fn held(servers: &[SocketAddr], fields: &str, rest: &str) -> String {
    let servers: Vec<String> = servers.iter().map(|to| format!("http://{to}")).collect();
    format!(
        "workers = 4\n\n[origins.app]\nservers = {servers:?}\n{fields}\n\n\
         [zones.key]\nkey = \"$arg_key\"\nrate = \"1000r/s\"\n\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n{rest}\n"
    )
}

/// An origin at an address that may have been used before. Each connection has one request.
fn origin_at(address: SocketAddr) -> Origin {
    Origin::at(&address.to_string(), |exchange: &mut Exchange| {
        exchange.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")?;
        Exchange::close()
    })
}

fn gauge(gateway: &Gateway, name: &str) -> i64 {
    gateway.metrics().count(name, &[("origin", "app")])
}

fn reloads(gateway: &Gateway) -> i64 {
    let labels = [("result", "success")];
    gateway
        .metrics()
        .count("drip_config_reloads_total", &labels)
}

fn wait_for_depth(gateway: &Gateway, depth: i64) {
    eventually(&format!("{depth} wait"), || {
        gauge(gateway, "drip_origin_queue_depth") == depth
    });
}

fn ask_all(gateway: &Gateway, targets: &[&str]) -> Vec<Client> {
    let ask = |(nth, target): (usize, &&str)| {
        let client = Client::ask(gateway.address(), target);
        wait_for_depth(gateway, i64::try_from(nth + 1).expect("few"));
        client
    };
    targets.iter().enumerate().map(ask).collect()
}

fn statuses(clients: &mut [Client]) -> Vec<u16> {
    clients.iter_mut().map(|it| it.answer().status).collect()
}

/// How many answers had each status, and how long the longest took.
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
    let _alone = alone();
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
fn an_outage_longer_than_hold_is_a_502_after_hold_and_never_before() {
    let address = free_address();
    let hold = 700 * MS;
    let fields = "rate = \"100r/s\"\nhold = \"700ms\"";
    let gateway = Gateway::start(&held(&[address], fields, ""));
    let asking: Vec<_> = (0..30)
        .map(|nth| {
            thread::sleep(30 * MS);
            let to = gateway.address();
            thread::spawn(move || {
                let began = now();
                let answer = fetch(to, &format!("/{nth}"));
                (answer.status, began.elapsed())
            })
        })
        .collect();
    for asked in asking {
        let (status, took) = asked.join().expect("no panic");
        assert_eq!(status, 502);
        assert!(took >= hold && took < hold + LATE, "{took:?}");
    }
    wait_for_depth(&gateway, 0);
    let of = |reason| [("origin", "app"), ("reason", reason)];
    let metrics = gateway.metrics();
    assert_eq!(
        metrics.count("drip_origin_rejections_total", &of("outage")),
        30
    );
    let blocked = metrics.value("drip_origin_blocked_seconds_total", &[("by", "outage")]);
    assert!(blocked.is_some_and(|it| it > 1.0), "{blocked:?}");
    assert_eq!(gauge(&gateway, "drip_origin_in_flight"), 0);
    // It comes back after all.
    let _origin = origin_at(address);
    assert_eq!(fetch(gateway.address(), "/").status, 200);
}

#[test]
fn without_hold_a_refused_connection_is_a_502_at_once() {
    let gateway = Gateway::start(&held(&[free_address()], "rate = \"100r/s\"", ""));
    let began = now();
    assert_eq!(fetch(gateway.address(), "/").status, 502);
    assert!(began.elapsed() < LATE);
    let labels = [("origin", "app"), ("by", "outage")];
    let blocked = gateway
        .metrics()
        .value("drip_origin_blocked_seconds_total", &labels);
    assert_eq!(blocked, Some(0.0));
}

#[test]
fn all_servers_unhealthy_and_back() {
    let addresses = [free_address(), free_address()];
    let health = "[origins.app.health]\npath = \"/up\"\ninterval = \"50ms\"\nunhealthy_after = 2";
    let text = held(&addresses, "hold = \"20s\"", "");
    let text = text.replace("[zones.key]", &format!("{health}\n\n[zones.key]"));
    let begin = || addresses.map(origin_at);
    let origins = begin();
    let gateway = Gateway::start(&text);
    assert_eq!(fetch(gateway.address(), "/1").status, 200);
    drop(origins);
    let healthy = |count: f64| {
        let metrics = gateway.metrics();
        let of = |address| format!("http://{address}");
        let value = |server: &str| metrics.value("drip_origin_healthy", &[("server", server)]);
        addresses.iter().all(|it| value(&of(it)) == Some(count))
    };
    eventually("both are out", || healthy(0.0));
    let mut clients = ask_all(&gateway, &["/2", "/3", "/4"]);
    let origins = begin();
    assert_eq!(statuses(&mut clients), [200; 3]);
    let of = |part| {
        origins
            .iter()
            .map(|it| it.moments(part).len())
            .sum::<usize>()
    };
    assert_eq!((of("/2"), of("/3"), of("/4")), (1, 1, 1));
    drop(origins);
    eventually("both are out again", || healthy(0.0));
    gateway.site.write(&text.replace("20s", "300ms"));
    eventually("the file is in force", || reloads(&gateway) == 1);
    let began = now();
    let answer = fetch(gateway.address(), "/5");
    assert!(answer.status == 503 && answer.number("retry-after") >= 1);
    let took = began.elapsed();
    assert!(took >= 300 * MS && took < 300 * MS + LATE, "{took:?}");
}

#[test]
fn failures_that_took_all_servers_out_do_not_keep_them_out_once_they_are_back() {
    let addresses = [free_address(), free_address()];
    let fields = "hold = \"20s\"\nmax_fails = 1\nfail_timeout = \"10m\"";
    let gateway = Gateway::start(&held(&addresses, fields, ""));
    let mut clients = ask_all(&gateway, &["/1", "/2", "/3"]);
    let _origins = addresses.map(origin_at);
    assert_eq!(statuses(&mut clients), [200; 3]);
}

#[test]
fn one_server_of_three_that_is_up_takes_the_requests_at_once() {
    let origin = Origin::start();
    let servers = [free_address(), free_address(), origin.address];
    let fields = "hold = \"20s\"\nmax_fails = 1000000";
    let gateway = Gateway::start(&held(&servers, fields, ""));
    for nth in 0..20 {
        assert_eq!(fetch(gateway.address(), &format!("/{nth}")).status, 200);
    }
    let labels = [("origin", "app"), ("by", "outage")];
    let blocked = gateway
        .metrics()
        .value("drip_origin_blocked_seconds_total", &labels);
    assert_eq!(blocked, Some(0.0), "no request waited");
    assert_eq!(origin.arrivals().len(), 20);
}

#[test]
fn who_leaves_in_an_outage_gives_its_place_back_and_is_not_sent() {
    let address = free_address();
    let fields = "rate = \"20r/s\"\nhold = \"30s\"";
    let gateway = Gateway::start(&held(&[address], fields, ""));
    let mut clients = ask_all(&gateway, &["/1", "/2", "/3", "/4"]);
    // The first had left the gate before, the third had not.
    drop(clients.remove(2));
    drop(clients.remove(0));
    wait_for_depth(&gateway, 2);
    let origin = origin_at(address);
    assert_eq!(statuses(&mut clients), [200; 2]);
    wait_for_depth(&gateway, 0);
    eventually("no place is taken", || {
        gauge(&gateway, "drip_origin_in_flight") == 0
    });
    let targets: Vec<String> = origin.arrivals().into_iter().map(|it| it.target).collect();
    assert_eq!(targets, ["/2", "/4"]);
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
            "{nth} were there after {done} answers: {:?}",
            seen
        );
    }
    assert_eq!(fetch(gateway.address(), "/after").status, 200);
}

#[test]
fn bounds_of_the_queue_and_of_the_route_hold_in_an_outage() {
    let fields = "hold = \"2s\"\nmax_queue = 2";
    let route = "max_wait = \"400ms\"\nreject_status = 429\n\n\
                 [[routes]]\npath = \"/long/\"\norigin = \"app\"";
    let gateway = Gateway::start(&held(&[free_address()], fields, route));
    let began = now();
    let mut short = Client::ask(gateway.address(), "/short");
    wait_for_depth(&gateway, 1);
    let mut long = Client::ask(gateway.address(), "/long/");
    wait_for_depth(&gateway, 2);
    let over = fetch(gateway.address(), "/long/over");
    assert!(over.status == 503 && over.number("retry-after") >= 1);
    assert_eq!(short.answer().status, 429);
    let took = began.elapsed();
    assert!(took >= 400 * MS && took < 400 * MS + LATE, "{took:?}");
    assert_eq!(long.answer().status, 502);
    assert!(began.elapsed() >= 2000 * MS);
}

#[test]
fn new_servers_in_the_file_end_an_outage_for_the_requests_that_come() {
    let origin = Origin::start();
    let text = |server| held(&[server], "rate = \"100r/s\"\nhold = \"20s\"", "");
    let gateway = Gateway::start(&text(free_address()));
    let mut old = ask_all(&gateway, &["/old"]);
    gateway.site.write(&text(origin.address));
    // It knows only the server that is gone.
    assert_eq!(old[0].answer().status, 502);
    eventually("the file is in force", || reloads(&gateway) == 1);
    let began = now();
    assert_eq!(fetch(gateway.address(), "/new").status, 200);
    assert!(began.elapsed() < LATE);
}

#[test]
fn a_reload_that_keeps_the_servers_lets_those_who_wait_wait() {
    let address = free_address();
    let text = |rate: &str| {
        held(
            &[address],
            &format!("rate = \"{rate}\"\nhold = \"20s\""),
            "",
        )
    };
    let gateway = Gateway::start(&text("100r/s"));
    let mut clients = ask_all(&gateway, &["/1", "/2"]);
    gateway.site.write(&text("50r/s"));
    eventually("the file is in force", || reloads(&gateway) == 1);
    clients.push(Client::ask(gateway.address(), "/3"));
    wait_for_depth(&gateway, 3);
    let origin = origin_at(address);
    assert_eq!(statuses(&mut clients), [200; 3]);
    assert_eq!(origin.arrivals().len(), 3);
}

#[test]
fn a_stop_answers_who_waits_for_the_origin() {
    let address = free_address();
    let text = held(&[address], "rate = \"100r/s\"\nhold = \"1m\"", "");
    let text = "shutdown_timeout = \"500ms\"\n".to_owned() + &text;
    let mut gateway = Gateway::start(&text);
    let mut clients = ask_all(&gateway, &["/1", "/2", "/3"]);
    gateway.signal(Signal::TERM);
    assert_eq!(statuses(&mut clients), [503; 3]);
    assert!(gateway.wait(Duration::from_secs(20)).success());
}

#[test]
fn the_log_tells_of_an_outage_and_its_end() {
    let address = free_address();
    let gateway = Gateway::start(&held(&[address], "hold = \"20s\"", ""));
    let mut clients = ask_all(&gateway, &["/1", "/2"]);
    let line = gateway.wait_for_line("the origin cannot be reached: its requests wait");
    assert!(line.contains("app") && line.contains("refused"), "{line}");
    let _origin = origin_at(address);
    assert_eq!(statuses(&mut clients), [200; 2]);
    let line = gateway.wait_for_line("the origin can be reached again");
    assert!(line.contains("waiting=2"), "{line}");
}

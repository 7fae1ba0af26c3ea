//! One picture of a gateway and its peers, whatever a peer does.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use drip::time::clock;
use serde_json::{Value, json};

use crate::support::{
    Client, Gateway, Origin, eventually, fetch, fetch_with, free_address, now, one_zone,
};

const ADMIN: &str = "DRIP_ADMIN_TOKEN";
const READ: &str = "DRIP_ADMIN_READ_TOKEN";

/// Longest time for a picture on a busy machine: a peer has two seconds.
const BOUND: Duration = Duration::from_secs(8);

fn peers(of: &[SocketAddr]) -> String {
    let urls: Vec<String> = of.iter().map(|it| format!("\"http://{it}\"")).collect();
    format!("peers = [{}]\n", urls.join(", "))
}

fn file(origin: &Origin, name: &str, of: &[SocketAddr]) -> String {
    let zone = one_zone(origin, "1r/m", "burst = 3");
    format!("name = \"{name}\"\n{}{zone}", peers(of))
}

/// A gateway with this name, and these peers.
fn start(origin: &Origin, name: &str, of: &[SocketAddr]) -> Gateway {
    Gateway::start(&file(origin, name, of))
}

fn picture(of: &Gateway) -> Value {
    let answer = fetch(of.site.admin, "/api/fleet");
    assert_eq!(answer.status, 200);
    serde_json::from_slice(&answer.body).expect("JSON")
}

/// The names of the gateways, each with its state.
fn states(fleet: &Value) -> Vec<(&str, &str)> {
    let gateways = fleet["gateways"].as_array().expect("a list");
    gateways
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["state"].as_str().unwrap()))
        .collect()
}

/// A server in place of a peer, which answers with what a test says. It keeps the heads of requests.
struct Strange {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Strange {
    fn start(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(free_address()).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let (kept, answer) = (Arc::clone(&heads), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                thread::spawn(move || {
                    let lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
                    let lines = lines.map_while(Result::ok);
                    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                    if let Some(first) = head.first() {
                        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                        kept.lock().expect("no panic").push(head.join("\n"));
                        answer(&path, &mut stream);
                    }
                });
            }
        });
        Self { address, heads }
    }

    /// A peer whose answers are this JSON.
    fn answering(answer: impl Fn(&str) -> Value + Send + Sync + 'static) -> Self {
        Self::start(move |path, stream| send(stream, "200 OK", "", &answer(path).to_string()))
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

fn send(stream: &mut TcpStream, status: &str, fields: &str, body: &str) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{fields}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    // The gateway may not want to read it all.
    let _closed = stream.write_all((head + body).as_bytes());
}

#[test]
fn two_that_name_each_other_are_summed_and_one_that_is_killed_is_said() {
    let origin = Origin::start();
    let (a, b) = (start(&origin, "a", &[]), start(&origin, "b", &[]));
    // One file for both would do: a gateway among its own peers is left out.
    let both = [a.site.admin, b.site.admin];
    for (gateway, name) in [(&a, "a"), (&b, "b")] {
        gateway.site.write(&file(&origin, name, &both));
        gateway.wait_for_line("the changed file is in force");
    }
    let waiting: Vec<Client> = [&a, &a, &b]
        .into_iter()
        .chain([&a, &b])
        .map(|gateway| Client::ask(gateway.address(), "/?key=x"))
        .collect();
    // The first one at each passes.
    eventually("three wait", || picture(&a)["zones"][0]["depth"] == 3);
    for (gateway, names) in [(&a, ["a", "b"]), (&b, ["b", "a"])] {
        let fleet = picture(gateway);
        assert_eq!(states(&fleet), names.map(|name| (name, "answers")));
        assert_eq!(fleet["headline"]["cause"], "fine", "{fleet}");
        let zone = &fleet["zones"][0];
        assert_eq!(
            (&zone["name"], &zone["rates"]),
            (&json!("z"), &json!(["1r/m"]))
        );
        let key = &fleet["keys"][0];
        assert_eq!((&key["key"], &key["depth"]), (&json!("x"), &json!(3)));
        assert_eq!(key["parts"].as_array().expect("a list").len(), 2);
    }
    let at = b.site.admin;
    drop((waiting, b));
    eventually("the killed one is said", || {
        states(&picture(&a)) == [("a", "answers"), ("b", "silent")]
    });
    let fleet = picture(&a);
    let silent = &fleet["gateways"][1];
    assert_eq!(silent["reason"], "connection refused");
    let since = silent["since"].clone();
    assert_eq!(fleet["headline"]["cause"], "gateway_silent");
    assert_eq!(
        fleet["headline"]["title"],
        format!("b ({at}) does not answer")
    );
    thread::sleep(Duration::from_millis(1100));
    assert_eq!(
        picture(&a)["gateways"][1]["since"],
        since,
        "since the first time"
    );
}

#[test]
fn without_peers_the_picture_is_of_the_gateway_itself() {
    let origin = Origin::start();
    let gateway = start(&origin, "alone", &[]);
    assert_eq!(states(&picture(&gateway)), [("alone", "answers")]);
}

#[test]
fn a_peer_that_misbehaves_costs_two_seconds_at_most_and_is_said() {
    let origin = Origin::start();
    let good = start(&origin, "good", &[]);
    let garbage = Strange::start(|_, stream| send(stream, "200 OK", "", "<html>\u{1b}[2J"));
    let large = Strange::start(|_, stream| {
        let spaces = " ".repeat(5 << 20);
        send(stream, "200 OK", "", &format!("{spaces}{{}}"));
    });
    let slow = Strange::start(|_, stream| {
        let _closed = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(300));
        }
    });
    let deaf = TcpListener::bind(free_address()).expect("a socket");
    let other = Strange::answering(|_| json!({"zones": [{"name": "q"}], "x": [1, {"y": null}]}));
    let target = Strange::answering(|_| json!({}));
    let location = format!("location: http://{}/api/now\r\n", target.address);
    let away = Strange::start(move |_, stream| send(stream, "302 Found", &location, ""));
    let deaf_at = deaf.local_addr().expect("an address");
    let all = [
        good.site.admin,
        garbage.address,
        large.address,
        slow.address,
        deaf_at,
        away.address,
        other.address,
    ];
    let gateway = Gateway::start_with(&file(&origin, "own", &all), &[(READ, Path::new("reader"))]);
    let began = now();
    let answer = fetch_with(
        gateway.site.admin,
        "/api/fleet",
        "Authorization: Bearer reader\r\n",
    );
    let took = began.elapsed();
    assert!(took < BOUND, "{took:?}");
    let fleet: Value = serde_json::from_slice(&answer.body).expect("JSON");
    let reason = |nth: usize| {
        fleet["gateways"][nth]["reason"]
            .as_str()
            .unwrap_or_default()
    };
    assert_eq!(states(&fleet)[0], ("own", "answers"));
    assert_eq!(states(&fleet)[1], ("good", "answers"));
    for (nth, state, part) in [
        (2, "strange", "is not what a drip gateway says"),
        (3, "refuses", "has more than 4194304 bytes"),
        (4, "silent", "no answer in time"),
        (5, "silent", "no answer in time"),
        (6, "strange", "it answers 302 Found to /api/now"),
    ] {
        assert!(reason(nth).contains(part), "{nth}: {fleet}");
        assert_eq!(states(&fleet)[nth].1, state, "{nth}: {fleet}");
    }
    let title = fleet["headline"]["title"].as_str().expect("a title");
    assert!(title.ends_with("is no drip gateway"), "{title}");
    // Fields that are unknown or missing are no error.
    assert_eq!(fleet["gateways"][7]["state"], "answers");
    assert_eq!(fleet["zones"][1]["name"], "q");
    assert_eq!(
        target.heads(),
        Vec::<String>::new(),
        "no redirect is followed"
    );
    assert_eq!(
        fleet["headline"]["also"].as_array().expect("a list").len(),
        5,
        "{fleet}"
    );
}

#[test]
fn a_peer_gets_the_token_for_reading_and_no_other() {
    let origin = Origin::start();
    for (admin, read, sent) in [
        ("ops:SECRET1", "reader", Some("reader")),
        ("ops:SECRET1", "", None),
    ] {
        let peer = Strange::answering(|_| json!({}));
        let file = file(&origin, "own", &[peer.address]);
        let variables = [(ADMIN, Path::new(admin)), (READ, Path::new(read))];
        let gateway = Gateway::start_with(&file, &variables);
        thread::sleep(Duration::from_millis(1500));
        assert_eq!(peer.heads(), Vec::<String>::new(), "nobody has asked");
        let own = "Authorization: Bearer SECRET1\r\n";
        assert_eq!(
            fetch_with(gateway.site.admin, "/api/fleet", own).status,
            200
        );
        let heads = peer.heads();
        assert_eq!(heads.len(), 4, "{heads:?}");
        for head in heads {
            let head = head.to_ascii_lowercase();
            let authorization = head
                .lines()
                .find_map(|it| it.strip_prefix("authorization: "));
            assert_eq!(
                authorization,
                sent.map(|it| format!("bearer {it}")).as_deref()
            );
        }
    }
}

#[test]
fn a_peer_with_another_token_is_said_with_the_remedy() {
    let origin = Origin::start();
    let peer = |read: &str| {
        let file = file(&origin, "peer", &[]);
        Gateway::start_with(&file, &[(READ, Path::new(read))])
    };
    let (same, other) = (peer("reader"), peer("another"));
    let of = [same.site.admin, other.site.admin];
    let gateway = Gateway::start_with(&file(&origin, "own", &of), &[(READ, Path::new("reader"))]);
    let refused = fetch(gateway.site.admin, "/api/fleet");
    assert_eq!(refused.status, 401, "the picture needs the token, too");
    let answer = fetch_with(
        gateway.site.admin,
        "/api/fleet",
        "Authorization: Bearer reader\r\n",
    );
    let fleet: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(fleet["gateways"][1]["state"], "answers");
    let reason = fleet["gateways"][2]["reason"].as_str().expect("a reason");
    assert!(reason.contains("give all gateways the same"), "{reason}");
    let without = start(&origin, "without", &of);
    let fleet = picture(&without);
    let reason = fleet["gateways"][1]["reason"].as_str().expect("a reason");
    assert!(reason.contains("the only token that they send"), "{reason}");
}

#[test]
fn files_that_differ_and_clocks_that_differ_are_the_headline() {
    let origin = Origin::start();
    let b = start(&origin, "b", &[]);
    let unix = || Duration::from_nanos(clock::now().as_nanos()).as_secs_f64();
    let ahead = Strange::answering(move |path| match path {
        "/api/now" => json!({"id": "c", "time": unix() + 60.0}),
        _ => json!({"gateway": "c"}),
    });
    let a = start(&origin, "a", &[b.site.admin, ahead.address]);
    let fleet = picture(&a);
    assert_eq!(fleet["headline"]["cause"], "clocks_differ", "{fleet}");
    let title = fleet["headline"]["title"].as_str().expect("a title");
    assert!(
        title.starts_with("The clock of c is ahead of that of "),
        "{title}"
    );
    let clock = fleet["gateways"][2]["clock"].as_f64().expect("a number");
    assert!((55.0..62.0).contains(&clock), "{clock}");

    b.site
        .write(&file(&origin, "b", &[]).replace("1r/m", "2r/m"));
    b.wait_for_line("the changed file is in force");
    eventually("the difference is said", || {
        picture(&a)["headline"]["cause"] == "files_differ"
    });
    let fleet = picture(&a);
    let evidence = fleet["headline"]["evidence"].as_str().expect("a text");
    assert_eq!(evidence, r#"zones.z.rate is "1r/m" at a, "2r/m" at b."#);
    assert_eq!(fleet["zones"][0]["rates"], json!(["1r/m", "2r/m"]));
}

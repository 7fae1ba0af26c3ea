//! Which requests count, what else is watched, and how long an experiment waits for requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Crowd, body, command_within, ended, experiment, rate};
use crate::support::operator::{parse, post, send};
use crate::support::{Gateway, MS, Origin, eventually, now, one_origin};

const FILE: &str = "rate = \"40r/s\"\nqueue_timeout = \"60s\"\nmax_queue = 1000";

#[test]
fn it_waits_for_requests_until_a_time_and_no_longer() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let until = Timestamp::now() + Duration::from_secs(12);
    let more = format!(r#", "min_step": "1s", "until": "{until}""#);
    let began = now();
    let (status, told) = post(&gateway, "/api/find", &body(&more));
    assert_eq!((status, &told["state"]), (200, &"running".into()), "{told}");
    assert!(told["until"].is_string(), "{told}");
    let id = told["id"].clone();
    while experiment(&gateway)["state"] == "running" {
        assert!(began.elapsed() < Duration::from_secs(40), "it goes on");
        renew(&gateway, &id);
        thread::sleep(200 * MS);
    }
    assert!(began.elapsed() >= 11_500 * MS, "{:?}", began.elapsed());
    assert_eq!(experiment(&gateway)["outcomes"][0]["outcome"], "unknown");
    assert_eq!(rate(&gateway), "40r/s");
}

fn renew(gateway: &Gateway, id: &Value) {
    let renewed = send(
        gateway,
        "PUT",
        "/api/find/app",
        &json!({ "id": id }).to_string(),
    );
    assert_eq!(renewed.status, 200, "{}", parse(&renewed));
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn wait_counts_from_when_nobody_waits_and_not_from_the_start() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let crowd = Crowd::start(&gateway, 30);
    let more = r#", "min_step": "1s", "confirm": "10m", "wait": "8s""#;
    let (status, told) = post(&gateway, "/api/find", &body(more));
    assert_eq!((status, &told["until"]), (200, &Value::Null), "{told}");
    let id = told["id"].clone();
    let renew_for = |time: Duration| {
        let began = now();
        while began.elapsed() < time {
            renew(&gateway, &id);
            thread::sleep(200 * MS);
        }
    };
    renew_for(10_000 * MS);
    assert_eq!(crowd.end(), 0);
    // Longer than the shortest step, and later than 8 s after the start.
    renew_for(3_000 * MS);
    assert_eq!(experiment(&gateway)["state"], "running");
    let crowd = Crowd::start(&gateway, 30);
    renew_for(2_000 * MS);
    assert_eq!(experiment(&gateway)["state"], "running");
    assert_eq!(crowd.end(), 0);
    let began = now();
    while experiment(&gateway)["state"] == "running" {
        assert!(began.elapsed() < Duration::from_secs(40), "it goes on");
        renew(&gateway, &id);
        thread::sleep(200 * MS);
    }
    assert!(began.elapsed() >= 4_000 * MS, "{:?}", began.elapsed());
    let outcome = experiment(&gateway)["outcomes"][0]["outcome"].clone();
    assert_eq!(outcome, "at_least");
}

/// Steps of four seconds from 50r/s to 55r/s.
fn short(gateway: &Gateway, more: &[&str]) -> (bool, String) {
    let bounds = ["--from", "50r/s", "--to", "55r/s", "--step", "10%"];
    let steps = ["--min-step", "4s", "--confirm", "4s", "--wait", "20s"];
    let all = [&bounds[..], &steps, more].concat();
    ended(command_within(gateway, &all))
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn only_answers_of_the_wanted_route_or_class_count() {
    let origin = Origin::answering(|exchange| {
        let is_slow = exchange.head.first_line.contains("/slow");
        thread::sleep(if is_slow { 400 * MS } else { 5 * MS });
        exchange.reply(b"ok")
    });
    let classes = "\nclasses = { interactive = 1, batch = 1 }\n";
    let slow = "[[routes]]\npath = \"/slow\"\norigin = \"app\"\nclass = \"batch\"\n";
    let file = one_origin(origin.address, "", &format!("{FILE}{classes}{slow}"));
    let gateway = Gateway::start(&file);
    let crowds = [("/", 30), ("/slow", 30)];
    let crowds = crowds.map(|(path, clients)| Crowd::asking(&gateway, path, clients));
    let (is_found, text) = short(&gateway, &["--only", "class=interactive"]);
    assert!(is_found && text.contains("55r/s keeps"), "{text}");
    let (requests, took) = (
        &experiment(&gateway)["requests"],
        &experiment(&gateway)["took"],
    );
    let share = requests.as_f64().expect("a count") / took.as_f64().expect("seconds") / 52.0;
    assert!(
        (0.3..0.7).contains(&share),
        "half of all that left: {share}"
    );
    let (is_found, text) = short(&gateway, &["--only", "route=/"]);
    assert!(is_found && text.contains("55r/s keeps"), "{text}");
    for only in [&["--only", "route=/slow"][..], &[]] {
        let (is_found, text) = short(&gateway, only);
        let says = "the objective does not hold at the lowest level";
        assert!(!is_found && text.contains(says), "{only:?}: {text}");
    }
    for (only, says) in [
        (
            "class=other",
            "the classes of origin \\\"app\\\": \\\"interactive\\\"",
        ),
        ("route=/other", "the routes of origin"),
        ("zone=a", "such as class=interactive"),
    ] {
        let more = format!(r#", "only": "{only}""#);
        let (status, told) = post(&gateway, "/api/find", &body(&more));
        assert!(status == 400 && told.to_string().contains(says), "{told}");
    }
    assert_eq!(crowds.map(Crowd::end), [0, 0]);
}

/// An origin that tells its load, until it is silent.
struct Loaded {
    origin: Origin,
    load: Arc<AtomicU64>,
    is_silent: Arc<AtomicBool>,
}

impl Loaded {
    fn start() -> Self {
        let (load, is_silent) = (
            Arc::new(AtomicU64::new(1)),
            Arc::new(AtomicBool::new(false)),
        );
        let (told, silent) = (Arc::clone(&load), Arc::clone(&is_silent));
        let origin = Origin::answering(move |exchange| {
            if silent.load(Ordering::Relaxed) {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            let text = format!(
                "# A load.\nload{{cpu=\"0\"}} {}\n",
                told.load(Ordering::Relaxed)
            );
            exchange.reply(text.as_bytes())
        });
        Self {
            origin,
            load,
            is_silent,
        }
    }

    fn watch(&self) -> String {
        format!("http://{}/metrics load < 8", self.origin.address)
    }
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn a_figure_beyond_its_bound_breaks_a_step_and_one_that_is_lost_ends_it() {
    let (origin, loaded) = (Origin::start(), Loaded::start());
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let crowd = Crowd::start(&gateway, 30);
    let watch = loaded.watch();
    let (is_found, text) = short(&gateway, &["--watch", &watch]);
    assert!(is_found && text.contains("55r/s keeps"), "{text}");
    assert!(text.contains("load 1 "), "{text}");
    loaded.load.store(9, Ordering::Relaxed);
    let (is_found, text) = short(&gateway, &["--watch", &watch]);
    assert!(!is_found && text.contains("  broke  "), "{text}");
    assert!(text.contains("load 9 "), "{text}");
    assert!(text.contains("  load<8 broke"), "{text}");
    assert_eq!(rate(&gateway), "40r/s");

    loaded.load.store(1, Ordering::Relaxed);
    let more = format!(r#", "watch": ["{watch}"]"#);
    let (status, told) = post(&gateway, "/api/find", &body(&more));
    assert_eq!(
        (status, &told["watch"]),
        (200, &serde_json::json!(["load<8"])),
        "{told}"
    );
    loaded.is_silent.store(true, Ordering::Relaxed);
    let id = told["id"].clone();
    let began = now();
    while experiment(&gateway)["state"] == "running" {
        assert!(began.elapsed() < Duration::from_secs(40), "it goes on");
        send(
            &gateway,
            "PUT",
            "/api/find/app",
            &format!(r#"{{"id": {id}}}"#),
        );
        thread::sleep(200 * MS);
    }
    let reason = experiment(&gateway)["outcomes"][0]["reason"].to_string();
    assert!(reason.contains("could not be read for 10 s"), "{reason}");
    assert!(
        began.elapsed() >= 8 * Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    eventually("the file counts", || rate(&gateway) == "40r/s");
    let logged = gateway.log().matches("a figure cannot be read").count();
    assert!((1..=4).contains(&logged), "not once a second: {logged}");

    let nothing = [
        watch.as_str(),
        "http://127.0.0.1:1/ load < 8",
        "ftp://a load < 8",
        "http://user:secret@127.0.0.1:1/ load < 8",
    ];
    for wrong in nothing {
        let (status, told) = post(
            &gateway,
            "/api/find",
            &body(&format!(r#", "watch": ["{wrong}"]"#)),
        );
        assert!(
            status == 400 && told.to_string().contains("watch"),
            "{told}"
        );
        assert!(!told.to_string().contains("secret"), "{told}");
    }
    assert_eq!(crowd.end(), 0, "nobody is refused because of it");
}

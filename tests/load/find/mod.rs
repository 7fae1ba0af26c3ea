//! Tests of `drip find`: an experiment on real traffic that finds the capacity of an origin.

mod command;
mod pages;

use std::collections::VecDeque;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use self::command::{json_before, signal};
use crate::support::operator::{delete, json, post, send};
use crate::support::{
    Crowd, Gateway, MS, Origin, assert_contains, eventually, half_alone, now, one_origin,
};

const SECOND: Duration = Duration::from_secs(1);
const FILE: &str = "rate = \"40r/s\"\nqueue_timeout = \"60s\"\nmax_queue = 1000";

fn rate(gateway: &Gateway) -> Value {
    json(gateway, "/api/origins")["origins"][0]["gate"]["rate"]["now"].clone()
}

fn experiment(gateway: &Gateway) -> Value {
    json(gateway, "/api/find/app")
}

fn body(more: &str) -> String {
    format!(
        r#"{{"origin": "app", "slo": "p95<200ms, errors<5%", "from": "50r/s", "to": "90r/s"{more}}}"#
    )
}

/// Starts an origin that takes 5 ms, or half a second above `most` requests per second.
fn origin_of(most: usize) -> Origin {
    let came = Mutex::new(VecDeque::<Instant>::new());
    Origin::answering(move |exchange| {
        let at = now();
        let mut all = came.lock().expect("no panic");
        all.push_back(at);
        while all
            .front()
            .is_some_and(|it| at.duration_since(*it) > SECOND)
        {
            all.pop_front();
        }
        let is_slow = all.len() > most;
        drop(all);
        thread::sleep(if is_slow { 500 * MS } else { 5 * MS });
        exchange.reply(b"ok")
    })
}

fn command(gateway: &Gateway, arguments: &[&str]) -> Child {
    command_within(gateway, ["50r/s", "90r/s"], arguments)
}

fn command_within(gateway: &Gateway, [from, to]: [&str; 2], arguments: &[&str]) -> Child {
    let admin = gateway.site.admin.to_string();
    Command::new(env!("CARGO_BIN_EXE_drip"))
        .args(["find", "app", "--slo", "p95<200ms, errors<5%"])
        .args(["--from", from, "--to", to])
        .args(["--admin", &admin])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program")
}

/// Waits for a command. Returns whether it succeeded, and its output.
fn ended(mut child: Child) -> (bool, String) {
    let mut text = String::new();
    let stdout = child.stdout.as_mut().expect("a pipe");
    stdout.read_to_string(&mut text).expect("text");
    let stderr = child.stderr.as_mut().expect("a pipe");
    stderr.read_to_string(&mut text).expect("text");
    (child.wait().expect("an end").success(), text)
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn what_an_origin_can_take_is_found_on_real_traffic_and_the_file_counts_again() {
    let _half = half_alone();
    let origin = origin_of(66);
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let crowd = Crowd::start(&gateway, 60);
    let steps = ["--step", "10%", "--min-step", "4s", "--confirm", "6s"];
    let (is_found, text) = ended(command(&gateway, &steps));
    assert!(is_found, "{text}");
    let found = experiment(&gateway);
    assert_eq!(found["state"], "ended");
    let outcome = &found["result"];
    assert_eq!(outcome["outcome"], "found", "{text}");
    let level = outcome["level"].as_str().expect("a rate");
    let level: f64 = level.trim_end_matches("r/s").parse().expect("a number");
    // Arrivals are counted in whole requests, and the gate is slightly uneven.
    assert!((54.0..=68.0).contains(&level), "{level}: {text}");
    assert_contains!(text, "  ok  ", "  broke  ", " at once\n");
    assert_contains!(text, &format!("rate = \"{level}r/s\""));
    assert_eq!(rate(&gateway), "40r/s");
    assert_eq!(crowd.end(), 0, "no request is rejected");
    let log = gateway.log();
    assert!(log.contains("experiment started") && log.contains("experiment ended"));
    let changes = json(&gateway, "/api/config")["changes"].to_string();
    assert_contains!(changes, "origins.app: experiment ended: ");
}

#[test]
#[ignore = "15 seconds are a constant of the product: tests/run.sh long"]
fn an_experiment_that_nobody_renews_ends_and_the_file_counts_again() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let began = now();
    let (status, received) = post(&gateway, "/api/find", &body(""));
    assert_eq!(status, 200, "{received}");
    assert_eq!(received["state"], "running", "{received}");
    assert_eq!(rate(&gateway), "50r/s");
    let (status, received) = post(&gateway, "/api/find", &body(""));
    assert_eq!(status, 409, "{received}");
    while rate(&gateway) != "40r/s" {
        assert!(began.elapsed() < 25 * SECOND, "the override lasts");
        thread::sleep(200 * MS);
    }
    assert!(began.elapsed() >= 14 * SECOND, "{:?}", began.elapsed());
    eventually("it has ended", || experiment(&gateway)["state"] == "ended");
    let why = experiment(&gateway)["result"]["reason"].clone();
    let expected = "ended: the terminal or the connection that started it is gone";
    assert_eq!(why, expected);
}

#[test]
fn a_command_that_is_interrupted_gives_the_rate_or_the_permits_back_at_once() {
    let origin = Origin::start();
    let file = format!("{FILE}\nmax_in_flight = 3");
    let gateway = Gateway::start(&one_origin(origin.address, "", &file));
    let levels = || {
        let gate = json(&gateway, "/api/origins")["origins"][0]["gate"].clone();
        (
            gate["rate"]["now"].clone(),
            gate["max_in_flight"]["now"].clone(),
        )
    };
    for (bounds, begun) in [
        (["50r/s", "90r/s"], ("50r/s", 3)),
        (["6", "24"], ("40r/s", 6)),
    ] {
        let child = command_within(&gateway, bounds, &[]);
        eventually("it has begun", || {
            levels() == (begun.0.into(), begun.1.into())
        });
        signal(&child, Signal::INT);
        let (is_found, text) = ended(child);
        assert!(!is_found && text.contains("ended: stopped"), "{text}");
        assert_eq!(levels(), ("40r/s".into(), 3.into()));
    }
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn json_has_the_steps_so_far_if_the_gateway_is_lost() {
    let _half = half_alone();
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let crowd = Crowd::start(&gateway, 60);
    let child = command(&gateway, &["--min-step", "2s", "--json"]);
    let has_step = || {
        let steps = experiment(&gateway)["steps"].clone();
        steps.as_array().is_some_and(|it| !it.is_empty())
    };
    eventually("it has begun", || rate(&gateway) == "50r/s");
    eventually("a step has ended", has_step);
    thread::sleep(3 * SECOND);
    crowd.end();
    drop(gateway);
    let (is_found, text) = ended(child);
    let (known, text) = json_before(&text);
    assert_eq!(
        known["state"], "running",
        "the state that was reported last"
    );
    assert!(known["steps"][0]["line"].is_string(), "{known}");
    let incomplete = known["lines"][0].as_str().expect("a line");
    assert!(incomplete.starts_with("# incomplete: "), "{incomplete}");
    let received = text.matches("does not renew").count();
    let once = !is_found && received == 2;
    assert!(once, "once when it is silent, and once at the end: {text}");
}

#[test]
fn what_changes_the_origin_meanwhile_ends_an_experiment() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let reason = || experiment(&gateway)["result"]["reason"].clone();
    let begin = || {
        let (status, received) = post(&gateway, "/api/find", &body(""));
        assert_eq!(status, 200, "{received}");
        assert_eq!(rate(&gateway), "50r/s");
    };
    begin();
    let (status, _) = delete(&gateway, "/api/origins/app/override");
    assert_eq!(status, 200);
    eventually("it has ended", || {
        reason() == "ended: its override was undone or has expired"
    });
    gateway.wait_for_line("experiment ended: its override was undone");

    begin();
    let (status, received) = delete(&gateway, "/api/find/app");
    assert_eq!(status, 200, "{received}");
    assert_eq!(received["state"], "ended", "{received}");
    assert_eq!(rate(&gateway), "40r/s");
    let none = send(&gateway, "GET", "/api/find/none", "");
    assert!(none.status == 404 && none.text().contains("there is no origin"));

    begin();
    let (status, received) = post(&gateway, "/api/reload", "");
    assert_eq!(status, 200, "{received}");
    thread::sleep(SECOND);
    assert_eq!(experiment(&gateway)["state"], "running");
    assert_eq!(rate(&gateway), "50r/s");
    let file = FILE.replace("40r/s", "41r/s");
    gateway.site.write(&one_origin(origin.address, "", &file));
    eventually("it has ended", || {
        reason() == "ended: the configuration file changed; start again"
    });
    eventually("the file counts", || rate(&gateway) == "41r/s");
}

#[test]
fn no_override_of_somebody_else_is_replaced_and_none_takes_its_name() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let path = "/api/origins/app/override";
    let overridden = || json(&gateway, "/api/origins")["origins"][0]["gate"]["override"].clone();
    for (owner, says) in [
        ("", "an override is"),
        (r#", "owner": "deploy""#, "of deploy is"),
    ] {
        let held = &format!(r#"{{"pause": true, "for": "10m"{owner}}}"#);
        let says = &format!("{says} in force");
        assert_eq!(send(&gateway, "PUT", path, held).status, 200);
        let before = overridden();
        let (status, received) = post(&gateway, "/api/find", &body(""));
        let is_refused = status == 409 && received.to_string().contains(says);
        assert!(is_refused, "{received}");
        assert_eq!(overridden(), before);
        let (is_found, text) = ended(command(&gateway, &[]));
        assert!(!is_found && text.contains(says), "{text}");
        assert_eq!((overridden(), delete(&gateway, path).0), (before, 200));
    }

    let (status, received) = post(&gateway, "/api/find", &body(""));
    assert_eq!(status, 200, "{received}");
    for owner in [r#", "owner": "drip find""#, r#", "owner": "deploy""#, ""] {
        let expected = format!(r#"{{"rate": "1r/s", "for": "10m"{owner}}}"#);
        let refused = send(&gateway, "PUT", path, &expected);
        assert!([400, 409].contains(&refused.status), "{owner}");
        assert_eq!(rate(&gateway), "50r/s");
    }
    assert_eq!(experiment(&gateway)["state"], "running");
}

#[test]
fn without_demand_it_says_that_nothing_is_known() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let (is_found, text) = ended(command(&gateway, &["--min-step", "2s", "--wait", "3s"]));
    let says = "# nothing is known: nobody asked for enough at 50r/s";
    assert!(!is_found && text.contains(says), "{is_found}: {text}");
    assert_eq!(experiment(&gateway)["result"]["outcome"], "unknown");
    assert_eq!(rate(&gateway), "40r/s");
}

#[test]
fn what_cannot_be_is_refused() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let (is_found, text) = ended(command(&gateway, &["--step", "much"]));
    assert!(!is_found && text.contains("step is \"much\""), "{text}");
    let refused = |body: &Value, says: &str| {
        let (status, received) = post(&gateway, "/api/find", &body.to_string());
        assert!((400..500).contains(&status), "{body}: {status}");
        let received = received["error"].as_str().expect("a reason");
        assert!(received.contains(says), "{body}: {received}");
    };
    for (field, value, says) in [
        ("slo", "p95", "slo is"),
        ("from", "fast", "from is"),
        ("to", "9r/s", "from must be the lower rate"),
        ("to", "90", "to is"),
        ("origin", "none", "there is no origin"),
        ("watch", "x", "unknown field"),
        ("confirm", "0s", "confirm is"),
        ("min_step", "2h", "it must be from 1s to 1h"),
        ("step", "0.01%", "step is \"0.01%\"; it"),
        ("step", "51%", "it must be from 1% to 50%"),
        ("wait", "11m", "it must be from 1s to 10m"),
    ] {
        let mut body: Value = serde_json::from_str(&body("")).expect("JSON");
        body[field] = value.into();
        refused(&body, says);
    }
    let permit_search = |from: &str, to: &str| json!({ "origin": "app", "slo": "p95<200ms", "from": from, "to": to });
    refused(&permit_search("9", "8"), "from must be the lower number");
    refused(&permit_search("0", "8"), "a number from 1 to");
    let (status, received) = delete(&gateway, "/api/find/app");
    assert_eq!(status, 404, "{received}");
}

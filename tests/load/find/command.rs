//! Tests of `drip find` with a gateway that is restarted.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{FILE, SECOND, body, command, ended, experiment, rate};
use crate::support::operator::{post, send};
use crate::support::{Gateway, Origin, Site, eventually, now, one_origin};

/// Returns JSON at the beginning of a text, and the rest of it.
pub fn json_before(text: &str) -> (Value, &str) {
    let mut all = serde_json::Deserializer::from_str(text).into_iter();
    let first = all.next().and_then(Result::ok);
    (first.expect("JSON"), &text[all.byte_offset()..])
}

#[test]
fn after_a_restart_an_old_command_leaves_the_experiment_of_another_one_alone() {
    let origin = Origin::start();
    let file = one_origin(origin.address, "", FILE);
    let gateway = Gateway::start(&file);
    let child = command(&gateway, &["--json"]);
    eventually("it has begun", || rate(&gateway) == "50r/s");
    let old = experiment(&gateway)["id"].clone();
    // Stopped, so that it sends its request only once the other experiment runs.
    signal(&child, Signal::STOP);
    let mut site = Site::new();
    (site.address, site.admin) = (gateway.site.address, gateway.site.admin);
    site.write(&file);
    drop(gateway);
    let gateway = Gateway::start_at(site);
    let renewal = json!({ "id": old }).to_string();
    let none = send(&gateway, "PUT", "/api/find/app", &renewal);
    let says = "no experiment since the gateway started";
    assert!(none.status == 404 && none.text().contains(says), "{none:?}");
    let (status, other) = post(&gateway, "/api/find", &body(""));
    assert_eq!(status, 200, "{other}");
    assert_ne!(other["id"], old);
    for method in ["PUT", "DELETE"] {
        let refused = send(&gateway, method, "/api/find/app", &renewal);
        assert_eq!(refused.status, 409, "{method}: {refused:?}");
    }
    let began = now();
    signal(&child, Signal::CONT);
    let (is_found, text) = ended(child);
    assert!(began.elapsed() < 10 * SECOND, "{:?}", began.elapsed());
    let (known, text) = json_before(&text);
    assert_eq!(known["id"], old);
    let says = "the gateway no longer has this experiment: ";
    assert!(!is_found && text.contains(says), "{text}");
    let running = experiment(&gateway);
    assert_eq!(running["id"], other["id"]);
    assert_eq!(running["state"], "running");
}

pub fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("an id"), signal).expect("it runs");
}

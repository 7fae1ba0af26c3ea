//! `drip top` with several gateways.

use std::process::{Command, Output};

use crate::support::{Client, Gateway, Origin, eventually, fetch, free_address, one_zone};
use crate::top::pty::Pty;

fn gateway(origin: &Origin, name: &str) -> Gateway {
    let zone = one_zone(origin, "1r/m", "burst = 3");
    Gateway::start(&format!("name = \"{name}\"\n{zone}"))
}

fn top(addresses: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
    command.arg("top").args(addresses).output().unwrap()
}

#[test]
fn several_are_summed_and_one_that_is_silent_is_said() {
    let origin = Origin::start();
    let (a, b) = (gateway(&origin, "a"), gateway(&origin, "b"));
    let waiting = [&a, &a, &b, &b, &b].map(|it| Client::ask(it.address(), "/?key=x"));
    eventually("they wait", || {
        a.zone("drip_zone_queue_depth") + b.zone("drip_zone_queue_depth") == 3
    });
    let nobody = free_address();
    let urls = [a.site.admin, b.site.admin, nobody].map(|it| format!("http://{it}"));
    let output = top(&urls);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{text}"
    );
    assert!(
        text.starts_with(&format!(
            "3 gateways, 2 answering\n{nobody} does not answer\n"
        )),
        "{text}"
    );
    let words = |begin: &str| {
        let line = text.lines().find(|line| line.starts_with(begin));
        let words = line
            .unwrap_or_else(|| panic!("no {begin} in {text}"))
            .split_whitespace();
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(words("z ")[5], "3", "{text}");
    assert_eq!(words("  a ").last(), words("  a ").get(4), "{text}");
    assert!(text.contains("2 gateways  x\n"), "{text}");

    // By any address a gateway counts once.
    let twice = [
        format!("localhost:{}", a.site.admin.port()),
        a.site.admin.to_string(),
    ];
    let text = String::from_utf8(top(&twice).stdout).unwrap();
    assert!(text.starts_with("1 gateway, 1 answering\n"), "{text}");
    let none = top(&[nobody.to_string(), free_address().to_string()]);
    assert!(!none.status.success());
    let why = String::from_utf8(none.stderr).unwrap();
    assert!(
        why.starts_with("drip top: nothing to show: ") && why.contains("connection refused"),
        "{why}"
    );
    drop(waiting);
}

#[test]
fn in_a_terminal_keys_select_and_change_nothing() {
    let origin = Origin::start();
    let (a, b) = (gateway(&origin, "a"), gateway(&origin, "b"));
    let addresses = format!("{} {}", a.site.admin, b.site.admin);
    let mut pty = Pty::top(&addresses, (120, 32));
    pty.wait_for(&["2 gateways, 2 answering", "2 gateways agree", "> a ("]);
    pty.press("\t");
    pty.wait_for(&["> z "]);
    pty.press("p");
    pty.wait_for(&["several gateways are only shown"]);
    drop(b);
    pty.wait_for(&["2 gateways, 1 answering", "does not answer since"]);
    pty.press("q");
    assert!(pty.ended().success());
    let zones = fetch(a.site.admin, "/api/zones").text();
    assert!(!zones.contains("\"override\""), "{zones}");
}

//! `drip top` in a terminal.

use rustix::process::Signal;

use crate::top::fake::Fake;
use crate::top::pty::Pty;

const LARGE: (u16, u16) = (110, 32);
const SMALL: (u16, u16) = (60, 15);

#[test]
fn keys_do_what_they_say() {
    let fake = Fake::start();
    let mut pty = Pty::top(&fake.address.to_string(), LARGE);
    let address = format!("drip 0.1.0  {}  connected", fake.address);
    let all = [
        &address,
        "gateway.toml: ok",
        "> per_client",
        "▸ zones",
        "burst 20",
        "OUT      unix:app.sock",
        "192.0.2.1",
    ];
    pty.wait_for(&all);
    pty.press("j");
    pty.wait_for(&["> all"]);
    pty.press("\x1b[A");
    pty.wait_for(&["> per_client"]);
    pty.press("\t\t");
    pty.wait_for(&["▸ deepest keys, by depth"]);
    pty.press("s");
    pty.wait_for(&["▸ deepest keys, by oldest wait"]);
    pty.press("\x1b[Z\x1b[Z");
    pty.wait_for(&["▸ zones"]);
    pty.press("?");
    pty.wait_for(&["Shift-Tab"]);
    pty.press("?");
    pty.press(" ");
    pty.wait_for(&["frozen"]);
    pty.press(" q");
    assert!(pty.ended().success());
}

#[test]
fn it_ends_well_by_escape_control_c_and_signals() {
    let fake = Fake::start();
    for key in ["\x1b", "\x03"] {
        let mut pty = Pty::top(&fake.address.to_string(), SMALL);
        pty.wait_for(&["per_client"]);
        pty.press(key);
        assert!(pty.ended().success());
    }
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let pty = Pty::top(&fake.address.to_string(), SMALL);
        pty.wait_for(&["per_client"]);
        pty.signal(signal);
        assert!(pty.ended().success());
    }
}

#[test]
fn a_terminal_may_be_small_and_grow() {
    let fake = Fake::start();
    let mut pty = Pty::top(&fake.address.to_string(), SMALL);
    let small = pty.wait_for(&["> per_client", "? help", "┌ depth"]);
    assert!(!small.contains("origins"));
    pty.resize(LARGE);
    pty.wait_for(&["origins", "deepest keys", "? help"]);
    pty.press("q");
    assert!(pty.ended().success());
}

#[test]
fn keys_and_messages_do_nothing_to_the_terminal() {
    let fake = Fake::start();
    fake.break_file("\u{1b}]0;owned\u{7}");
    let mut pty = Pty::top(&fake.address.to_string(), (160, 40));
    // The screen panics on unknown sequences.
    pty.wait_for(&[
        r"\u{1b}]0;owned\u{7}\u{9b}2J\u{d}\u{a}\x1B",
        r"broken since 2026-11-21 06:01:00 UTC, line 3: \u{1b}]0;owned\u{7}",
    ]);
    let raw = pty.raw();
    assert!(!raw.windows(2).any(|two| two == b"\x1b]") && !raw.contains(&7));
    pty.press("q");
    assert!(pty.ended().success());
}

#[test]
fn a_file_that_breaks_is_seen_at_once() {
    let fake = Fake::start();
    let mut pty = Pty::top(&fake.address.to_string(), SMALL);
    pty.wait_for(&["gateway.toml: ok"]);
    fake.break_file("rate");
    pty.wait_for(&["gateway.toml: broken since 2026-11-21"]);
    pty.press("q");
    assert!(pty.ended().success());
}

#[test]
fn a_gateway_that_is_gone_is_waited_for() {
    let mut fake = Fake::start();
    let address = fake.address;
    let mut pty = Pty::top(&address.to_string(), LARGE);
    pty.wait_for(&["connected"]);
    fake.stop();
    pty.wait_for(&["trying again: connection refused", "> per_client"]);
    let fake = Fake::at(address, 500);
    pty.wait_for(&["connected"]);
    let ids = fake.last_event_ids();
    assert!(
        ids.len() == 1 && ids[0].parse::<u64>().unwrap() >= 60,
        "{ids:?}"
    );
    pty.press("q");
    assert!(pty.ended().success());
}

#[test]
fn where_nobody_listens_the_terminal_is_not_touched() {
    let mut fake = Fake::start();
    fake.stop();
    let pty = Pty::top(&fake.address.to_string(), (200, 15));
    pty.wait_for(&["connection refused; start the gateway"]);
    assert!(!pty.raw().contains(&0x1b));
}

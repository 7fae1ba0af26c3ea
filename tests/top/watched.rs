//! Tests of `drip top` in a terminal.

use rustix::process::Signal;

use crate::top::fake::Fake;
use crate::top::pty::Pty;

const LARGE: (u16, u16) = (110, 32);
const SMALL: (u16, u16) = (60, 10);

#[test]
fn it_ends_well_by_keys_and_signals() {
    let fake = Fake::start();
    for key in ["q", "xq", "\x03"] {
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
    let small = pty.wait_for(&["per_client", "all "]);
    assert!(!small.contains("unix:app.sock"), "{small}");
    pty.resize(LARGE);
    pty.wait_for(&["unix:app.sock", "gate of app"]);
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
fn a_lost_gateway_is_waited_for() {
    let mut fake = Fake::start();
    let address = fake.address;
    let mut pty = Pty::top(&address.to_string(), LARGE);
    pty.wait_for(&["drip 0.1.0 at"]);
    fake.stop();
    pty.wait_for(&["trying again: connection refused", "per_client"]);
    let fake = Fake::at(address);
    fake.break_file("it is back");
    let screen = pty.wait_for(&["it is back"]);
    assert!(!screen.contains("trying again"), "{screen}");
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

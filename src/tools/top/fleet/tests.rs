use std::fs;
use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;
use serde_json::{Value, json};

use super::lines::text;
use super::page::{Next, Page};
use super::view::draw;
use crate::status::views::Fleet;
use crate::tools::top::view::Paint;

fn silent(nth: u64) -> Value {
    json!({
        "name": format!("10.0.0.{nth}:9090"), "address": format!("10.0.0.{nth}:9090"),
        "state": "silent", "since": "2026-11-21T06:00:00.123Z", "reason": "connection refused",
    })
}

/// A picture of so many gateways, the last of which does not answer.
fn fleet(count: u64) -> Fleet {
    let name = |nth: u64| format!("edge-{nth}");
    let gateways = (1..=count).map(|nth| {
        if nth == count {
            return silent(nth);
        }
        json!({
            "name": name(nth), "address": format!("10.0.0.{nth}:9090"), "state": "answers",
            "version": "0.1.0", "answers": 20 * nth, "in_flight": nth, "depth": 3, "rejected": 1,
            "clock": 0.004, "severity": "fine", "title": "No requests are waiting",
        })
    });
    let parts = |part: fn(u64) -> Value| -> Vec<Value> {
        let parts = (1..count).map(|nth| {
            let mut part = part(nth);
            part["gateway"] = name(nth).into();
            part
        });
        parts.collect()
    };
    let zone = |nth| json!({"out": 10, "rejected": 1, "depth": nth, "oldest_wait": 0.5});
    let gate =
        |nth| json!({"part": 0.1, "alone": nth == 2, "sent": 20.0, "depth": 1, "in_flight": 2});
    let places = |nth| json!({"held": 4, "in_use": nth % 4});
    let key = |nth| json!({"depth": nth, "rejections": 2});
    let fleet = json!({
        "headline": {"cause": "gateway_silent", "severity": "bad", "title": "10.0.0.3:9090 does not answer",
            "evidence": "Since 06:00:00 UTC: connection refused. No sum has what is there.",
            "remedy": "See whether it runs.", "also": ["4 places of db are withheld"]},
        "gateways": gateways.collect::<Vec<_>>(),
        "zones": [
            {"name": "per_client", "store": "redis", "rates": ["10r/s"], "out": 90, "rejected": 9, "depth": 45,
             "oldest_wait": 0.5, "parts": parts(zone)},
            {"name": "login", "store": "memory", "rates": ["1r/s", "2r/s"], "parts": parts(|_| json!({}))},
        ],
        "gates": [{"origin": "app", "shared": true, "rates": ["200r/s"], "gateways": 9, "sent": 180.0,
            "depth": 9, "in_flight": 18, "parts": parts(gate)}],
        "places": [{"origin": "db", "of": 40, "withheld": 4, "free": 0, "gateways": 9, "held": 36, "in_use": 13,
            "parts": parts(places)}],
        "keys": [
            {"zone": "per_client", "key": "192.0.2.1\u{1b}[2J", "depth": 45, "rejections": 18, "oldest_wait": 0.5,
             "parts": parts(key)},
            {"zone": "tokens", "gate": "app", "key": "~8f3a", "masked": true, "depth": 2,
             "parts": [{"gateway": "edge-1", "depth": 2}]},
        ],
    });
    serde_json::from_value(fleet).unwrap()
}

fn drawn(page: &mut Page, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(page, Paint::none(), frame))
        .unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(width.into());
    let line = |row: &[ratatui::buffer::Cell]| {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned() + "\n"
    };
    rows.map(line).collect()
}

/// Compares with a file of this folder, or writes it.
fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools/top/fleet/tests");
    let path = path.join(name);
    if std::env::var_os("DRIP_UPDATE_GOLDENS").is_some() {
        fs::write(&path, text).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap_or_default(),
        text,
        "{name}"
    );
}

fn showing(count: u64) -> Page {
    let mut page = Page::default();
    page.show(fleet(count));
    page
}

fn press(page: &mut Page, keys: &str) {
    for key in keys.chars() {
        assert_eq!(page.key(KeyCode::Char(key).into()), Next::Stay);
    }
}

#[test]
fn ten_gateways_fit_and_the_selected_line_has_its_parts() {
    let mut page = showing(10);
    check("ten.txt", &drawn(&mut page, (120, 40)));
    page.key(KeyCode::Tab.into());
    check("ten-zone.txt", &drawn(&mut page, (120, 40)));
}

#[test]
fn a_small_terminal_follows_the_selection() {
    let mut page = showing(3);
    for _ in 0..20 {
        page.key(KeyCode::Down.into());
        let shown = drawn(&mut page, (80, 12));
        assert_eq!(shown.matches("\n>").count(), 1, "{shown}");
    }
    let shown = drawn(&mut page, (80, 12));
    assert!(shown.contains('>') && shown.contains("~8f3a"), "{shown}");
    page.key(KeyCode::Tab.into());
    let shown = drawn(&mut page, (80, 12));
    assert!(shown.contains("> edge-1"), "{shown}");
    page.key(KeyCode::BackTab.into());
    let shown = drawn(&mut page, (80, 12));
    assert!(shown.contains("limited in"), "{shown}");
    assert!(!drawn(&mut page, (10, 3)).is_empty());
}

#[test]
fn as_text_all_parts_are_shown() {
    check("three.txt", &text(&fleet(3)));
}

#[test]
fn keys_that_change_a_gateway_say_that_they_do_not() {
    let mut page = showing(3);
    for key in ["p", "r", "d", "D", "u", "f", "F", "R"] {
        press(&mut page, key);
        let shown = drawn(&mut page, (100, 30));
        assert!(
            shown.contains("start drip top with its address alone"),
            "{key}: {shown}"
        );
        press(&mut page, "k");
        assert!(!drawn(&mut page, (100, 30)).contains("alone with"));
    }
    assert_eq!(page.key(KeyCode::Char('q').into()), Next::Quit);
}

#[test]
fn a_frozen_picture_stays_until_it_is_let_go() {
    let mut page = showing(10);
    press(&mut page, " ");
    page.show(fleet(3));
    let shown = drawn(&mut page, (100, 30));
    assert!(
        shown.contains("10 gateways, 9 answering  frozen"),
        "{shown}"
    );
    press(&mut page, " ");
    page.selected = 17;
    page.show(fleet(3));
    assert!(drawn(&mut page, (100, 30)).contains("3 gateways, 2 answering\n"));
    assert!(page.selected < 17);
}

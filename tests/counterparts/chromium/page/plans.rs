//! Tests of the plans of keys on the live page.

use serde_json::{Value, json};

use crate::chromium::page::{check_that_it_fits, check_that_nobody_complained, opened};
use crate::support::{Client, Gateway, Origin, one_zone};

const GOLD: &str =
    "[zones.z.plans.gold]\nkeys = [\"alice\", \"bob\"]\nrate = \"2r/m\"\nburst = 8\nweight = 3\n";

/// Returns a zone and a gate that share their keys, and a route that only the gate limits.
fn file(origin: &Origin, plans: &str) -> String {
    let gate = "rate = \"1r/m\"\nshare = \"z\"\nqueue_timeout = \"1h\"\n\n[zones.z]";
    let text = one_zone(origin, "1r/m", "burst = 4").replacen("[zones.z]", gate, 1);
    text + "[[routes]]\npath = \"/gate\"\norigin = \"app\"\n" + plans
}

/// Sends requests for each of these targets, which stay open.
fn crowd(gateway: &Gateway, targets: &[(&str, usize)]) -> Vec<Client> {
    let all = targets
        .iter()
        .flat_map(|(target, count)| (0..*count).map(move |_| target));
    all.map(|target| gateway.ask(target)).collect()
}

/// Script that returns key, zone, plan and depth of each row of the list of keys.
const KEYS: &str = "[...document.querySelectorAll('#keys tbody tr')].map((row) => [
      row.querySelector('code').textContent,
      row.querySelector('small span').textContent,
      row.querySelector('.plan').hidden ? null : row.querySelector('.plan').textContent,
      row.cells[1].textContent,
    ])";

/// Script that returns key and plan of each key at the gate.
const SHARES: &str = "[...document.querySelectorAll('.shares li')].map((row) => [
      row.querySelector('code').textContent,
      row.querySelector('.plan').hidden ? null : row.querySelector('.plan').textContent,
    ])";

#[test]
fn each_key_has_its_plan_beside_it() {
    let origin = Origin::start();
    let (gateway, browser) = opened(&file(&origin, GOLD));
    let settings = "plan gold 2 keys rate 2r/m burst 8 weight 3";
    browser.has(".zone .settings", settings);
    let targets = [
        ("/?key=alice", 7),
        ("/?key=eve", 4),
        ("/gate?key=bob", 4),
        ("/gate?key=dan", 2),
    ];
    let _waiting = crowd(&gateway, &targets);
    let keys: Value = json!([
        ["alice", "z", "plan gold", "6 / 8"],
        ["eve", "z", null, "3 / 4"],
    ]);
    browser.holds(format!("JSON.stringify({KEYS}) === '{keys}'"));
    browser.wait_for(
        "the keys at the gate",
        &format!(
            "const shown = JSON.stringify({SHARES});
             return shown.includes('[\"bob\",\"plan gold\"]') && shown.includes('[\"dan\",null]')"
        ),
    );
    check_that_it_fits(&browser, &[390, 320, 700, 1000, 1280]);
    check_that_nobody_complained(&browser);

    // Without plans there is no mark.
    gateway.site.write(&file(&origin, ""));
    browser.holds(format!(
        "{KEYS}.length === 2 && [...document.querySelectorAll('.plan')].every((it) => it.hidden)"
    ));
}

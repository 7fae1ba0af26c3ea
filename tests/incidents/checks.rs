//! What `drip check` warns of before anything happens.

use std::fs;

use super::driver::{Check, Line, has};
use super::servers::limited;
use crate::support::{Gateway, Origin, Site, drip, eventually};

const COMMA: Check = Check {
    status: 0,
    parts: &["warning", r"gold\.txt", r":1\b|line 1\b"],
};

#[test]
fn keys_with_commas_quotes_or_control_bytes_are_a_warning_at_their_line() {
    let origin = Origin::start();
    let site = Site::new();
    let gold = site.folder().join("gold.txt");
    let odd = "alice,gold\n\"bob\"\ncarol\u{1}\n";
    fs::write(&gold, odd).expect("a file");
    let zone = "key = \"$arg_key\"\nrate = \"1r/s\"";
    let plan = "[zones.per_key.plans.gold]\nfile = \"gold.txt\"\nrate = \"10r/s\"\n";
    let file = limited(origin.address, zone, "/", "burst = 5") + plan;
    site.write(&file);
    COMMA.hold_of(&site.file());
    fs::write(&gold, "alice\nbob\ncarol\n").expect("a file");
    let gateway = Gateway::run(site);
    gateway.wait_until_ready();
    fs::write(&gold, odd).expect("a file");
    let warns = Line {
        levels: &["WARN"],
        parts: &[r"gold\.txt"],
    };
    let lines = || gateway.log_lines().into_iter().map(|(_, line)| line);
    eventually("the reload warns", || lines().any(|line| warns.is(&line)));
    // Masked keys are not named.
    let masked = file.replacen("rate = \"1r/s\"", "rate = \"1r/s\"\nmask_keys = true", 1);
    gateway.site.write(&masked);
    COMMA.hold_for(&gateway);
    let output = drip()
        .args(["check", "-c"])
        .arg(gateway.site.file())
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!has(&text, "alice"), "{text}");
}

const SECRET: Check = Check {
    status: 0,
    parts: &["warning", r"\bkey\b", "mask_keys"],
};

#[test]
fn secrets_as_keys_without_a_mask_are_a_warning() {
    let origin = Origin::start();
    for key in ["$http_authorization", "$cookie_session", "$http_x_api_key"] {
        let site = Site::new();
        let zone = format!("key = \"{key}\"\nrate = \"1r/s\"");
        site.write(&limited(origin.address, &zone, "/", "burst = 5"));
        SECRET.hold_of(&site.file());
        let zone = format!("{zone}\nmask_keys = true");
        site.write(&limited(origin.address, &zone, "/", "burst = 5"));
        let output = drip()
            .args(["check", "-c"])
            .arg(site.file())
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("mask_keys"), "{text}");
    }
}

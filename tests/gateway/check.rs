//! Tests of `drip check`, and of starts that must fail.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Gateway, Origin, Site, drip, make_fifo, one_zone};

pub fn check(file: &Path) -> Output {
    ended(drip().arg("check").arg("-c").arg(file))
}

/// Checks a file, and prints all settings in force.
pub fn check_all(file: &Path) -> Output {
    ended(drip().args(["check", "--all", "-c"]).arg(file))
}

fn ended(command: &mut Command) -> Output {
    command.output().expect("the program runs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns `line:column` of the first `part` in `text`.
pub fn location(text: &str, part: &str) -> String {
    let (before, _) = text.split_once(part).expect("it is there");
    let (line, last) = (before.matches('\n').count(), before.rsplit('\n').next());
    format!(
        "{}:{}",
        line + 1,
        last.unwrap_or_default().chars().count() + 1
    )
}

#[test]
fn the_file_is_named_with_or_without_its_option_but_not_both() {
    let site = Site::new();
    site.write(&one_zone(&Origin::start(), "1r/s", "burst = 0"));
    let file = site.file();
    let with = |args: &[&str]| ended(drip().args(args).current_dir(site.folder()));
    let name = file.to_str().expect("a name");
    let expected = with(&["check", "-c", name]);
    assert_eq!(expected.status.code(), Some(0), "{expected:?}");
    for args in [
        &["check", name][..],
        &["check", "gateway.toml"],
        &["check"],
        &["-c", name, "check"],
        &["--config", name, "check"],
    ] {
        assert_eq!(with(args), expected, "{args:?}");
    }
    // A default file in the folder would hide that the option is not read.
    let other = with(&["-c", "missing.toml", "check"]);
    assert_eq!(other.status.code(), Some(1));
    let received = text(&other.stderr);
    let says = received.starts_with("missing.toml: cannot be read");
    assert!(says, "{received}");
    for (args, received) in [
        ("-c NAME check NAME", "remove one"),
        ("-c NAME check -c NAME", "remove one"),
        ("-c NAME simulate -c NAME trace.csv", "remove one"),
        ("-c NAME schema", "remove -c FILE"),
        ("-c NAME advise access.log", "drip advise -c FILE"),
        ("check NAME -c NAME", "cannot be used with"),
        ("run NAME -c NAME", "cannot be used with"),
    ] {
        let args = args
            .split(' ')
            .map(|it| if it == "NAME" { name } else { it });
        let refused = with(&args.collect::<Vec<_>>());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(text(&refused.stderr).contains(received), "{refused:?}");
    }
    fs::write(&file, WRONG).expect("a file");
    check_all_reported(&with(&["run", name]), &file);
}

#[test]
fn what_is_probably_a_mistake_is_a_warning_of_check_and_in_the_log() {
    let site = Site::new();
    let right = one_zone(&Origin::start(), "1r/s", "burst = 0");
    let wrong = format!("{right}[zones.spare]\nkey = \"$host\"\nrate = \"1r/s\"\n");
    site.write(&wrong);
    let location = location(&site.text(&wrong), "[zones.spare]");
    let name = site.file().display().to_string();
    let checked = check(&site.file());
    assert_eq!(checked.status.code(), Some(0));
    assert_eq!(text(&checked.stdout), "ok: 2 zones, 1 origin, 1 warning\n");
    let all = text(&check_all(&site.file()).stdout);
    assert!(all.starts_with("# ok: 2 zones, 1 origin, 1 warning\n\n[server]\n"));
    assert!(all.contains("[zones.spare]"));
    for unused in ["redis", "on_store_failure", "orphan", "lease"] {
        assert!(!all.contains(unused), "{all}");
    }
    let received = text(&checked.stderr);
    let warning = format!("{name}:{location}: warning: spare: no route");
    assert!(received.starts_with(&warning), "{received}");
    assert_eq!(received.lines().count(), 1, "{received}");

    let gateway = Gateway::run(site);
    gateway.wait_for_line("spare: no route");
    gateway.site.write(&right);
    gateway.wait_for_line("zones.spare removed");
    gateway.site.write(&wrong.replace("spare", "another"));
    gateway.wait_for_line("another: no route");
    let log = gateway.log();
    let warned = log.lines().filter(|line| line.contains("no route"));
    assert_eq!(warned.count(), 2);
}

#[test]
fn nothing_in_a_file_or_its_name_moves_or_turns_the_terminal() {
    const ODD: &str = "\u{9b}2J\u{202e}\u{2028}";
    let site = Site::new();
    let file = site.folder().join(format!("a{ODD}.toml"));
    let right = one_zone(&Origin::start(), "1r/s", "burst = 0");
    let right = site.text(&format!("{right}reject_body = \"b{ODD}\"\n"));
    let wrong = format!("{right}\"c{ODD}\" = \"d{ODD}\"\nreject_status = \"e{ODD}\"\n");
    for (written, status, shown) in [
        (right, 0, r#""b\u009B2J\u202E\u2028""#),
        (wrong, 1, r"\u009B2J\u202E\u2028"),
    ] {
        fs::write(&file, written).expect("a file");
        let output = check_all(&file);
        let received = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{received}");
        let is_odd = received.contains(['\u{9b}', '\u{202e}', '\u{2028}']);
        assert!(!is_odd, "{received:?}");
        assert!(received.contains(shown), "{received:?}");
    }
}

/// A file with five errors, and the subject of each.
const WRONG: &str = r#"[server]
lissten = ["127.0.0.1:8080"]
workers = "two"

[origins.app]
servers = ["http://127.0.0.1:9000"]

[zones.z]
key = "$remote_addr"
rate = "0r/s"

[[routes]]
path = "/"
origin = "ap"
limits = [{ zone = "z", burst = 2, delay = 3 }]
"#;
const PROBLEMS: [(&str, &str); 5] = [
    ("lissten", "listen"),
    ("\"two\"", "workers"),
    ("\"0r/s\"", "rate"),
    ("\"ap\"", "app"),
    ("3 }]", "delay"),
];

fn check_all_reported(output: &Output, file: &Path) {
    let received = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{received}");
    assert_eq!(text(&output.stdout), "");
    for (part, about) in PROBLEMS {
        let location = format!("{}:{}: ", file.display(), location(WRONG, part));
        let line = received.lines().find(|line| line.starts_with(&location));
        assert!(
            line.is_some_and(|line| line.contains(about)),
            "nothing about {about} at {location}\n{received}"
        );
    }
    assert_eq!(received.lines().count(), PROBLEMS.len(), "{received}");
}

#[test]
fn run_refuses_what_check_refuses() {
    let site = Site::new();
    fs::write(site.file(), WRONG).expect("a file");
    check_all_reported(&check(&site.file()), &site.file());
    let run = ended(drip().args(["run", "-c"]).arg(site.file()));
    check_all_reported(&run, &site.file());
    let run = ended(drip().current_dir(site.folder()));
    check_all_reported(&run, Path::new("gateway.toml"));
}

#[test]
fn a_second_gateway_on_the_same_address_is_refused_by_name() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/s", "burst = 1");
    let first = Gateway::start(&file);
    for taken in [first.address(), first.site.admin] {
        let mut second = Site::new();
        if taken == first.address() {
            second.address = taken;
        } else {
            second.admin = taken;
        }
        second.write(&file);
        let output = ended(drip().arg("-c").arg(second.file()));
        assert_eq!(output.status.code(), Some(1));
        let received = text(&output.stderr);
        let name = taken.to_string();
        assert!(received.contains(&name), "names {taken}: {received}");
    }
    let status = first.fetch("/?key=a").status;
    assert_eq!(status, 200, "the first one still serves");
}

#[test]
fn a_check_whose_output_cannot_be_written_says_so_and_fails() {
    let site = Site::new();
    site.write(&one_zone(&Origin::start(), "1r/s", "burst = 0"));
    let full = fs::File::options().write(true).open("/dev/full");
    let full = full.expect("a device");
    let checked = ended(drip().arg("check").arg(site.file()).stdout(full));
    assert_eq!(checked.status.code(), Some(1));
    let received = text(&checked.stderr);
    assert!(received.starts_with("drip: ") && !received.contains("panicked"));
}

#[test]
fn a_log_without_a_folder_is_reported_by_check_and_start_before_anything_listens() {
    let site = Site::new();
    let zone = one_zone(&Origin::start(), "1r/s", "burst = 0");
    fs::write(site.folder().join("file"), "").expect("a file");
    let none = "the folder of this file does not exist; make it, or name another file";
    let file = "the parent folder in this path is a file; name another path";
    for (name, wrong) in [
        ("none/a.log", none),
        ("file/a.log", file),
        (".", "this is a folder; name a file in it"),
        ("${DRIP_TEST_AP}/a.log", none),
    ] {
        let written = site.text(&format!("{zone}[log]\naccess = \"{name}\"\n"));
        fs::write(site.file(), &written).expect("a file");
        let at = location(&written, &format!("\"{name}\""));
        // The file may be checked on another machine.
        for (command, status, kind) in [("check", 0, "warning: "), ("run", 1, "")] {
            let mut run = drip();
            run.env("DRIP_TEST_AP", "folder-that-nobody-sees");
            let ended = ended(run.arg(command).arg(site.file()));
            assert_eq!(ended.status.code(), Some(status), "{command} {name}");
            let says = format!("{}:{at}: {kind}access: {wrong}\n", site.file().display());
            assert_eq!(text(&ended.stderr), says);
        }
    }
}

#[test]
fn an_access_log_that_cannot_be_opened_shows_no_value_of_the_environment() {
    let site = Site::new();
    let rest = one_zone(&Origin::start(), "1r/s", "burst = 0");
    // An unread pipe exists, but cannot be opened.
    let secret = "pipe-that-nobody-sees";
    make_fifo(site.folder().join(secret));
    site.write(&format!("{rest}[log]\naccess = \"${{DRIP_TEST_AP}}\"\n"));
    let mut run = drip();
    let ended = ended(run.env("DRIP_TEST_AP", secret).arg("-c").arg(site.file()));
    assert_eq!(ended.status.code(), Some(1));
    let said = text(&ended.stderr);
    let received = "log.access \"${DRIP_TEST_AP}\": no program reads this named pipe";
    assert!(said.contains(received) && !said.contains(secret), "{said}");
}

#[test]
fn a_missing_file_is_reported_with_the_command_that_writes_one() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, command) in [
        (&["check"][..], "`drip init`"),
        (&[], "`drip init`"),
        (&["run", "mine.toml"], "`drip init mine.toml`"),
    ] {
        let ended = ended(drip().args(args).current_dir(folder.path()));
        assert_eq!(ended.status.code(), Some(1), "{args:?}");
        let end = format!("No such file or directory (os error 2); {command} writes one\n");
        let said = text(&ended.stderr);
        assert!(said.ends_with(&end), "{said}");
    }
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_build_without_spans_refuses_a_collector_and_says_which_build_has_them() {
    let site = Site::new();
    let zone = one_zone(&Origin::start(), "5r/s", "burst = 5");
    for (otlp, status) in [("http://127.0.0.1:4318", 1), ("off", 0)] {
        site.write(&format!("{zone}[log]\notlp = \"{otlp}\"\n"));
        let checked = check(&site.file());
        assert_eq!(checked.status.code(), Some(status), "{otlp}");
        let said = text(&checked.stderr);
        let has_remedy =
            said.contains("otlp: ") && said.contains("cargo install --path . --features otlp");
        assert_eq!(has_remedy, status == 1, "{said}");
    }
}

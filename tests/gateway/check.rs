//! `drip check`, and starts that must fail.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{Gateway, Origin, Site, drip, make_fifo, one_zone};

pub fn check(file: &Path) -> Output {
    drip()
        .arg("check")
        .arg("-c")
        .arg(file)
        .output()
        .expect("the program runs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `line:column` of the first `part` in `text`.
pub fn place(text: &str, part: &str) -> String {
    let before = &text[..text
        .find(part)
        .unwrap_or_else(|| panic!("no {part} in {text}"))];
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!("{line}:{column}")
}

#[test]
fn check_prints_plans_with_their_numbers_of_keys_and_classes() {
    let site = Site::new();
    let origin = Origin::start();
    let list = site.folder().join("gold.txt");
    fs::write(&list, "bob\ncarol # new\nalice\n").expect("a file");
    let plans = "[zones.z.plans.gold]\nkeys = [\"alice\"]\nfile = \"gold.txt\"\nweight = 8\n\
                 class = \"batch\"\n[origins.app.classes]\ninteractive = 9\nbatch = 2\n";
    site.write(&(one_zone(&origin, "1r/s", "burst = 2") + plans));
    let checked = check(&site.file());
    let printed = text(&checked.stdout);
    let plan = format!(
        "[zones.z.plans.gold]\n# 3 keys\nkeys = [\"alice\"]\nfile = \"{}\"\nweight = 8\nclass = \"batch\"\n",
        list.display()
    );
    let classes = "[origins.app.classes]\ninteractive = 9\nbatch = 2\n";
    for part in [&plan, classes, "class = \"interactive\"\n"] {
        assert!(printed.contains(part), "no\n{part}in\n{printed}");
    }
    fs::write(site.file(), &printed).expect("a file");
    assert_eq!(text(&check(&site.file()).stdout), printed);
}

#[test]
fn the_file_is_named_with_or_without_its_option_but_not_both() {
    let site = Site::new();
    site.write(&one_zone(&Origin::start(), "1r/s", "burst = 0"));
    let file = site.file();
    let with = |args: &[&str]| {
        let run = drip().args(args).current_dir(site.folder()).output();
        run.expect("the program runs")
    };
    let name = file.to_str().expect("a name");
    let expected = with(&["check", "-c", name]);
    assert_eq!(
        expected.status.code(),
        Some(0),
        "{}",
        text(&expected.stderr)
    );
    for args in [&["check", name][..], &["check", "gateway.toml"], &["check"]] {
        assert_eq!(with(args), expected, "{args:?}");
    }
    for args in [&["-c", name, "check"][..], &["--config", name, "check"]] {
        assert_eq!(with(args), expected, "{args:?}");
    }
    // A default in the folder would hide that the option is not read.
    let other = with(&["-c", "missing.toml", "check"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(
        text(&other.stderr).starts_with("missing.toml: cannot be read"),
        "{other:?}"
    );
    for (args, told) in [
        (&["-c", name, "check", name][..], "leave one out"),
        (&["-c", name, "check", "-c", name][..], "leave one out"),
        (
            &["-c", name, "simulate", "-c", name, "trace.csv"][..],
            "leave one out",
        ),
        (&["-c", name, "schema"][..], "leave out -c FILE"),
        (
            &["-c", name, "advise", "access.log"][..],
            "drip advise -c FILE",
        ),
    ] {
        let refused = with(args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(text(&refused.stderr).contains(told), "{refused:?}");
    }
    for command in ["check", "run"] {
        let both = with(&[command, name, "-c", name]);
        assert_eq!(both.status.code(), Some(2));
        let told = text(&both.stderr);
        assert!(told.contains("cannot be used with"), "{told}");
    }
    fs::write(&file, WRONG).expect("a file");
    check_all_told(&with(&["run", name]), &file);
}

#[test]
fn what_is_probably_a_mistake_is_a_warning_of_check_and_in_the_log() {
    let site = Site::new();
    let right = one_zone(&Origin::start(), "1r/s", "burst = 0");
    let wrong = format!("{right}[zones.spare]\nkey = \"$host\"\nrate = \"1r/s\"\n");
    site.write(&wrong);
    let written = fs::read_to_string(site.file()).expect("a file");
    let place = place(&written, "[zones.spare]");
    let warning = format!(
        "{}:{place}: warning: spare: no route",
        site.file().display()
    );
    let checked = check(&site.file());
    assert_eq!(checked.status.code(), Some(0));
    assert!(text(&checked.stdout).contains("[zones.spare]"));
    let told = text(&checked.stderr);
    assert!(
        told.starts_with(&warning) && told.lines().count() == 1,
        "{told}"
    );
    let run = drip().args(["check", "--json"]).arg(site.file()).output();
    let told: Value = serde_json::from_slice(&run.expect("it runs").stdout).expect("JSON");
    assert_eq!(
        (&told["valid"], &told["problems"]),
        (&json!(true), &json!([]))
    );
    let warned = &told["warnings"][0];
    assert_eq!(format!("{}:{}", warned["line"], warned["column"]), place);

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
        let output = check(&file);
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{told}");
        assert!(
            !told.contains(['\u{9b}', '\u{202e}', '\u{2028}']),
            "{told:?}"
        );
        assert!(told.contains(shown), "{told:?}");
    }
}

#[test]
fn check_tells_programs_as_json() {
    let site = Site::new();
    let check = || {
        let run = drip().args(["check", "--json"]).arg(site.file()).output();
        let output = run.expect("the program runs");
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(text(&output.stderr), "");
        (output.status.code(), told)
    };
    let file = site.file().display().to_string();
    site.write(&one_zone(&Origin::start(), "1r/s", "burst = 0"));
    let nothing = json!({ "file": file, "valid": true, "problems": [], "warnings": [] });
    assert_eq!(check(), (Some(0), nothing));

    fs::write(site.file(), WRONG).expect("a file");
    let (code, told) = check();
    assert_eq!((code, &told["valid"]), (Some(1), &json!(false)));
    let problems = told["problems"].as_array().expect("a list");
    let places = problems.iter().map(|problem| {
        assert_eq!(problem["file"], json!(file));
        format!("{}:{}", problem["line"], problem["column"])
    });
    let expected = PROBLEMS.map(|(part, _)| place(WRONG, part));
    assert_eq!(places.collect::<Vec<_>>(), expected);
    let message = problems[2]["message"].as_str().expect("a text");
    assert!(message.contains("a rate of 0"), "{message}");

    fs::remove_file(site.file()).expect("a file");
    let (code, told) = check();
    assert_eq!((code, &told["problems"][0]["line"]), (Some(1), &json!(1)));
}

/// What it says of each field is held against the pages beside the tables of the configuration.
#[test]
fn the_schema_is_printed() {
    let printed = drip().arg("schema").output().expect("the program runs");
    assert!(printed.status.success());
    let schema: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    let property = schema.pointer("/properties/routes/items/properties/max_wait");
    assert!(property.is_some_and(|it| it["description"].is_string()));
}

/// A file with five errors, and what each is about.
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

fn check_all_told(output: &Output, file: &Path) {
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(text(&output.stdout), "");
    for (part, about) in PROBLEMS {
        let place = format!("{}:{}: ", file.display(), place(WRONG, part));
        let line = told.lines().find(|line| line.starts_with(&place));
        assert!(
            line.is_some_and(|line| line.contains(about)),
            "nothing about {about} at {place}\n{told}"
        );
    }
    assert_eq!(told.lines().count(), PROBLEMS.len(), "{told}");
}

#[test]
fn run_refuses_what_check_refuses() {
    let site = Site::new();
    fs::write(site.file(), WRONG).expect("a file");
    check_all_told(&check(&site.file()), &site.file());
    let run = drip().args(["run", "-c"]).arg(site.file()).output();
    check_all_told(&run.expect("the program runs"), &site.file());
    let run = drip()
        .current_dir(site.folder())
        .output()
        .expect("the program runs");
    check_all_told(&run, Path::new("gateway.toml"));
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
        let output = drip()
            .arg("-c")
            .arg(second.file())
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(1));
        let told = text(&output.stderr);
        assert!(
            told.contains(&taken.to_string()),
            "it names {taken}: {told}"
        );
    }
    assert_eq!(
        crate::support::fetch(first.address(), "/?key=a").status,
        200,
        "the first goes on"
    );
}

#[test]
fn a_check_whose_output_cannot_be_written_says_so_and_fails() {
    let site = Site::new();
    site.write(&one_zone(&Origin::start(), "1r/s", "burst = 0"));
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let checked = drip()
        .arg("check")
        .arg("-c")
        .arg(site.file())
        .stdout(full)
        .output();
    let checked = checked.expect("the program runs");
    assert_eq!(checked.status.code(), Some(1));
    let told = String::from_utf8_lossy(&checked.stderr);
    assert!(
        told.starts_with("drip: ") && !told.contains("panicked"),
        "{told}"
    );
}

#[test]
fn a_log_that_has_no_place_is_told_by_check_and_start_before_anything_listens() {
    let site = Site::new();
    let origin = Origin::start();
    let zone = one_zone(&origin, "1r/s", "burst = 0");
    fs::write(site.folder().join("file"), "").expect("a file");
    let secret = "folder-that-nobody-sees";
    for (name, wrong) in [
        (
            "none/a.log",
            "the folder of this file does not exist; make it, or name another file",
        ),
        (
            "file/a.log",
            "what should be the folder of this file is a file",
        ),
        (".", "this is a folder; name a file in it"),
        (
            "${DRIP_TEST_AP}/a.log",
            "the folder of this file does not exist; make it, or name another file",
        ),
    ] {
        let text = site.text(&format!("{zone}[log]\naccess = \"{name}\"\n"));
        fs::write(site.file(), &text).expect("a file");
        let at = place(&text, &format!("\"{name}\""));
        // The file may be checked on another machine.
        for (command, status, kind) in [("check", 0, "warning: "), ("run", 1, "")] {
            let mut run = drip();
            run.env("DRIP_TEST_AP", secret);
            let ended = run.arg(command).arg(site.file()).output();
            let ended = ended.expect("the program runs");
            assert_eq!(ended.status.code(), Some(status), "{command} {name}");
            let said = text_of(&ended);
            assert_eq!(
                said,
                format!("{}:{at}: {kind}access: {wrong}\n", site.file().display())
            );
        }
    }
}

fn text_of(ended: &Output) -> String {
    text(&ended.stderr)
}

#[test]
fn an_access_log_that_cannot_be_opened_shows_no_value_of_the_environment() {
    let site = Site::new();
    let origin = Origin::start();
    let rest = one_zone(&origin, "1r/s", "burst = 0");
    // A pipe that nobody reads has a place, and cannot be opened.
    let secret = "pipe-that-nobody-sees";
    make_fifo(site.folder().join(secret));
    site.write(&format!("{rest}[log]\naccess = \"${{DRIP_TEST_AP}}\"\n"));
    let mut run = drip();
    run.env("DRIP_TEST_AP", secret);
    let ended = run.arg("-c").arg(site.file()).output();
    let ended = ended.expect("the program runs");
    assert_eq!(ended.status.code(), Some(1));
    let said = text_of(&ended);
    let told = "log.access \"${DRIP_TEST_AP}\": no program reads this named pipe";
    assert!(said.contains(told) && !said.contains(secret), "{said}");
}

#[test]
fn a_file_that_is_not_there_is_told_with_the_command_that_writes_one() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, command) in [
        (&["check"][..], "`drip init`"),
        (&[], "`drip init`"),
        (&["run", "mine.toml"], "`drip init mine.toml`"),
    ] {
        let ended = drip().args(args).current_dir(folder.path()).output();
        let ended = ended.expect("the program runs");
        assert_eq!(ended.status.code(), Some(1), "{args:?}");
        let said = text_of(&ended);
        let end = format!(
            "cannot be read: No such file or directory (os error 2); {command} writes one\n"
        );
        assert!(said.ends_with(&end), "{said}");
    }
}

#[test]
fn a_standard_error_whose_reader_has_gone_ends_nothing() {
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    let mut check = drip();
    let ended = check
        .args(["check", "/none.toml"])
        .stderr(closed())
        .status();
    assert_eq!(ended.expect("the program runs").code(), Some(1));

    let origin = Origin::start();
    let site = Site::new();
    site.write(&one_zone(&origin, "100r/s", "burst = 9"));
    let mut run = drip();
    let mut gateway = run
        .arg("-c")
        .arg(site.file())
        .stderr(closed())
        .spawn()
        .expect("the program runs");
    crate::support::eventually("it serves", || {
        std::net::TcpStream::connect(site.address).is_ok()
    });
    crate::support::eventually("it is ready", || {
        std::net::TcpStream::connect(site.admin).is_ok()
            && crate::support::fetch(site.admin, "/readyz").status == 200
    });
    let answer = crate::support::fetch(site.address, "/?key=a");
    gateway.kill().expect("a process");
    gateway.wait().expect("a process");
    assert_eq!(answer.status, 200);
}

//! Tests of included files, and of environment variables in strings.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::gateway::history::nth_change;
use crate::support::operator::json;
use crate::support::{Gateway, Origin, Site, assert_contains, drip, eventually, one_zone};

/// Starts a gateway whose file includes all of `conf.d`. Returns it with that folder.
fn including(origin: &Origin) -> (Gateway, PathBuf) {
    let site = Site::new();
    let folder = site.folder().join("conf.d");
    fs::create_dir(&folder).expect("a folder");
    let main = site.text(&one_zone(origin, "100r/s", "burst = 20"));
    let text = format!("include = [\"conf.d/*.toml\"]\n{main}");
    fs::write(site.file(), text).expect("a file");
    let gateway = Gateway::start_at(site);
    (gateway, folder)
}

/// A route that admits one request per day.
const LIMITED: &str = "[zones.none]\nkey = \"$host\"\nrate = \"1r/d\"\n[[routes]]\npath = \"/a\"\norigin = \"app\"\nreject_status = 418\n\
                       limits = [{ zone = \"none\" }]\n";

#[test]
fn an_included_file_is_watched_and_so_is_its_folder() {
    let origin = Origin::start();
    let (gateway, folder) = including(&origin);
    let status = || gateway.fetch("/a?key=a").status;
    assert_eq!(status(), 200);

    let file = folder.join("a.toml");
    let save = |text: &str| fs::write(&file, text).expect("a file");
    let check = |nth, expected: &[&str]| {
        let (by, what) = nth_change(&gateway, nth);
        assert_eq!(by, "included file");
        assert_eq!(what, expected);
    };
    save(LIMITED);
    check(1, &["routes[/a] added", "zones.none added"]);
    assert_eq!((status(), status()), (200, 418));

    // A file with a problem changes nothing, and is named.
    save(&LIMITED.replace("1r/d", "1 r/d"));
    let location = format!("{}:3:8: rate: write \"1r/d\"", file.display());
    gateway.wait_for_line(&location);
    let config = json(&gateway, "/api/config");
    let problem = &config["error"]["problems"][0];
    let message = problem["message"].as_str().expect("a text");
    assert!(message.starts_with("rate: write"), "{message}");
    assert_eq!(problem["file"], file.display().to_string());
    assert_eq!(problem["line"], 3);
    assert_eq!(problem["column"], 8);
    assert_eq!(status(), 418);

    save(&LIMITED.replace("418", "420"));
    check(2, &["routes[/a].reject_status 418 -> 420"]);
    assert_eq!(status(), 420);

    fs::remove_file(&file).expect("a file");
    check(3, &["routes[/a] removed", "zones.none removed"]);
    assert_eq!(status(), 200);
}

#[test]
fn a_folder_that_cannot_be_listed_any_more_removes_no_limit() {
    let origin = Origin::start();
    let (gateway, folder) = including(&origin);
    fs::write(folder.join("a.toml"), LIMITED).expect("a file");
    nth_change(&gateway, 1);
    let status = || gateway.fetch("/a?key=a").status;
    assert_eq!((status(), status()), (200, 418));

    // Root may list any folder, but no user can open a link to itself.
    let away = gateway.site.folder().join("away");
    fs::rename(&folder, &away).expect("a folder");
    symlink(&folder, &folder).expect("a link");
    gateway.wait_for_line("conf.d cannot be listed: Too many levels of symbolic links");
    gateway.wait_for_line("the settings in force stay");
    assert_eq!(status(), 418);

    fs::remove_file(&folder).expect("a link");
    fs::rename(&away, &folder).expect("a folder");
    eventually("the problem is gone", || {
        json(&gateway, "/api/config")["error"].is_null()
    });
    assert_eq!(status(), 418);
}

const SECRET: &str = "not-to-be-seen";

#[test]
fn a_value_of_the_environment_is_used_and_shown_nowhere() {
    let origin = Origin::start();
    let rest = one_zone(&origin, "100r/s", "burst = 20")
        + "[redis]\nurl = \"${DRIP_TEST_URL}\"\n[zones.shared]\nkey = \"$host\"\nrate = \"9r/s\"\nstore = \"redis\"\n\
           [[routes]]\npath = \"/shared\"\norigin = \"app\"\nlimits = [{ zone = \"shared\" }]\n";
    let url = format!("redis://:{SECRET}@127.0.0.1:1/0");
    let gateway = Gateway::start_with(&rest, &[("DRIP_TEST_URL", Path::new(&url))]);
    assert_eq!(gateway.fetch("/shared").status, 200);
    gateway.wait_for_line("the store is out");

    gateway.site.write(&rest.replace("9r/s", "8r/s"));
    let (_, what) = nth_change(&gateway, 1);
    assert_eq!(what, ["zones.shared.rate 9r/s -> 8r/s"]);
    gateway
        .site
        .write(&rest.replace("\"9r/s\"", "\"${DRIP_TEST_URL}\""));
    gateway.wait_for_line("found \"${DRIP_TEST_URL}\"");
    gateway
        .site
        .write(&rest.replace("${DRIP_TEST_URL}", "${DRIP_TEST_UNSET}"));
    gateway.wait_for_line("url: DRIP_TEST_UNSET is not set in the environment");
    eventually("the problem is reported", || {
        json(&gateway, "/api/config")["error"].is_object()
    });

    let mut shown = gateway.log();
    let paths = "/api/config /api/store /api/zones /api/origins /api/headline /metrics /";
    for path in paths.split(' ') {
        let answer = gateway.admin(path).expect("an answer");
        assert_eq!(answer.status, 200, "{path}");
        shown += &answer.text();
    }
    let mut check = drip();
    check
        .env("DRIP_TEST_URL", &url)
        .args(["check", "--all"])
        .arg(gateway.site.file());
    gateway.site.write(&rest);
    let checked = check.output().expect("the program runs");
    assert!(checked.status.success(), "{checked:?}");
    let printed = String::from_utf8_lossy(&checked.stdout);
    assert_contains!(printed, "url = \"${DRIP_TEST_URL}\"");
    shown += &printed;
    assert!(shown.contains("${DRIP_TEST_URL}"));
    let line = shown.lines().find(|line| line.contains(SECRET));
    assert_eq!(line, None);
}

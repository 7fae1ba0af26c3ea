//! Tests of the live page in a browser, with the real program.

mod acting;
mod experiment;
mod gate;
mod layout;
mod plans;
mod room;
mod shared;
mod truth;
pub mod webdriver;

use std::ffi::OsStr;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use self::webdriver::{Browser, DESKTOP, Look};
use crate::support::{
    Client, Gateway, Origin, fetch, files_below, one_zone, operator, start_limited,
};

const PHONE_IN_THE_DARK: Look = Look {
    width: 390,
    height: 844,
    dark: true,
};

/// Script that counts the points of the first plot that have the colour of a mark.
const MARKED: &str = "
    const plot = document.querySelector('.plot canvas');
    const copy = Object.assign(document.createElement('canvas'), { width: plot.width, height: plot.height + 1 });
    const context = copy.getContext('2d', { willReadFrequently: true });
    context.drawImage(plot, 0, 0);
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--mark');
    context.fillRect(0, plot.height, 1, 1);
    const [r, g, b] = context.getImageData(0, plot.height, 1, 1).data;
    const { data } = context.getImageData(0, 0, plot.width, plot.height);
    let marked = 0;
    for (let i = 0; i < data.length; i += 4) {
      marked += data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255;
    }
    return marked";

/// Script that returns the parts beyond the right edge, and whether the page scrolls sideways.
const WIDER: &str = "
    const wide = [...document.querySelectorAll('body *')]
      .filter((it) => it.getBoundingClientRect().right > innerWidth + 0.5)
      .filter((it) => !it.closest('.head .name, .key, pre, .unseen'))
      .map((it) => it.outerHTML.slice(0, 100));
    return [document.documentElement.scrollWidth > innerWidth, wide]";

/// Sends this many requests for each key; they stay open until the returned value is dropped.
fn crowd(gateway: &Gateway, key: &str, of_each: usize) -> Vec<Client> {
    (0..of_each)
        .map(|_| gateway.ask(&format!("/?key={key}")))
        .collect()
}

/// Starts a gateway with one zone, and opens its live page.
fn live(rate: &str, limit: &str) -> (Origin, Gateway, Browser) {
    let origin = Origin::start();
    let (gateway, browser) = opened(&one_zone(&origin, rate, limit));
    (origin, gateway, browser)
}

/// Starts a gateway on a file, and opens its live page.
fn opened(file: &str) -> (Gateway, Browser) {
    let gateway = Gateway::start(file);
    let browser = Browser::open(&gateway, DESKTOP);
    (gateway, browser)
}

/// Waits until the headline is about this cause.
fn wait_for_cause(browser: &Browser, cause: &str) {
    browser.holds(format!(
        "document.querySelector('#answer').dataset.cause === '{cause}'"
    ));
}

/// Checks that nothing is wider than a window of these widths, in pixels.
fn check_that_it_fits(browser: &Browser, widths: &[u32]) {
    for width in widths.iter().copied() {
        browser.look(Look {
            width,
            ..PHONE_IN_THE_DARK
        });
        assert_eq!(browser.run(WIDER), json!([false, []]), "{width}");
    }
}

fn check_that_nobody_complained(browser: &Browser) {
    assert_eq!(browser.complaints(), Vec::<Value>::new());
}

#[test]
fn the_files_come_with_types_tags_and_a_policy_and_are_small() {
    let (_origin, gateway) = start_limited("1r/s", "burst = 1");
    let mut size = 0;
    for file in files_below(Path::new("src/gateway/admin/page")) {
        let name = file.file_name().and_then(OsStr::to_str).expect("a name");
        let (path, content_type) = match name.rsplit_once('.') {
            Some((_, "html")) => ("/".to_owned(), "text/html; charset=utf-8"),
            Some((_, "css")) => (format!("/{name}"), "text/css; charset=utf-8"),
            Some((_, "svg")) => (format!("/{name}"), "image/svg+xml"),
            Some((_, "js")) => (format!("/{name}"), "text/javascript; charset=utf-8"),
            _ => continue,
        };
        let path = path.as_str();
        let answer = fetch(gateway.site.admin, path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.field("content-type"), Some(content_type));
        assert_eq!(answer.field("cache-control"), Some("no-cache"));
        let policy = answer.field("content-security-policy");
        assert_eq!(policy, Some("default-src 'self'"));
        size += answer.body.len();

        let tag = answer.field("etag").expect("a tag");
        for (fields, status) in [
            (format!("If-None-Match: {tag}"), " 304 "),
            (format!("If-None-Match: \"other\", W/{tag}"), " 304 "),
            ("If-None-Match: \"other\"".to_owned(), " 200 "),
        ] {
            let mut client = Client::connect(gateway.site.admin);
            let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n\r\n");
            client.send(request.as_bytes());
            let head = client.head();
            assert!(head.first_line.contains(status), "{fields}: {head:?}");
        }
        assert_eq!(operator::ask(&gateway, "POST", path, "").status, 405);
    }
    assert!((100..154).contains(&(size >> 10)), "{size} bytes");
}

#[test]
fn the_page_says_who_waits_and_asks_nobody_but_the_gateway() {
    let (_origin, gateway, browser) = live("1r/m", "burst = 4");
    browser.reads("#what", "No requests are waiting");
    browser.has(".settings", "rate 1r/m");
    browser.has(".settings", "burst 4");

    let _waiting = crowd(&gateway, "crowded", 4);
    browser.begins("#what", "3 requests wait in z, the oldest for ");
    browser.reads("#keys .key code", "crowded");
    browser.reads("#keys td", "3 / 4");
    browser.reads("[data-total=waiting] dd", "3");
    browser.reads(".zone .stat b", "3");
    browser.holds("/^(⚠ )?\\(3\\) /.test(document.title) && document.title.endsWith(' · drip')");
    browser.reads(".servers .pill", "in use");

    let _fills_the_queue = crowd(&gateway, "crowded", 1);
    gateway.wait_for_depth(4);
    assert_eq!(gateway.fetch("/?key=crowded").status, 429);
    browser.begins("#what", "z rejects ");
    browser.reads("#why code", "burst");
    check_that_nobody_complained(&browser);
    let own = format!("http://{}/", gateway.site.admin);
    let requests = browser.requests();
    assert!(requests.len() > 5, "{requests:?}");
    for request in requests {
        assert!(request.starts_with(&own), "{request}");
    }
}

#[test]
fn a_broken_file_shows_its_line_until_it_is_mended() {
    let origin = Origin::start();
    let right = one_zone(&origin, "10r/s", "burst = 4");
    let (gateway, browser) = opened(&right);
    let wrong = right.replace("rate =", "rat =");
    let text = gateway.site.text(&wrong);
    let line = text.lines().position(|line| line.starts_with("rat "));

    gateway.site.write(&wrong);
    browser.begins(".notice b", "gateway.toml has an error");
    browser.has(".notice", &format!("line {}", 1 + line.expect("a line")));
    browser.has("#file", "has an error");
    browser.holds("document.querySelector('.notice').getAttribute('role') === 'alert'");

    gateway.site.write(&right);
    browser.holds("!document.querySelector('.notice')");
    browser.holds("!says('#file').includes('has an error')");
    check_that_nobody_complained(&browser);
}

#[test]
fn keys_that_look_like_markup_or_break_lines_do_no_harm() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/m", "burst = 4").replace("$arg_key", "$http_x_key$uri");
    let gateway = Gateway::start(&file);
    let long = "x".repeat(4000);
    let keys: [(&[u8], &str); 6] = [
        (b"<script>alert(1)</script>", "/"),
        (b"\"'><img src=x onerror=alert(2)>", "/"),
        (b"not \xff\xfe UTF-8, back\\slash", "/"),
        (b"line", "/%0Abreak%0D%09%1b%5B31m"),
        ("turned \u{202e}around\u{2028}".as_bytes(), "/"),
        (long.as_bytes(), "/"),
    ];
    let mut waiting = Vec::new();
    for (key, path) in keys {
        for _ in 0..2 {
            let mut client = gateway.connect();
            let mut request =
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Key: ").into_bytes();
            request.extend_from_slice(key);
            request.extend_from_slice(b"\r\n\r\n");
            client.send(&request);
            waiting.push(client);
        }
    }
    gateway.wait_for_depth(6);

    let browser = Browser::open(&gateway, DESKTOP);
    browser.holds("document.querySelectorAll('#keys .key').length === 6");
    let shown = browser.run(
        "return [...document.querySelectorAll('#keys .key code')].map((it) => it.textContent)",
    );
    let shown: Vec<String> = serde_json::from_value(shown).expect("texts");
    for expected in [
        "<script>alert(1)</script>/",
        "\"'><img src=x onerror=alert(2)>/",
        r"not \xFF\xFE UTF-8, back\\slash/",
        r"line/\x0Abreak\x0D\x09\x1B[31m",
    ] {
        let is_shown = shown.iter().any(|key| key == expected);
        assert!(is_shown, "{expected}: {shown:?}");
    }
    for key in &shown {
        let is_odd = |c: char| c.is_control() || matches!(c, '\u{202e}' | '\u{2028}');
        assert!(!key.contains(is_odd), "{key:?}");
    }
    let made =
        "return [document.scripts.length, document.querySelectorAll('main img, aside img').length]";
    assert_eq!(browser.run(made), json!([1, 0]));
    for look in [DESKTOP, PHONE_IN_THE_DARK] {
        browser.look(look);
        assert_eq!(browser.run(WIDER), json!([false, []]));
    }
    check_that_nobody_complained(&browser);
}

#[test]
fn a_phone_in_the_dark_needs_no_sideways_scrolling() {
    let origin = Origin::start();
    let name = "a_zone_whose_name_has_sixty_characters_which_is_rather_long_";
    let file = one_zone(&origin, "1r/m", "burst = 4")
        .replace("zones.z]", &format!("zones.{name}]"))
        .replace("\"z\"", &format!("\"{name}\""));
    let gateway = Gateway::start(&file);
    let _waiting = crowd(&gateway, &"k".repeat(300), 3);
    let browser = Browser::open(&gateway, PHONE_IN_THE_DARK);
    browser.holds("document.querySelectorAll('#keys .key').length === 1");
    let brightness =
        "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)";
    let brightness: Vec<u32> = serde_json::from_value(browser.run(brightness)).expect("a colour");
    assert!(brightness.iter().all(|it| *it < 60), "{brightness:?}");
    check_that_it_fits(&browser, &[390, 320, 700, 1000, 1280, 1900]);
    check_that_nobody_complained(&browser);
}

#[test]
fn of_many_zones_those_in_need_come_first_and_the_others_are_found_by_name_and_by_link() {
    let origin = Origin::start();
    let mut file = one_zone(&origin, "1r/m", "burst = 4");
    for nth in 0..49 {
        let zone = format!("\n[zones.other_{nth}]\nkey = \"$host\"\nrate = \"9r/s\"\n");
        file = file.replacen("\n[zones.z]", &format!("{zone}\n[zones.z]"), 1);
    }
    let (gateway, browser) = opened(&file);
    let listed =
        "[...document.querySelectorAll('.zone:not([hidden]) .name')].map((it) => it.textContent)";
    browser.holds(format!("{listed}.length === 12"));
    let _waiting = crowd(&gateway, "a", 3);
    browser.holds(format!("{listed}[0] === 'z'"));
    let find = "const find = document.querySelector('#find');
        find.value = 'OTHER_4';
        find.dispatchEvent(new Event('input'))";
    browser.run(find);
    browser.holds(format!("{listed}.length === 10"));
    browser.run(&find.replace("OTHER_4", ""));
    browser.reads("#more", "Show 38 more zones");
    browser.click("#more");
    browser.holds(format!("{listed}.length === 50"));

    // A link keeps the zone and the time span.
    let shown = "const card = [...document.querySelectorAll('.zone:not([hidden])')]
            .find((it) => it.querySelector('.name').textContent === 'other_17');
        return Boolean(card) && card.querySelector('.head').ariaExpanded === 'true'
            && document.querySelector('input[name=range]:checked').value === '120'
            && document.querySelector('#limited-zone').value === 'other_17'";
    browser.run("location.hash = '#zone=other_17&span=120'");
    browser.wait_for("what the link says", shown);
    browser.run("location.reload()");
    browser.wait_for("the same after a reload", shown);
    browser.click("input[name=range][value='600']");
    browser.holds("location.hash === '#zone=other_17&span=600'");
    browser.click(".zone .head[aria-expanded=false]");
    browser.holds("!location.hash.includes('other_17') && location.hash.startsWith('#zone=')");
    check_that_nobody_complained(&browser);
}

#[test]
fn a_silent_gateway_is_shown_as_lost_and_a_stopping_one_as_stopping() {
    let (_origin, gateway, browser) = live("1r/m", "burst = 4");
    gateway.signal(Signal::STOP);
    browser.reads("#link", "offline");
    browser.begins(".notice", "No data from the gateway since ");
    gateway.signal(Signal::CONT);
    browser.reads("#link", "live");
    browser.holds("!document.querySelector('.notice')");
    // Missed samples are loaded later.
    let _waiting = crowd(&gateway, "a", 3);
    browser.reads("[data-total=waiting] dd", "2");
    gateway.signal(Signal::TERM);
    browser.reads("#link", "stopping");
    browser.begins(".notice", "The gateway is stopping");
}

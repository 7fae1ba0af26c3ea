//! The live page in a browser, with the real program.

mod acting;
mod cors;
mod experiment;
mod gate;
mod gate_override;
mod layout;
mod plans;
mod room;
mod shared;
mod truth;
pub mod webdriver;

use rustix::process::Signal;
use serde_json::{Value, json};

use self::webdriver::{Browser, DESKTOP, Look};
use crate::support::{Client, Gateway, Origin, fetch, one_zone};

const PHONE_IN_THE_DARK: Look = Look {
    width: 390,
    height: 844,
    dark: true,
};

/// The scripts of the page, without `.js`.
const SCRIPTS: [&str; 35] = [
    "page",
    "state",
    "link",
    "events",
    "token",
    "login",
    "ask",
    "address",
    "text",
    "plot",
    "canvas",
    "marks",
    "headline",
    "totals",
    "zones",
    "overrides",
    "limited",
    "keys",
    "origins",
    "servers",
    "shared",
    "gatepanel",
    "gates",
    "find",
    "findplot",
    "ownfinds",
    "rooms",
    "routes",
    "store",
    "file",
    "notices",
    "act",
    "actions",
    "send",
    "whatif",
];

/// How many points of the first plot have the colour of a mark.
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

/// What lies beyond the right edge, which must be nothing, and whether the page scrolls sideways.
const WIDER: &str = "
    const wide = [...document.querySelectorAll('body *')]
      .filter((it) => it.getBoundingClientRect().right > innerWidth + 0.5)
      .filter((it) => !it.closest('.head .name, .key, pre, .unseen'))
      .map((it) => it.outerHTML.slice(0, 100));
    return [document.documentElement.scrollWidth > innerWidth, wide]";

/// Sends this many requests for each key; they stay open until the returned value is dropped.
fn crowd(gateway: &Gateway, key: &str, of_each: usize) -> Vec<Client> {
    (0..of_each)
        .map(|_| Client::ask(gateway.address(), &format!("/?key={key}")))
        .collect()
}

/// Of the totals: the number of the tile with this label.
fn tile(label: &str) -> String {
    format!("says('[data-total={label}] dd')")
}

/// Waits until the headline is about this cause.
fn wait_for_cause(browser: &Browser, cause: &str) {
    let script = format!("return document.querySelector('#answer').dataset.cause === '{cause}'");
    browser.wait_for(cause, &script);
}

/// Nothing is wider than a window of these widths, in pixels.
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
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/s", "burst = 1"));
    let mut size = 0;
    let others = [
        ("/".to_owned(), "text/html; charset=utf-8"),
        ("/page.css".to_owned(), "text/css; charset=utf-8"),
        ("/icon.svg".to_owned(), "image/svg+xml"),
    ];
    let scripts = SCRIPTS.map(|name| (format!("/{name}.js"), "text/javascript; charset=utf-8"));
    for (path, content_type) in others.into_iter().chain(scripts) {
        let path = path.as_str();
        let answer = fetch(gateway.site.admin, path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.field("content-type"), Some(content_type));
        assert_eq!(answer.field("cache-control"), Some("no-cache"));
        assert_eq!(
            answer.field("content-security-policy"),
            Some("default-src 'self'")
        );
        size += answer.body.len();

        let tag = answer.field("etag").expect("a tag");
        for (fields, status) in [
            (format!("If-None-Match: {tag}"), " 304 "),
            (format!("If-None-Match: \"other\", W/{tag}"), " 304 "),
            ("If-None-Match: \"other\"".to_owned(), " 200 "),
        ] {
            let mut client = Client::connect(gateway.site.admin);
            client.send(
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n\r\n").as_bytes(),
            );
            let head = client.head();
            assert!(head.first_line.contains(status), "{fields}: {head:?}");
        }
        let mut client = Client::connect(gateway.site.admin);
        client.send(format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        assert_eq!(client.answer().status, 405);
    }
    assert!(size < 154 * 1024, "{size} bytes");
}

#[test]
fn the_page_says_who_waits_and_asks_nobody_but_the_gateway() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/m", "burst = 4"));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for(
        "all is calm",
        "return says('#what') === 'No requests are waiting'",
    );
    browser.wait_for(
        "settings",
        "return says('.settings').includes('rate 1r/m') && says('.settings').includes('burst 4')",
    );

    let _waiting = crowd(&gateway, "crowded", 4);
    browser.wait_for(
        "three wait",
        "return says('#what').startsWith('3 requests wait in z, the oldest for ')",
    );
    browser.wait_for(
        "the key",
        "return says('#keys .key code') === 'crowded' && says('#keys td') === '3 / 4'",
    );
    browser.wait_for("the tile", &format!("return {} === '3'", tile("waiting")));
    browser.wait_for("the zone", "return says('.zone .stat b') === '3'");
    browser.wait_for(
        "the title",
        "return /^(⚠ )?\\(3\\) /.test(document.title) && document.title.endsWith(' · drip')",
    );
    browser.wait_for("the server", "return says('.servers .pill') === 'asked'");

    let _fills_the_queue = crowd(&gateway, "crowded", 1);
    gateway.wait_for_depth(4);
    assert_eq!(fetch(gateway.address(), "/?key=crowded").status, 429);
    browser.wait_for(
        "the rejection",
        "return says('#what').startsWith('z rejects ') && says('#why code') === 'burst'",
    );
    check_that_nobody_complained(&browser);
    let own = format!("http://{}/", gateway.site.admin);
    let requests = browser.requests();
    assert!(requests.len() > 5, "{requests:?}");
    for request in requests {
        assert!(request.starts_with(&own), "{request}");
    }
}

#[test]
fn an_origin_that_does_not_answer_goes_before_those_who_wait() {
    let origin = Origin::answering(|_| crate::support::Exchange::close());
    let gateway = Gateway::start(&one_zone(&origin, "1000r/s", "burst = 9"));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for(
        "all is calm",
        "return says('#what') === 'No requests are waiting'",
    );
    for _ in 0..5 {
        assert_eq!(fetch(gateway.address(), "/?key=a").status, 502);
    }
    browser.wait_for("the tab", "return document.title.startsWith('⛔ ')");
    browser.wait_for(
        "the origin",
        "return says('#what') === 'Origin app does not answer' && says('#why').startsWith('5 of 5 attempts got no answer')",
    );
    check_that_nobody_complained(&browser);
}

#[test]
fn a_retune_is_marked_and_shows_the_new_rate() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "10r/s", "burst = 4"));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for("the rate", "return says('.settings').includes('10r/s')");
    assert_eq!(browser.run(MARKED), json!(0));

    gateway
        .site
        .write(&one_zone(&origin, "25r/s", "burst = 40"));
    browser.wait_for(
        "the new settings",
        "return says('.settings').includes('25r/s') && says('.settings').includes('burst 40')",
    );
    browser.wait_for(
        "the new rate beside what is let through",
        "return says('.plot figcaption').includes('25 r/s')",
    );
    assert!(browser.run(MARKED).as_u64() > Some(20));
    check_that_nobody_complained(&browser);
}

#[test]
fn a_broken_file_shows_its_line_until_it_is_mended() {
    let origin = Origin::start();
    let right = one_zone(&origin, "10r/s", "burst = 4");
    let gateway = Gateway::start(&right);
    let browser = Browser::open(&gateway, DESKTOP);
    let wrong = right.replace("rate =", "rat =");
    let lines: Vec<_> = gateway
        .site
        .text(&wrong)
        .lines()
        .map(str::to_owned)
        .collect();
    let line = 1 + lines
        .iter()
        .position(|line| line.starts_with("rat"))
        .expect("a line");

    gateway.site.write(&wrong);
    let shown = format!(
        "return says('.notice b') === 'gateway.toml has an error; the previous settings stay in force'
            && says('.notice').includes('line {line}') && says('.notice').includes('rat')
            && says('#file').includes('has an error')"
    );
    browser.wait_for("the line", &shown);
    assert_eq!(
        browser.run("return document.querySelector('.notice').getAttribute('role')"),
        json!("alert")
    );

    gateway.site.write(&right);
    browser.wait_for(
        "no notice",
        "return !document.querySelector('.notice') && !says('#file').includes('has an error')",
    );
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
            let mut client = Client::connect(gateway.address());
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
    browser.wait_for(
        "all keys",
        "return document.querySelectorAll('#keys .key').length === 6",
    );
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
        assert!(
            shown.iter().any(|key| key == expected),
            "{expected}: {shown:?}"
        );
    }
    for key in &shown {
        assert!(
            !key.contains(|c: char| c.is_control() || matches!(c, '\u{202e}' | '\u{2028}')),
            "{key:?}"
        );
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
    browser.wait_for(
        "a key",
        "return document.querySelectorAll('#keys .key').length === 1",
    );
    let brightness =
        "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)";
    let brightness: Vec<u32> = serde_json::from_value(browser.run(brightness)).expect("a colour");
    assert!(brightness.iter().all(|it| *it < 60), "{brightness:?}");
    check_that_it_fits(&browser, &[390, 320, 700, 1000, 1280, 1900]);
    check_that_nobody_complained(&browser);
}

#[test]
fn of_many_zones_those_in_need_come_first_and_the_others_can_be_found() {
    let origin = Origin::start();
    let mut file = one_zone(&origin, "1r/m", "burst = 4");
    for nth in 0..49 {
        let zone = format!("\n[zones.other_{nth}]\nkey = \"$host\"\nrate = \"9r/s\"\n");
        file = file.replacen("\n[zones.z]", &format!("{zone}\n[zones.z]"), 1);
    }
    let gateway = Gateway::start(&file);
    let browser = Browser::open(&gateway, DESKTOP);
    let listed =
        "[...document.querySelectorAll('.zone:not([hidden]) .name')].map((it) => it.textContent)";
    browser.wait_for("a part", &format!("return {listed}.length === 12"));
    let _waiting = crowd(&gateway, "a", 3);
    browser.wait_for("the first", &format!("return {listed}[0] === 'z'"));

    let find = "const find = document.querySelector('#find');
        find.value = 'OTHER_4';
        find.dispatchEvent(new Event('input'))";
    browser.run(find);
    browser.wait_for(
        "what is looked for",
        &format!("return {listed}.length === 10"),
    );
    browser.run(&find.replace("OTHER_4", ""));
    browser.wait_for("the rest", "return says('#more') === 'Show 38 more zones'");
    browser.run("document.querySelector('#more').click()");
    browser.wait_for("all", &format!("return {listed}.length === 50"));
    check_that_nobody_complained(&browser);
}

#[test]
fn a_gateway_that_falls_silent_is_called_gone_and_what_was_missed_is_caught_up() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/m", "burst = 4"));
    let browser = Browser::open(&gateway, DESKTOP);
    gateway.signal(Signal::STOP);
    browser.wait_for(
        "gone",
        "return says('#link') === 'offline' && says('.notice').startsWith('No data from the gateway since ')",
    );
    gateway.signal(Signal::CONT);
    browser.wait_for(
        "live again",
        "return says('#link') === 'live' && !document.querySelector('.notice')",
    );
    let _waiting = crowd(&gateway, "a", 3);
    browser.wait_for(
        "new numbers",
        &format!("return {} === '2'", tile("waiting")),
    );
}

#[test]
fn a_stop_is_told_while_the_queues_drain() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/m", "burst = 4"));
    let browser = Browser::open(&gateway, DESKTOP);
    let _waiting = crowd(&gateway, "a", 3);
    gateway.wait_for_depth(2);
    gateway.signal(Signal::TERM);
    browser.wait_for(
        "stopping",
        "return says('#link') === 'stopping' && says('.notice').startsWith('The gateway is stopping')",
    );
}

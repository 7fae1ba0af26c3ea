//! Tests of the order and the size of the parts of the live page.

use serde_json::json;

use crate::chromium::page::webdriver::{Browser, DESKTOP, Look};
use crate::chromium::page::{
    PHONE_IN_THE_DARK, WIDER, check_that_nobody_complained, crowd, live, opened, wait_for_cause,
};
use crate::support::{Gateway, Origin, one_zone};

/// Widths of phones, tablets and desktops.
const WIDTHS: [u32; 6] = [390, 320, 700, 1000, 1280, 1900];

/// Script that returns the seconds that plots show.
const SPAN: &str = "return import(`${location.origin}/state.js`).then((it) => it.shownSpan())";

/// Script that returns the drawn share of the first tile's curve.
const DRAWN: &str = "
    const spark = document.querySelector('.tile canvas');
    const { width, height } = spark;
    const copy = Object.assign(document.createElement('canvas'), { width, height });
    const context = copy.getContext('2d', { willReadFrequently: true });
    context.drawImage(spark, 0, 0);
    const { data } = context.getImageData(0, 0, width, height);
    let first = width;
    for (let i = 3; i < data.length; i += 4) {
      if (data[i] > 0) first = Math.min(first, ((i - 3) / 4) % width);
    }
    return 1 - first / width";

/// Returns a zone that admits all requests, and a gate that admits one per minute.
fn slow_gate(origin: &Origin) -> String {
    one_zone(origin, "1000r/s", "burst = 9, nodelay = true").replace(
        "[zones.z]",
        "rate = \"1r/m\"\nqueue_timeout = \"1h\"\n\n[zones.z]",
    )
}

fn wait_for_the_gate(browser: &Browser) {
    wait_for_cause(browser, "waiting");
    browser.holds("document.querySelector('#origins-card').parentElement.localName === 'main'");
}

#[test]
fn on_a_phone_who_is_limited_and_the_origins_come_before_all_plots() {
    // Script that checks that both cards are below the totals, and the visible plots below both.
    const IN_ORDER: &str = "
        const box = (it) => it.getBoundingClientRect();
        const shown = (what) => [...document.querySelectorAll(what)].filter((it) => it.checkVisibility());
        const plots = shown('.plot');
        const cards = shown('#limited-card, #origins-card');
        const totals = box(document.querySelector('#totals'));
        return plots.length > 0 && cards.length === 2
          && cards.every((card) => box(card).top >= totals.bottom)
          && plots.every((plot) => cards.every((card) => box(plot).top >= box(card).bottom))";
    let origin = Origin::start();
    let gateway = Gateway::start(&slow_gate(&origin));
    let browser = Browser::open(&gateway, PHONE_IN_THE_DARK);
    browser.wait_for("the order", IN_ORDER);

    // An incident of the gate moves the origins, and opens no plots on a phone.
    let _waiting = crowd(&gateway, "a", 4);
    wait_for_the_gate(&browser);
    browser.wait_for("the order in an incident", IN_ORDER);
    check_that_nobody_complained(&browser);
}

#[test]
fn an_incident_of_a_gate_has_the_wide_column_and_the_totals_fill_their_rows() {
    // Script that returns the free width of each row of tiles, and the truncated labels.
    const FREE: &str = "
        const box = (it) => it.getBoundingClientRect();
        const all = box(document.querySelector('#totals'));
        const tiles = [...document.querySelectorAll('.tile')];
        const ends = new Map();
        for (const tile of tiles) ends.set(box(tile).top, Math.max(ends.get(box(tile).top) ?? 0, box(tile).right));
        const free = [...ends.values()].map((end) => Math.round(all.right - end));
        const cut = tiles.flatMap((it) => [...it.querySelectorAll('dt, dd')])
          .filter((it) => it.scrollWidth > it.clientWidth)
          .map((it) => it.textContent);
        return [free.some((it) => it > 1), cut]";
    const COLUMNS: &str = "
        const width = (what) => document.querySelector(what).getBoundingClientRect().width;
        return [width('#origins-card'), width('#totals')]";
    let origin = Origin::start();
    let (gateway, browser) = opened(&slow_gate(&origin));
    browser.has(".gate .settings", "1r/m");
    let [narrow, wide]: [f64; 2] = serde_json::from_value(browser.run(COLUMNS)).expect("widths");
    assert!(narrow * 2.0 < wide, "{narrow} and {wide}");

    let _waiting = crowd(&gateway, "a", 4);
    wait_for_the_gate(&browser);
    let [card, wide]: [f64; 2] = serde_json::from_value(browser.run(COLUMNS)).expect("widths");
    assert!((card - wide).abs() < 1.0, "{card} of {wide}");
    browser.wait_for(
        "plots side by side",
        "const plots = [...document.querySelectorAll('.gate .plot')];
         const tops = new Set(plots.map((it) => it.getBoundingClientRect().top));
         return plots.length === 3 && plots.every((it) => it.checkVisibility()) && tops.size === 1",
    );
    browser.reads("[data-total=waiting] dt", "waiting · 3 at the gate");
    for width in WIDTHS {
        browser.look(Look { width, ..DESKTOP });
        assert_eq!(browser.run(FREE), json!([false, []]), "{width}");
        assert_eq!(browser.run(WIDER), json!([false, []]), "{width}");
    }
    check_that_nobody_complained(&browser);
}

#[test]
fn soon_after_the_start_plots_span_what_there_is() {
    // As if the first sample were this much older.
    let older = |seconds: u32| {
        format!(
            "return import(`${{location.origin}}/state.js`).then(({{ known, shownSpan }}) => {{
               const first = known.samples[0];
               known.samples.unshift({{ ...first, time: known.samples.at(-1).time - {seconds} }});
               return shownSpan();
             }})"
        )
    };
    let (_origin, _gateway, browser) = live("1000r/s", "burst = 9");
    let range = browser.run("return document.querySelector('input[name=range]:checked').value");
    assert_eq!(range, "600");
    assert_eq!(browser.run(SPAN), json!(60));
    // A seventh of a minute. Of ten minutes it would be less than 2 %.
    browser.wait_for(
        "a curve that is seen",
        &format!("const drawn = (() => {{ {DRAWN} }})(); return drawn > 1 / 7"),
    );
    for (seconds, span) in [(100, 120), (250, 300), (400, 600)] {
        assert_eq!(browser.run(&older(seconds)), json!(span), "{seconds}");
    }
    browser.click("input[name=range][value=\"120\"]");
    assert_eq!(browser.run(SPAN), json!(120));
    check_that_nobody_complained(&browser);
}

#[test]
fn the_tabs_title_begins_with_the_severity() {
    let origin = Origin::answering(|exchange| {
        if exchange.head.first_line.contains("/fail") {
            exchange.send(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 3\r\n\r\nbad")
        } else {
            exchange.reply(b"ok")
        }
    });
    let (gateway, browser) = opened(&one_zone(&origin, "1r/m", "burst = 4"));
    let title = |begin: &str| {
        browser.holds(format!(
            "document.title.startsWith('{begin}') && document.title.endsWith('drip')"
        ));
    };
    wait_for_cause(&browser, "idle");
    let is_marked = browser.run("return /^[⚠⛔(]/u.test(document.title)");
    assert_eq!(is_marked, json!(false));

    // Three of four: half of the queue is a warning.
    let _waiting = crowd(&gateway, "a", 4);
    title("⚠ (3) ");
    for nth in 0..20 {
        assert_eq!(gateway.fetch(&format!("/fail?key={nth}")).status, 500);
    }
    title("⛔ (3) ");
    check_that_nobody_complained(&browser);
}

#[test]
fn the_advised_rate_is_filled_in_and_can_be_set() {
    let (_origin, gateway, browser) = live("1r/m", "burst = 4");
    let is_hidden = browser.run("return document.querySelector('#advised').hidden");
    assert_eq!(is_hidden, true);
    let _waiting = crowd(&gateway, "a", 4);
    browser.wait_for(
        "the button, and the rate in the remedy",
        "const advised = document.querySelector('#advised');
         window.rate = /^Try (\\S+) …$/.exec(says('#advised'))?.[1];
         const is_told = !advised.hidden && rate && says('#turn').includes(`at ${rate} `);
         if (is_told) advised.click();
         return is_told",
    );
    browser.reads("#act-title", "Zone z");
    browser.holds("document.querySelector('#act-dialog').open");
    browser.holds("document.querySelector('#act-what input:checked').value === 'rate'");
    browser.holds("document.querySelector('#act-rate').value === rate");
    browser.holds("!document.querySelector('#act-rate-line').hidden");
    browser.holds("says('#act-will').includes(rate)");
    browser.click("#act-do");
    browser
        .holds("says('.override').startsWith(`Not as in the file: rate ${rate} instead of 1r/m`)");
    check_that_nobody_complained(&browser);
}

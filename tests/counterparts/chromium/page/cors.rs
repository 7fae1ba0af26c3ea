//! Whether a page of another origin can read what drip answers by itself.

use serde_json::{Value, json};

use super::webdriver::Browser;
use crate::support::{Exchange, Gateway, Origin};

/// A page without a policy of its own.
fn page() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        exchange.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 23\r\n\r\n<!doctype html><p>a</p>",
        )
    })
}

/// What a page sees of the second of two requests at once.
fn seen(browser: &Browser, gateway: &Gateway) -> Value {
    let script = format!(
        "window.seen = undefined;
         const ask = () => fetch('http://{}/?key=a', {{ headers: {{ 'x-asked': '1' }} }});
         (async () => {{
           await ask().catch(() => {{}});
           try {{
             const answer = await ask();
             window.seen = [answer.status, answer.headers.get('retry-after') > 0, await answer.text()];
           }} catch (error) {{ window.seen = error.name; }}
         }})()",
        gateway.address()
    );
    browser.run(&script);
    browser.wait_for("an answer", "return window.seen !== undefined");
    browser.run("return window.seen")
}

#[test]
fn a_page_of_another_origin_reads_a_rejection_with_the_fields_and_not_without() {
    const PREFLIGHT: &[u8] = b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n\
        Access-Control-Allow-Headers: x-asked\r\nAccess-Control-Max-Age: 0\r\n\r\n";
    let app = Origin::answering(|exchange: &mut Exchange| {
        if exchange.head.first_line.starts_with("OPTIONS") {
            return exchange.send(PREFLIGHT);
        }
        exchange.send(
            b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 2\r\n\r\nok",
        )
    });
    let site = page();
    let browser = Browser::start(&[]);
    browser.go(&format!("http://{}/", site.address));
    let file = |fields: &str| {
        format!(
            "[origins.app]\nservers = [\"http://{}\"]\n[zones.z]\nkey = \"$arg_key\"\nrate = \"1r/m\"\n\
             [[routes]]\npath = \"/\"\nmethods = [\"OPTIONS\"]\norigin = \"app\"\n\
             [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\" }}]\n{fields}\n",
            app.address
        )
    };
    let silent = Gateway::start(&file(""));
    assert_eq!(seen(&browser, &silent), json!("TypeError"));
    let telling = Gateway::start(&file(
        "answer_headers = { \"access-control-allow-origin\" = \"*\", \"access-control-expose-headers\" = \"retry-after\" }",
    ));
    let rejection = json!([429, true, "Too many requests\n"]);
    assert_eq!(seen(&browser, &telling), rejection);
    let hiding = Gateway::start(&file(
        "answer_headers = { \"access-control-allow-origin\" = \"*\" }",
    ));
    let rejection = json!([429, false, "Too many requests\n"]);
    assert_eq!(seen(&browser, &hiding), rejection);
}

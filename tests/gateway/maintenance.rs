//! Tests of maintenance: routes refuse for a while, without a change of the file.

use std::time::Duration;

use serde_json::Value;

use crate::support::operator::{ask, changes, json, parse, put, send, undo};
use crate::support::{Gateway, Origin, all_pass, assert_contains, eventually, now};

const ALL: &str = "/api/maintenance";
const ONE: &str = "/api/routes/%2Fone%2F/maintenance";

/// Returns a file with `/`, which queues, `/one/` with a page for 503, and `/no`, which refuses.
fn file(origin: &Origin) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\n[zones.z]\nkey = \"$arg_key\"\nrate = \"2r/s\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 9 }}]\n\
         [[routes]]\npath = \"/one/\"\norigin = \"app\"\npages = {{ \"503\" = \"down.html\" }}\n\
         [[routes]]\npath = \"/no\"\nrefuse = 404\n",
        origin.address
    )
}

fn start(origin: &Origin) -> Gateway {
    let page = ("down.html", "<p>{{status}}, {{retry_after}}</p>");
    Gateway::start_beside(&[page], &file(origin))
}

fn statuses(gateway: &Gateway) -> [u16; 3] {
    ["/?key=a", "/one/", "/no"].map(|path| gateway.fetch(path).status)
}

fn route(gateway: &Gateway, name: &str) -> Value {
    let routes = json(gateway, "/api/routes");
    let mut routes = routes["routes"].as_array().expect("a list").iter();
    let found = routes.find(|route| route["name"] == name);
    found.expect("the route").clone()
}

#[test]
fn a_route_refuses_for_a_while_with_its_page_and_goes_on_by_itself() {
    let origin = Origin::start();
    let gateway = start(&origin);
    assert_eq!(statuses(&gateway), [200, 200, 404]);
    let received = put(&gateway, ONE, r#"{"for": "3s"}"#);
    let began = now();
    assert_eq!(received["by"], "127.0.0.1");
    let asked = origin.arrivals().len();
    let refused = gateway.fetch("/one/x");
    assert_eq!(refused.status, 503);
    let after = refused.number("retry-after");
    assert!((1..=3).contains(&after), "{after}");
    assert_eq!(refused.text(), format!("<p>503, {after}</p>"));
    let html = Some("text/html; charset=utf-8");
    assert_eq!(refused.field("content-type"), html);
    assert_eq!(origin.arrivals().len(), asked, "the origin gets no request");
    let other = gateway.fetch("/?key=b").status;
    assert_eq!(other, 200, "other routes are served");

    let shown = route(&gateway, "/one/");
    assert_eq!(shown["maintenance"], received);
    assert_eq!(shown["origin"], "app");
    assert_eq!(route(&gateway, "/").get("maintenance"), None);
    assert_eq!(shown["statuses"]["503"], 1, "{shown}");
    assert_eq!(gateway.requests("/one/", "503"), 1);
    let settings = json(&gateway, "/api/config")["settings"].to_string();
    assert!(!settings.contains("503\\nrefuse"), "{settings}");
    assert_contains!(settings, "refuse = 404");
    eventually("the headline", || {
        let headline = json(&gateway, "/api/headline")["headline"].clone();
        headline["cause"] == "paused" && headline["title"] == "/one/ is in maintenance"
    });

    gateway.wait_for_line("maintenance expired");
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(2_900), "{took:?}");
    assert_eq!(gateway.fetch("/one/").status, 200);
    assert_eq!(route(&gateway, "/one/").get("maintenance"), None);
    let changes = changes(&gateway);
    assert_eq!(changes[0], "routes[/one/]: maintenance expired");
    let set = changes[1].starts_with("routes[/one/]: maintenance until 20");
    assert!(set, "{changes:?}");
    let line = gateway.wait_for_line("maintenance set");
    let what = "what=\"routes[/one/]\" from=\"forwarded\" to=\"503\" until=20";
    assert_contains!(line, "by=\"admin\"");
    for part in what.split(' ') {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn all_routes_are_in_maintenance_over_a_reload_until_it_is_undone() {
    let origin = Origin::start();
    let gateway = start(&origin);
    let status = |path| gateway.fetch(path).status;
    assert_eq!(status("/?key=w"), 200);
    let mut waiting = [(); 2].map(|()| gateway.ask("/?key=w"));
    gateway.wait_for_depth(2);
    put(&gateway, ALL, r#"{"for": "1h"}"#);
    assert_eq!(statuses(&gateway), [503, 503, 404]);
    // Waiting requests continue.
    all_pass(&mut waiting);
    let after = gateway.fetch("/").number("retry-after");
    assert!((3_590..=3_600).contains(&after), "{after}");
    put(&gateway, ONE, r#"{"for": "24h"}"#);
    let until = |name| {
        let maintenance = route(&gateway, name)["maintenance"].take();
        maintenance["until"].as_str().expect("a time").to_owned()
    };
    assert!(until("/one/") > until("/"), "the later end holds");

    let more = "[[routes]]\npath = \"/new\"\norigin = \"app\"\n";
    gateway.site.write(&format!("{}{more}", file(&origin)));
    gateway.wait_for_line("routes[/new] added");
    assert_eq!(statuses(&gateway), [503, 503, 404]);
    assert_eq!(status("/new"), 503);

    undo(&gateway, ALL);
    assert_eq!(statuses(&gateway), [200, 503, 404]);
    assert_eq!(status("/new"), 200);
    assert_eq!(json(&gateway, "/api/routes").get("maintenance"), None);
    let line = gateway.wait_for_line("maintenance undone");
    assert_contains!(line, "what=\"all routes\"", "to=\"forwarded\"");

    // A route that is removed from the file loses its maintenance.
    gateway.site.write(&file(&origin).replace("/one/", "/two/"));
    let line = gateway.wait_for_line("maintenance ended");
    assert_contains!(line, "route=\"/one/\"");
    gateway.site.write(&file(&origin));
    eventually("it is back", || status("/one/") == 200);
    assert_eq!(send(&gateway, "DELETE", ONE, "").status, 404);
}

#[test]
fn setting_again_replaces_the_end_and_each_wrong_request_is_explained() {
    let origin = Origin::start();
    let gateway = start(&origin);
    let hour = r#"{"for": "1h"}"#;
    for (path, body, status, says) in [
        (ONE, "", 400, "{\"for\": \"10m\"}"),
        (ONE, "{}", 400, "for is missing"),
        (ONE, r#"{"for": "0s"}"#, 400, "from 1s to 24h"),
        (ONE, r#"{"for": "25h"}"#, 400, "from 1s to 24h"),
        (ALL, r#"{"for": "1h", "pause": true}"#, 400, "pause"),
        (
            "/api/routes/%2Fother/maintenance",
            hour,
            404,
            "no such route",
        ),
        ("/api/routes/%2Fno/maintenance", hour, 409, "refuse"),
    ] {
        let answer = send(&gateway, "PUT", path, body);
        assert_eq!(answer.status, status, "{path} {body}");
        let error = parse(&answer)["error"].to_string().replace('\\', "");
        assert_contains!(error, says);
    }
    assert_eq!(send(&gateway, "DELETE", ALL, "").status, 404);
    assert_eq!(ask(&gateway, "GET", ALL, "").status, 405);
    assert_eq!(statuses(&gateway), [200, 200, 404]);
    put(&gateway, ONE, hour);
    put(&gateway, ONE, r#"{"for": "1s"}"#);
    let line = gateway.wait_for_line("from=\"503 until 20");
    assert_contains!(line, "maintenance set");
    eventually("it ends", || gateway.fetch("/one/").status == 200);
}

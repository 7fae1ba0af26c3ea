//! Compares pages with `error_page` of nginx.

#[path = "../../gateway/pages/bed.rs"]
mod bed;

use bed::failing;

use crate::programs::nginx::Nginx;
use crate::support::{Gateway, fetch};

#[test]
fn nginx_with_error_page_sends_the_same_statuses_types_and_bodies() {
    let origin = failing();
    let files = [
        ("busy.html", "<p>busy</p>\n"),
        ("down.html", "<p>down</p>\n"),
    ];
    let gateway = Gateway::start_beside(
        &files,
        &format!(
            "[origins.app]\nservers = [\"http://{}\"]\n[origins.dead]\nservers = [\"http://127.0.0.1:1\"]\n\
             [zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/h\"\n\
             [[routes]]\npath = \"/\"\norigin = \"app\"\norigin_pages = true\npages = {{ \"5xx\" = \"down.html\" }}\n\
             [[routes]]\npath = \"/500/busy\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 0 }}]\n\
             pages = {{ \"429\" = \"busy.html\" }}\n\
             [[routes]]\npath = \"/dead\"\norigin = \"dead\"\npages = {{ \"502\" = \"down.html\" }}\n",
            origin.address
        ),
    );
    let folder = gateway.site.folder().display().to_string();
    let nginx = Nginx::with_servers(&origin, |address| {
        format!(
            "limit_req_zone $remote_addr zone=z:1m rate=1r/m;\n\
             server {{ listen {address}; types {{ text/html html; }} charset utf-8; root {folder};\n\
             location / {{ proxy_pass http://origin; proxy_intercept_errors on; error_page 502 503 504 /down.html; }}\n\
             location /500/busy {{ proxy_pass http://origin; limit_req zone=z; limit_req_status 429; \
             error_page 429 /busy.html; }}\n\
             location /dead {{ proxy_pass http://127.0.0.1:1; error_page 502 /down.html; }}\n\
             location = /busy.html {{ internal; }}\nlocation = /down.html {{ internal; }} }}"
        )
    });
    for target in "/500/busy /500/busy /dead /502 /503/chunked /504 /500 /404".split(' ') {
        let [ours, theirs] = [gateway.address(), nginx.address].map(|to| fetch(to, target));
        assert_eq!(ours.status, theirs.status, "{target}");
        assert_eq!(ours.text(), theirs.text(), "{target}");
        for name in ["content-type", "content-length"] {
            assert_eq!(ours.field(name), theirs.field(name), "{target}");
        }
    }
}

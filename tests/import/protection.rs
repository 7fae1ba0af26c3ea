//! Tests that what nginx protects stays closed, whatever other routes there are.

use super::{drip, imported, outcome_of, refused, written};

/// Requests of a host stay with its server, whatever routes exist for all hosts.
#[test]
fn no_host_gets_past_the_protection_of_its_server_by_the_routes_of_another() {
    let app = "proxy_pass http://127.0.0.1:9000;";
    let conf = format!(
        "server {{ listen 80 default_server; server_name open.example;
            location / {{ {app} }} location = /exact {{ {app} }} location /long/ {{ {app} }} location ~ \\.php$ {{ {app} }} }}
         server {{ listen 80; server_name all.example; deny all; location / {{ {app} }} location /pub/ {{ allow all; {app} }} }}
         server {{ listen 80; server_name part.example; location /api/ {{ {app} }} location ~ ^/(exact|x)$ {{ return 403; }} }}
         server {{ listen 80; server_name none.example; return 444; }}
         server {{ listen 80; server_name tls.example; ssl_verify_client on; location / {{ {app} }} }}
         server {{ listen 80; server_name may.example; ssl_verify_client optional; if ($ssl_client_verify != SUCCESS) {{ return 403; }} location / {{ {app} }} }}\n"
    );
    let (settings, _) = imported(&conf);
    for (host, target, status) in [
        ("open.example", "/a.php", 200),
        ("unknown.example", "/exact", 200),
        ("all.example", "/a", 403),
        ("all.example", "/a.php", 403),
        ("all.example", "/exact", 403),
        ("all.example", "/long/a", 403),
        ("all.example", "/pub/a", 200),
        ("all.example", "/pub/a.php", 200),
        ("part.example", "/api/a", 200),
        ("part.example", "/api/a.php", 200),
        ("part.example", "/a.php", 404),
        ("part.example", "/exact", 403),
        ("part.example", "/x", 403),
        ("part.example", "/long/x", 404),
        ("none.example", "/", 403),
        ("none.example", "/a.php", 403),
        ("none.example", "/exact", 403),
        ("tls.example", "/exact", 403),
        ("may.example", "/a.php", 403),
    ] {
        let found = refused(&settings, host, target).unwrap_or(200);
        assert_eq!(found, status, "{host} {target}\n{settings}");
    }
}

/// A route that refuses is never left out because of the maximum number of routes.
#[test]
fn too_many_routes_leave_nothing_open() {
    let names: Vec<_> = (0..2500).map(|n| format!("h{n}.example")).collect();
    let names = names.join(" ");
    let conf = format!(
        "server {{ server_name a.example; location / {{ proxy_pass http://127.0.0.1:9; }} }}\n\
         server {{ server_name {names}; location / {{ proxy_pass http://127.0.0.1:9; }} location /a/ {{ deny all; }} }}\n"
    );
    let folder = written(&[("nginx.conf", &conf)]);
    let (found, settings, notes) = outcome_of(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!((found, &*settings), (Some(1), ""));
    let is_reported = |note: &String| note.contains("more than 5000 routes");
    assert!(notes.iter().any(is_reported));
}

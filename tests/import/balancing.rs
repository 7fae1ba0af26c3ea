//! How an upstream chooses a server, and what drip is told of it.

use super::{drip, told, written};
use crate::support::{Gateway, Origin, fetch, free_address};

const FILE: &str = "http {
    limit_req_zone $binary_remote_addr zone=z:1m rate=10r/s;
    upstream app {
        least_conn;
        server 10.0.0.1:9000 weight=3 max_conns=20;
        server 10.0.0.2:9000 weight=1 max_conns=0;
        server 10.0.0.3:9000 backup;
    }
    upstream sessions { hash $cookie_session consistent; server 10.0.0.1:9000; server 10.0.0.2:9000; }
    upstream addresses { ip_hash; server 10.0.0.1:9000; server 10.0.0.2:9000 weight=2; }
    upstream unknown { random; server 10.0.0.1:9000 weight=70000; server 10.0.0.4:9000; }
    upstream spare { server 10.0.0.9:9000 backup; }
    server {
        listen 8080;
        limit_req zone=z burst=5;
        proxy_next_upstream error timeout http_502 http_503 http_404;
        location / { proxy_pass http://app; }
        location /sessions { proxy_pass http://sessions; }
        location /addresses { proxy_pass http://addresses; }
        location /unknown { proxy_pass http://unknown; }
        location /spare { proxy_pass http://spare; }
    }
}
";

#[test]
fn what_chooses_a_server_is_translated_or_told() {
    let folder = written(&[("nginx.conf", FILE)]);
    let (code, settings, notes) = told(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!(code, Some(0), "{notes:?}");
    for wanted in [
        "servers = [{ url = \"http://10.0.0.1:9000\", weight = 3, max_in_flight = 20 }, \
         \"http://10.0.0.2:9000\", { url = \"http://10.0.0.3:9000\", backup = true }]\n\
         host = \"app\"\n",
        "{ url = \"http://10.0.0.2:9000\", weight = 2 }]\nbalance = \"hash:$remote_addr\"\n",
        "servers = [\"http://10.0.0.9:9000\"]\n",
    ] {
        assert!(settings.contains(wanted), "{wanted}\n{settings}");
    }
    for (line, wanted) in [
        (9, "hash is not translated"),
        (10, "ip_hash became a hash of the whole address"),
        (11, "random is not translated"),
        (11, "server: weight=70000 is not translated"),
        (16, "proxy_next_upstream is not translated"),
    ] {
        let wanted = format!("nginx.conf:{line}: {wanted}");
        let is_told = notes.iter().any(|note| note.contains(&wanted));
        assert!(is_told, "{wanted}\n{notes:#?}");
    }
    let file = folder.path().join("gateway.toml");
    std::fs::write(&file, &settings).unwrap();
    let checked = drip(folder.path(), &["check", "gateway.toml"]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
}

/// nginx goes on to each server, and to the backup last, within the request.
#[test]
fn the_first_request_reaches_the_backup_of_an_imported_file_whose_servers_are_gone() {
    let [one, other] = [(); 2].map(|()| free_address());
    let backup = Origin::start();
    let conf = format!(
        "http {{\n upstream app {{ server {one}; server {other}; server {} backup; }}\n \
         server {{ listen 8080; location / {{ proxy_pass http://app; }} }}\n}}\n",
        backup.address
    );
    let folder = written(&[("nginx.conf", &conf)]);
    let (code, settings, notes) = told(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!(code, Some(0), "{notes:?}");
    let (_, settings) = settings
        .split_once("listen = [\"0.0.0.0:8080\"]\n")
        .expect("an address");
    let gateway = Gateway::start(settings);
    assert_eq!(fetch(gateway.address(), "/").status, 200, "{settings}");
    assert_eq!(backup.arrivals().len(), 1);
}

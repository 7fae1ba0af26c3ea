//! `keepalive_timeout` and its like, of clients and of upstreams.

use super::{drip, told, written};

const FILE: &str = "http {
    keepalive_timeout 65s 60s;
    keepalive_time 30m;
    keepalive_requests 0;
    upstream app {
        server 10.0.0.1:9000;
        keepalive 32;
        keepalive_timeout 20;
        keepalive_time 10m;
        keepalive_requests 500;
    }
    upstream odd {
        server 10.0.0.2:9000;
        keepalive many;
        keepalive_timeout 0;
        keepalive_time never;
        keepalive_requests -1;
    }
    server {
        listen 8080;
        keepalive_time 40m;
        keepalive_requests some;
        location / { proxy_pass http://app; }
        location /odd/ { proxy_pass http://odd; keepalive_time 0; }
    }
}
";

const NOTES: [&str; 7] = [
    "14: keepalive is a whole number; the default is used",
    "15: keepalive_timeout: \"0\" is not a time that drip accepts; the default is used",
    "16: keepalive_time: \"never\" is not a time that drip accepts; the default is used",
    "17: keepalive_requests is a whole number; the default is used",
    "21: keepalive_time: drip has one value for all; the first is used",
    "22: keepalive_requests: drip does not accept \"some\"; it is left out",
    "24: keepalive_time: drip does not accept \"0\"; it is left out",
];

#[test]
fn kept_connections_of_clients_and_upstreams_have_the_limits_of_nginx() {
    let folder = written(&[("nginx.conf", FILE)]);
    let (code, settings, notes) = told(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!(code, Some(0), "{notes:#?}");
    for wanted in [
        "keep_alive = \"65s\"\nkeep_alive_time = \"30m\"\n",
        "keep_alive_requests = 1\n",
        "servers = [\"http://10.0.0.1:9000\"]\nkeep_alive = 32\nkeep_alive_requests = 500\n\
         keep_alive_timeout = \"20s\"\nkeep_alive_time = \"10m\"\n",
        "servers = [\"http://10.0.0.2:9000\"]\nhost = \"odd\"\n",
    ] {
        assert!(settings.contains(wanted), "{wanted}\n{settings}");
    }
    for expected in NOTES {
        let expected = format!("nginx.conf:{expected}");
        assert!(notes.contains(&expected), "{expected}\n{notes:#?}");
    }
}

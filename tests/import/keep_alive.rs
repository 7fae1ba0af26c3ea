//! `keepalive_timeout` and its like, of clients and of upstreams.

use super::imported;

const FILE: &str = "http {
    keepalive_timeout 65s 60s;
    keepalive_time 30m;
    upstream app {
        server 10.0.0.1:9000;
        keepalive 32;
        keepalive_timeout 20;
    }
    upstream odd {
        server 10.0.0.2:9000;
        keepalive many;
        keepalive_timeout 0;
    }
    server {
        listen 8080;
        keepalive_timeout 40s;
        location / { proxy_pass http://app; }
        location /odd/ { proxy_pass http://odd; keepalive_timeout never; }
    }
}
";

const NOTES: [&str; 5] = [
    "3: keepalive_time is not translated",
    "11: keepalive is a whole number; the default is used",
    "12: keepalive_timeout: \"0\" is not a time that drip accepts; the default is used",
    "16: keepalive_timeout: drip has one value for all; the first is used",
    "18: keepalive_timeout: drip does not accept \"never\"; it is left out",
];

#[test]
fn kept_connections_of_clients_and_upstreams_have_the_limits_of_nginx() {
    let (settings, notes) = imported(FILE);
    for wanted in [
        "keep_alive = \"65s\"\n",
        "servers = [\"http://10.0.0.1:9000\"]\nkeep_alive = 32\nkeep_alive_timeout = \"20s\"\n",
        "servers = [\"http://10.0.0.2:9000\"]\nhost = \"odd\"\n",
    ] {
        assert!(settings.contains(wanted), "{wanted}\n{settings}");
    }
    for expected in NOTES {
        let expected = format!("nginx.conf:{expected}");
        assert!(notes.contains(&expected), "{expected}\n{notes:#?}");
    }
}

//! How an upstream chooses a server, and what drip is told of it.

use super::imported;

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
    let (settings, notes) = imported(FILE);
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
}

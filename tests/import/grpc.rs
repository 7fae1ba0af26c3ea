//! `grpc_pass` becomes an origin over HTTP/2.

use super::{drip, told, written};

const FILE: &str = "http {
    limit_req_zone $binary_remote_addr zone=calls:1m rate=10r/s;
    upstream app { server 10.0.0.1:50051; server 10.0.0.2:50051; }
    server {
        listen 8080;
        location /plain.Service/ {
            grpc_pass 127.0.0.1:50051;
            limit_req zone=calls burst=5;
        }
        location /named.Service/ { grpc_pass grpc://app; grpc_read_timeout 30s; }
        location /safe.Service/ { grpc_pass grpcs://safe.example:443; grpc_set_header X-A b; }
        location /file.Service/ { grpc_pass unix:/run/app.sock; }
        location / { proxy_pass http://127.0.0.1:9000; }
    }
}
";

#[test]
fn calls_go_to_origins_over_http2() {
    let folder = written(&[("nginx.conf", FILE)]);
    let (code, settings, notes) = told(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!(code, Some(0), "{notes:?}");
    for wanted in [
        "servers = [\"h2c://127.0.0.1:50051\"]\n",
        "servers = [\"h2c://10.0.0.1:50051\", \"h2c://10.0.0.2:50051\"]\n\
         response_timeout = \"30s\"\n",
        "servers = [\"https://safe.example:443\"]\n",
        "request_headers = { \"x-a\" = \"b\" }\n",
        "path = \"/plain.Service/\"\norigin = \"127-0-0-1-50051\"\nlimits",
    ] {
        assert!(settings.contains(wanted), "{wanted}\n{settings}");
    }
    assert!(
        !settings.contains("path = \"/file.Service/\""),
        "{settings}"
    );
    for (line, wanted) in [
        (
            11,
            "grpc_pass grpcs://safe.example:443: drip verifies the certificate",
        ),
        (
            12,
            "grpc_pass unix:/run/app.sock: there is no server that drip can use",
        ),
    ] {
        let wanted = format!("nginx.conf:{line}: {wanted}");
        let is_told = notes.iter().any(|note| note.contains(&wanted));
        assert!(is_told, "{wanted}\n{notes:#?}");
    }
}

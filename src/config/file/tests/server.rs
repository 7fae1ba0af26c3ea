//! Tests of `[server]`.
//!
//! `SMALLEST` in the parent module is a valid file. Each case replaces a text in it.

use std::num::NonZeroU16;

use super::{Case, settings_with};
use crate::ListenService;

/// Rows of replaced text, replacement and expected problems, as [`Case`] describes them.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    ("", "[server]\nlisten = []\n",
     r#"2:10: listen: the list is empty; write one such as ["127.0.0.1:8080"]"#),
    ("", "[server]\nlisten = [\"localhost:80\"]\n",
     r#"2:11: listen: expected an address with a port such as "127.0.0.1:8080" or "[::]:8080", or a socket such as "unix:/run/drip.sock"; found "localhost:80""#),
    ("", "[server]\nlisten = [\"127.0.0.1:80\", \"[::]:80\"]\n",
     "2:27: listen: [::]:80 and 127.0.0.1:80 cannot both be listened on; remove one"),
    ("", "[server]\nlisten = [\"unix:a\", \"[::1]:1\", \"unix:a\"]\n",
     "2:32: listen: unix:/etc/drip/a and unix:/etc/drip/a cannot both be listened on; remove one"),
    ("", "[server]\nrequest_id = \"X-Request-ID\"\n", ""),
    ("", "[server]\nrequest_id = \"Host\"\n",
     r#"2:14: request_id: this field has another meaning; write one such as "x-request-id""#),
    ("", "[server]\ntrusted_proxies = { file = \"/none/proxies.txt\" }\n",
     "2:28: file: /none/proxies.txt cannot be read: No such file or directory (os error 2)"),
    // Entries of `listen` that are tables.
    ("", "[server]\nlisten = [{ adress = \"127.0.0.1:80\" }]\n",
     r#"2:11: an entry of listen has no address; add one such as address = "0.0.0.0:443"
2:13: "adress" is not a field of an entry of listen, whose fields are address, tls, mode, redirect, name, client_ca, client_auth, client_crl; did you mean address?"#),
    ("", "[server]\nlisten = [{ address = \"unix:a\", tls = true }]\n[server.tls]\ncert = \"a\"\nkey = \"a\"\n",
     "2:39: tls: a socket file has no TLS, as what passes there does not leave the machine; remove tls"),
    ("", "[server]\nlisten = [{ address = \"0.0.0.0:80\", mode = \"0660\" }]\n",
     "2:44: mode: only a socket file has a mode; remove it"),
    ("", "[server]\nlisten = [{ address = \"0.0.0.0:80\", redirect = \"https\" }]\n",
     r#"2:11: listen: redirect: no address here has TLS and a port; add one, or name the port that clients reach: redirect = "https:443""#),
    ("", "[server]\nlisten = [{ address = \"0.0.0.0:80\", redirect = \"https\", tls = true }]\n[server.tls]\ncert = \"a\"\nkey = \"a\"\n",
     "2:48: redirect: an address with TLS cannot redirect to https; remove tls or redirect"),
    ("", "[server]\nadmin = \"0.0.0.0:9090\"\n",
     "2:9: admin: 0.0.0.0:9090 is reachable from other hosts, and no token protects it; use 127.0.0.1:9090, or set DRIP_ADMIN_TOKEN"),
    ("", "[server]\nadmin_hosts = [\"*.internal\"]\n",
     r#"2:16: admin_hosts: expected the name of a host such as "drip.internal"; found "*.internal""#),
    ("", "[server]\nmetrics = \"token\"\n",
     r#"2:11: metrics: no token is set; set DRIP_ADMIN_READ_TOKEN or DRIP_ADMIN_TOKEN, or write "open""#),
    ("", "[server]\ntcp_keepalive = \"999ms\"\n",
     r#"2:17: tcp_keepalive: expected a duration from 1s to 9h, or "0" for none; found "999ms""#),
    ("", "[server]\nshutdown_timout = \"1s\"\n",
     r#"2:1: "shutdown_timout" is not a field of [server], whose fields are name, listen, admin, admin_hosts, metrics, workers, trusted_proxies, proxy_protocol, forwarded_header, max_connections, max_concurrent_streams, hold_streams, underscores_in_headers, keep_alive, keep_alive_time, keep_alive_requests, tcp_keepalive, header_timeout, body_timeout, min_body_rate, max_header_size, max_body_size, shared_answers, buffers, shutdown_timeout, stop_delay, request_id, state, tls; did you mean shutdown_timeout?"#),
    ("", "[log]\notlp = \"https://127.0.0.1:4318\"\n",
     r#"2:8: otlp: expected the URL of a collector such as "http://127.0.0.1:4318", or "off"; found "https://127.0.0.1:4318""#),
    ("", "[server]\nmin_body_rate = \"240\"\n",
     r#"2:17: min_body_rate: expected bytes over a span such as "8KB/30s", or "0" for none; found "240""#),
    ("", "[server]\nmax_header_size = \"32k\"\n",
     r#"2:19: max_header_size: expected a whole number and a unit of 1024s (GB, MB, KB, B) in quotes, such as "32KB"; found "32k""#),
    ("", "[server]\nmax_header_size = \"1025KB\"\n",
     r#"2:19: max_header_size: expected a size from 1KB to 1MB; found "1025KB""#),
    ("", "[server]\nlisten = [{ address = \"0.0.0.0:443\", tls = true }]\n",
     "2:44: tls: there is no [server.tls]; add it with cert and key, or remove tls here"),
    ("", "[server]\nlisten = [\"0.0.0.0:9090\"]\n",
     r#"2:10: listen: the admin port 127.0.0.1:9090 conflicts with 0.0.0.0:9090, where clients connect; set admin to another port or to "off""#),
    ("", "[server]\nadmin = \"127.0.0.1:8080\"\n",
     r#"2:9: admin: the admin port 127.0.0.1:8080 conflicts with 127.0.0.1:8080, where clients connect; set admin to another port or to "off""#),
    ("", "[server]\nname = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n",
     r#"2:8: name: expected 1 to 64 printable characters such as "edge-1"; found "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"..."#),
    // [server.tls]
    ("", "[server.tls]\n",
     r#"1:1: [server.tls] has no cert; add one such as cert = "server.pem"
1:1: [server.tls] has no key; add one such as key = "server.key""#),
    ("", "[server.tls]\ncert = \"\"\nkey = 1\n",
     r#"2:8: cert: expected the name of a file such as "server.pem", or a list of such names; found ""
3:7: key: expected the name of a file such as "server.key", or a list of such names; found 1"#),
    ("", "[server.tls]\ncert = [\"a.pem\", \"b.pem\"]\nkey = \"a.key\"\n",
     "3:7: key: each file in cert needs its key here, in the same order; found 2 in cert and 1 here"),
];

#[test]
#[rustfmt::skip]
fn each_address_has_its_own_service() {
    let files = "[server.tls]\ncert = \"a\"\nkey = \"a\"\n";
    let (plain, tls) = (ListenService::Plain, ListenService::Tls);
    let redirect = |port| ListenService::Redirect(NonZeroU16::new(port).unwrap());
    let to_tls = "{ address = \"[::]:80\", redirect = \"https\" }";
    let to_444 = "{ address = \"unix:a\", redirect = \"https:444\" }";
    for (listen, files, expected) in [
        ("\"[::]:443\", \"unix:a\"", files, &[tls, plain][..]),
        ("{ address = \"[::]:443\" }, { address = \"[::]:80\", tls = false }, { address = \"unix:a\" }", files, &[tls, plain, plain]),
        // Redirects lead to port 443, or else to the port of the first TLS address.
        (&*format!("{to_tls}, \"[::]:8443\", \"[::]:443\""), files, &[redirect(443), tls, tls]),
        (&*format!("\"[::]:0\", \"[::]:8443\", \"[::]:9443\", {to_tls}"), files, &[tls, tls, tls, redirect(8443)]),
        (to_444, "", &[redirect(444)]),
    ] {
        let settings = settings_with("", &format!("[server]\nlisten = [{listen}]\n{files}"));
        let services = settings.server.listen.iter().map(|listen| listen.service);
        assert_eq!(services.collect::<Vec<_>>(), expected, "{listen}");
    }
}

#[test]
fn other_files_for_tls_need_a_restart_and_other_sizes_do_not() {
    let with = |server: &str| settings_with("", server);
    let pair = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n";
    let other = "[server.tls]\ncert = \"a.pem\"\nkey = \"b.key\"\n";
    for (new, old) in [(pair, ""), ("", pair), (other, pair)] {
        let needing = with(new).needing_restart(&with(old));
        assert_eq!(needing, ["server.tls"], "{old} to {new}");
    }
    let state = "[server]\nstate = \"drip.state\"\n";
    assert_eq!(with(state).needing_restart(&with("")), ["server.state"]);
    let sizes = "[server]\nbody_timeout = \"1s\"\nmin_body_rate = \"1KB/s\"\nmax_header_size = \"1KB\"\nmax_body_size = 1\n";
    assert!(with(sizes).needing_restart(&with("")).is_empty());
}

//! Compares the verdicts of drip and nginx on client certificates, and their fields.

use crate::programs::nginx::Nginx;
use crate::support::Gateway;
use crate::support::client_certificates::{ask, echo_origin, routes, site};

/// An optional certificate is verified as in nginx, with the same fields.
///
/// The subject has a comma, and the certificate a serial number.
#[test]
fn an_optional_certificate_is_verified_as_nginx_does_and_what_is_said_of_it_is_the_same() {
    let (site, _) = site();
    let origin = echo_origin();
    let folder = site.folder().to_owned();
    let tls = "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nclient_ca = \"ca.pem\"\nclient_auth = \"optional\"\n";
    site.write(&format!("{tls}{}", routes(&origin)));
    let gateway = Gateway::start_at(site);
    let file = |name: &str| folder.join(name).display().to_string();
    let nginx = Nginx::with_servers(&origin, |address| {
        format!(
            "server {{ listen {address} ssl; ssl_certificate {}; ssl_certificate_key {}; \
             ssl_client_certificate {}; ssl_verify_client optional; \
             location / {{ proxy_set_header X-Verify $ssl_client_verify; proxy_set_header X-Subject $ssl_client_s_dn; \
             proxy_set_header X-Serial $ssl_client_serial; proxy_pass http://origin; }} }}",
            file("a.pem"),
            file("a.key"),
            file("ca.pem")
        )
    });
    let parts = |received: &str| -> Vec<String> {
        let parts: Vec<&str> = received.split('|').collect();
        [parts[0], parts[2], parts[3]].map(str::to_owned).to_vec()
    };
    for name in ["alice", "bob", ""] {
        let [theirs, ours] =
            [nginx.address, gateway.address()].map(|to| parts(&ask(to, &folder, name)));
        assert_eq!(ours, theirs, "{name}");
        let verify = if name.is_empty() { "NONE" } else { "SUCCESS" };
        assert_eq!(ours[0], verify);
    }
    // nginx answers 400. drip refuses the connection.
    assert_eq!(ask(gateway.address(), &folder, "mallory"), "none");
}

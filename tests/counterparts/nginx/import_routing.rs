//! Compares what the origin receives from nginx and from drip on the imported file.

use super::import::drip_on_the_file_of;
use crate::programs::nginx::Nginx;
use crate::support::{Exchange, Origin, fetch_with};

#[test]
fn the_origin_gets_the_fields_that_nginx_sets() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let names = "x-real-ip x-from x-key x-both accept x-fixed".split(' ');
        let fields = names.map(|name| format!("{name}={:?}\n", exchange.field(name)));
        exchange.reply(fields.collect::<String>().as_bytes())
    });
    let set = "proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header X-From \"$scheme://$host$request_uri\";
        proxy_set_header X-Key $http_x_api_key;
        proxy_set_header X-Both ${request_method}-$uri;
        proxy_set_header Accept \"\";
        proxy_set_header X-Fixed \"a b\";";
    let nginx = Nginx::start(
        &origin,
        set,
        &[("/", ""), ("/own/", "proxy_set_header X-Key own;")],
    );
    let gateway = drip_on_the_file_of(&nginx);
    for (target, lines) in [
        (
            "/a/b?c=d",
            "X-Api-Key: one\r\nAccept: text/html\r\nX-Real-IP: 192.0.2.1\r\n",
        ),
        (
            "/a/../b%20c",
            "Accept: text/html\r\nX-Fixed: c\r\nX-Both: d\r\n",
        ),
        ("/own/x", "X-Api-Key: one\r\nAccept: text/html\r\n"),
    ] {
        let [theirs, ours] = [nginx.address, gateway.address()].map(|to| {
            let answer = fetch_with(to, target, lines);
            (answer.status, answer.text())
        });
        assert_eq!(theirs, ours, "{target}");
        assert_eq!(theirs.0, 200, "{target}");
    }
}

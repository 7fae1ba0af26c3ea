//! Compares limits of imported Ingress objects with nginx.
//!
//! nginx has the directives that the template of ingress-nginx writes for them.

use std::fs;

use super::import::{send, verdicts};
use crate::programs::nginx::Nginx;
use crate::support::{
    Gateway, HoldingOrigin, Origin, assert_contains, drip, eventually, quarter_alone,
};

/// Each Ingress: its name, its annotations, and its hosts with a path.
const INGRESSES: [(&str, &str, &str); 4] = [
    ("shop", "limit-rpm=1", "a.test/ b.test/"),
    (
        "reports",
        "limit-rps=4 limit-rpm=3 limit-burst-multiplier=2",
        "a.test/reports c.test/",
    ),
    (
        "partners",
        "limit-rpm=1 limit-whitelist=127.0.0.0/8",
        "d.test/",
    ),
    ("few", "limit-connections=2", "e.test/"),
];

fn manifest() -> String {
    let parts = INGRESSES.map(|(name, annotations, hosts)| {
        let annotations = annotations.split(' ').filter_map(|it| it.split_once('='));
        let annotations = annotations
            .map(|(name, value)| format!("nginx.ingress.kubernetes.io/{name}: \"{value}\""));
        let rules = hosts
            .split(' ')
            .filter_map(|it| it.split_once('/'))
            .map(|(host, path)| {
                let app = "{service: {name: app, port: {number: 80}}}";
                let path = format!("{{path: /{path}, pathType: Prefix, backend: {app}}}");
                format!("{{host: {host}, http: {{paths: [{path}]}}}}")
            });
        let [annotations, rules] =
            [annotations.collect::<Vec<_>>(), rules.collect()].map(|parts| parts.join(", "));
        format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
             metadata: {{name: {name}, namespace: default, annotations: {{{annotations}}}}}\n\
             spec: {{rules: [{rules}]}}\n"
        )
    });
    parts.join("---\n")
}

/// As written by nginx.tmpl and buildRateLimitZones.
const HTTP: &str = r#"
limit_req_status 503;
limit_conn_status 503;
geo $remote_addr $allowlist_shop { default 0; }
map $allowlist_shop $limit_shop { 0 $binary_remote_addr; 1 ""; }
geo $remote_addr $allowlist_reports { default 0; }
map $allowlist_reports $limit_reports { 0 $binary_remote_addr; 1 ""; }
geo $remote_addr $allowlist_partners { default 0; 127.0.0.0/8 1; }
map $allowlist_partners $limit_partners { 0 $binary_remote_addr; 1 ""; }
geo $remote_addr $allowlist_few { default 0; }
map $allowlist_few $limit_few { 0 $binary_remote_addr; 1 ""; }
limit_conn_zone $limit_few zone=default_few_conn:5m;
limit_req_zone $limit_partners zone=default_partners_rpm:5m rate=1r/m;
limit_req_zone $limit_reports zone=default_reports_rpm:5m rate=3r/m;
limit_req_zone $limit_reports zone=default_reports_rps:5m rate=4r/s;
limit_req_zone $limit_shop zone=default_shop_rpm:5m rate=1r/m;
"#;

/// As written by buildRateLimit.
const SHOP: &str = "limit_req zone=default_shop_rpm burst=5 nodelay;";
const REPORTS: &str = "limit_req zone=default_reports_rps burst=8 nodelay; \
    limit_req zone=default_reports_rpm burst=6 nodelay;";
const PARTNERS: &str = "limit_req zone=default_partners_rpm burst=5 nodelay;";
const FEW: &str = "limit_conn default_few_conn 2;";

fn nginx(origin: &Origin) -> Nginx {
    Nginx::with_servers(origin, |address| {
        let pass = "proxy_pass http://origin;";
        let servers = [
            (
                "a.test",
                format!(
                    "location / {{ {SHOP} {pass} }} location = /reports {{ {REPORTS} {pass} }} \
                     location /reports/ {{ {REPORTS} {pass} }}"
                ),
            ),
            ("b.test", format!("location / {{ {SHOP} {pass} }}")),
            ("c.test", format!("location / {{ {REPORTS} {pass} }}")),
            ("d.test", format!("location / {{ {PARTNERS} {pass} }}")),
            ("e.test", format!("location / {{ {FEW} {pass} }}")),
        ];
        let servers = servers.map(|(name, locations)| {
            format!("server {{ listen {address}; server_name {name}; {locations} }}\n")
        });
        format!("{HTTP}{}", servers.concat())
    })
}

fn imported(origin: &Origin) -> Gateway {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ingress.yaml");
    fs::write(&file, manifest()).expect("a file");
    let output = drip().arg("import").arg(&file).output().expect("drip runs");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let settings = String::from_utf8(output.stdout).expect("text");
    let rest = settings.strip_prefix("[server]\nlisten = [\"0.0.0.0:8080\"]\n");
    let rest = rest.unwrap_or_else(|| panic!("{settings}"));
    let url = "http://app.default.svc.cluster.local:80";
    assert_contains!(rest, url);
    Gateway::start(&rest.replace(url, &format!("http://{}", origin.address)))
}

#[test]
fn an_imported_ingress_accepts_and_rejects_as_many_as_the_template() {
    let _alone = quarter_alone();
    let origin = Origin::start();
    let (nginx, gateway) = (nginx(&origin), imported(&origin));
    // Host, path, number of requests, and number that pass. No bucket leaks within 20 s.
    for (host, target, times, passing) in [
        ("a.test", "/", 10, 6),
        // The same Ingress, and so the same bucket.
        ("b.test", "/x", 3, 0),
        ("a.test", "/reports", 5, 5),
        // Of the two limits of this Ingress, the one per minute admits 1 and its burst of 6.
        ("c.test", "/", 5, 2),
        ("a.test", "/reports/x", 3, 0),
        // No prefix by path element: the request belongs to the other Ingress, whose bucket is
        // full.
        ("a.test", "/reportsx", 2, 0),
        ("d.test", "/", 20, 20),
    ] {
        let found = [nginx.address, gateway.address()].map(|address| {
            (0..times)
                .map(|_| send(address, host, target).answer().status)
                .collect::<Vec<_>>()
        });
        assert_eq!(found[0], found[1], "{host}{target}");
        let passed = found[0].iter().filter(|status| **status == 200).count();
        assert_eq!(passed, passing, "{host}{target}: {:?}", found[0]);
        assert!(found[0].iter().all(|status| [200, 503].contains(status)));
    }
}

#[test]
fn limit_connections_bounds_what_runs_as_in_the_template() {
    let held = HoldingOrigin::of("hold");
    let (nginx, gateway) = (nginx(&held.origin), imported(&held.origin));
    let mut arrived = 0;
    for (who, address) in [("nginx", nginx.address), ("drip", gateway.address())] {
        let targets: Vec<_> = (0..2).map(|nth| format!("/hold-{who}-{nth}")).collect();
        let running = targets.iter().map(|target| {
            let client = send(address, "e.test", target);
            arrived += 1;
            held.origin.wait_for(arrived);
            client
        });
        let mut running: Vec<_> = running.collect();
        assert_eq!(verdicts(address, "e.test", "/", 2), [503, 503], "{who}");
        for (target, client) in targets.iter().zip(&mut running) {
            held.release(target);
            assert_eq!(client.answer().status, 200, "{who}");
        }
        eventually("permits are free", || {
            verdicts(address, "e.test", "/", 1) == [200]
        });
        arrived = held.origin.arrivals().len();
    }
}

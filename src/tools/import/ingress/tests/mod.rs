//! Tests of the import of Ingress objects.

mod model;
mod paths;
mod protection;

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use config::{RouteAction, RouteIndex, Settings, parse};
use proptest::prelude::*;
use testing::{bytes, config, replay};

use crate::import::{Files, Import, import};

/// An empty file system: a manifest names no other files.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        panic!("{} is read", path.display())
    }

    fn list(&self, folder: &Path) -> Vec<String> {
        panic!("{} is listed", folder.display())
    }

    fn check_pair(&self, cert: &Path, _: &Path) -> Result<(), String> {
        panic!("{} is loaded", cert.display())
    }
}

/// Imports a manifest.
fn imported(text: &str) -> Import {
    import(Path::new("a.yaml"), text.as_bytes(), &NoFiles)
}

/// Writes an Ingress with these annotations. Rules are in YAML flow style.
fn ingress(name: &str, annotations: &[(&str, &str)], spec: &str) -> String {
    let mut text = format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  namespace: shop\n"
    );
    if !annotations.is_empty() {
        text += "  annotations:\n";
    }
    for (name, value) in annotations {
        let value = value.replace('\'', "''");
        writeln!(text, "    nginx.ingress.kubernetes.io/{name}: '{value}'").unwrap();
    }
    text + "spec:\n" + spec
}

/// Writes a rule of a host with one path. `kind`: its `pathType`. An empty host stands for all.
fn rule(host: &str, path: &str, kind: &str, service: &str) -> String {
    let host = if host.is_empty() {
        String::new()
    } else {
        format!("host: '{host}', ")
    };
    format!(
        "  - {{ {host}http: {{ paths: [ {{ path: '{path}', pathType: {kind}, backend: {{ service: {{ name: {service}, port: {{ number: 80 }} }} }} }} ] }} }}\n"
    )
}

/// Returns the routes for one path of `a.test` with these annotations, as text, and all notes.
fn routes_of(annotations: &[(&str, &str)], path: &str) -> (String, Vec<String>) {
    let spec = format!(
        "  rules:\n{}",
        rule("a.test", path, "ImplementationSpecific", "app")
    );
    let Import {
        settings, notes, ..
    } = imported(&ingress("web", annotations, &spec));
    let settings = settings.unwrap_or_default();
    let routes = settings.split_once("[[routes]]").map(|it| it.1.to_owned());
    (routes.unwrap_or_default(), notes)
}

#[test]
fn an_invalid_limit_is_lost_and_noted_first() {
    let spec = format!("  rules:\n{}", rule("a.test", "/x", "Prefix", "app"));
    // 0 means no limit.
    let annotations = [
        ("enable-cors", "true"),
        ("limit-rps", "ten"),
        ("limit-rpm", "0"),
    ];
    let import = imported(&ingress("web", &annotations, &spec));
    assert_eq!(
        import.loss.as_deref(),
        Some("1 limit is lost, a.test/x is unlimited")
    );
    assert_eq!(
        import.notes[0],
        "a.yaml:9: Ingress shop/web, limit-rps: \"ten\" is not a whole number; the limit is left out"
    );
}

#[test]
fn allowed_and_denied_networks_are_translated() {
    let (routes, _) = routes_of(
        &[
            ("whitelist-source-range", "10.0.0.0/8, 192.0.2.1"),
            ("denylist-source-range", "10.9.0.0/16,192.0.0.0/16"),
        ],
        "/",
    );
    // nginx denies a client that is in a network of both lists. drip applies the smallest network.
    let fields = "allow = [\"10.0.0.0/8\"]\ndeny = [\"10.9.0.0/16\", \"192.0.0.0/16\"]\n";
    assert!(routes.contains(fields), "{routes}");
}

#[test]
fn a_named_port_needs_its_service() {
    let spec = "  defaultBackend: { service: { name: app, port: { name: web } } }\n  rules:\n"
        .to_owned()
        + &rule("a.test", "/x", "Prefix", "other");
    let text = ingress("web", &[], &spec);
    let alone = imported(&text);
    assert_eq!(
        action(&parsed(&alone), "a.test", "/").as_deref(),
        Some("503")
    );
    let remedy = "a.yaml:8: Ingress shop/web: the number of the port web of app is not known, so requests get 503; add the Service to the input, as by kubectl get -n shop ingress,service -o yaml";
    assert!(
        alone.notes.contains(&remedy.to_owned()),
        "{:?}",
        alone.notes
    );
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: { name: app, namespace: shop }\n\
        spec: { ports: [ { name: web, port: 8000, targetPort: http } ] }\n";
    let both = imported(&(text + service)).settings.unwrap();
    assert!(both.contains("app.shop.svc.cluster.local:8000"), "{both}");
}

#[test]
fn every_annotation_is_translated_or_noted() {
    let documented = "app-root affinity affinity-mode auth-realm auth-secret auth-type auth-url \
        canary-weight client-body-buffer-size custom-http-errors custom-headers default-backend \
        enable-cors cors-allow-origin from-to-www-redirect http2-push-preload limit-rate \
        limit-rate-after temporal-redirect preserve-trailing-slash proxy-cookie-domain \
        proxy-next-upstream proxy-request-buffering proxy-redirect-from proxy-ssl-secret \
        enable-rewrite-log satisfy server-alias session-cookie-name stream-snippet load-balance \
        proxy-buffering ssl-ciphers enable-access-log enable-opentelemetry enable-modsecurity \
        modsecurity-snippet mirror-target ssl-redirect x-nobody-knows";
    for name in documented.split_whitespace() {
        let (_, notes) = routes_of(&[(name, "x")], "/");
        let begins = format!("a.yaml:8: Ingress shop/web, {name}: ");
        assert!(
            notes.iter().any(|note| note.starts_with(&begins)),
            "{name}: {notes:?}"
        );
    }
}

#[test]
fn other_kinds_canaries_and_old_versions_are_skipped() {
    let canary = ingress(
        "canary",
        &[("canary", "true"), ("canary-weight", "10")],
        &format!("  rules:\n{}", rule("a.test", "/", "Prefix", "new")),
    );
    let main = ingress(
        "main",
        &[],
        &format!("  rules:\n{}", rule("a.test", "/", "Prefix", "old")),
    );
    let others = "---\nkind: Deployment\napiVersion: apps/v1\nmetadata: { name: app }\n\
        ---\nkind: Ingress\napiVersion: extensions/v1beta1\nmetadata: { name: old }\n---\n";
    let import = imported(&(canary + &main + others));
    assert_eq!(
        action(&parsed(&import), "a.test", "/").as_deref(),
        Some("old")
    );
    for noted in [
        "canary is a canary",
        "Deployment app is skipped",
        "old is of extensions/v1beta1",
    ] {
        assert!(
            import.notes.iter().any(|note| note.contains(noted)),
            "{:?}",
            import.notes
        );
    }
}

#[test]
fn invalid_or_too_large_yaml_is_noted() {
    for (text, noted) in [
        ("a: [\n", "a.yaml:2: this is not YAML"),
        ("just a text", "a.yaml:1: this is no object of Kubernetes"),
    ] {
        let import = imported(text);
        assert_eq!(import.settings, None);
        assert!(import.notes[0].starts_with(noted), "{:?}", import.notes);
    }
    let rules: String = (0..3000)
        .map(|nth| rule(&format!("h{nth}.test"), "/x", "Prefix", "app"))
        .collect();
    let import = imported(&ingress("web", &[], &format!("  rules:\n{rules}")));
    assert_eq!(import.settings, None);
    let noted = import
        .notes
        .iter()
        .any(|note| note.contains("more than 5000 routes; nothing"));
    assert!(noted, "{:?}", import.notes);
}

/// Parses the settings of an import. Panics if there are none.
fn parsed(import: &Import) -> Settings {
    let Import {
        settings, notes, ..
    } = import;
    let settings = settings.as_ref().unwrap_or_else(|| panic!("{notes:#?}"));
    parse(settings, Path::new("gateway.toml"), false).unwrap()
}

/// Returns the origin of the requests for a path of a host, or the status of refusal.
///
/// Ignores routes with conditions.
fn action(settings: &Settings, host: &str, path: &str) -> Option<String> {
    let index = RouteIndex::new(&settings.routes);
    let route = index.find(&settings.routes, path.as_bytes(), Some(host), None, |_| {
        false
    })?;
    match &settings.routes[route].action {
        RouteAction::Forward(origin) | RouteAction::Maintenance { origin, .. } => {
            Some(settings.origins[*origin].name.clone())
        }
        RouteAction::Refuse(status) => Some(status.to_string()),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_give_printable_notes_and_valid_settings(text in bytes("ingress")) {
        check_import(&text)?;
    }
}

/// Imports a text, and checks the notes and the settings.
fn check_import(text: &[u8]) -> Result<(), TestCaseError> {
    let Import {
        settings, notes, ..
    } = import(Path::new("/a.yaml"), text, &NoFiles);
    for note in &notes {
        prop_assert!(
            note.starts_with("/a.yaml:") && !note.contains(char::is_control),
            "{:?}",
            note
        );
        // The import never drops a setting because the whole file failed.
        prop_assert!(!note.contains("cannot be expressed"), "{:?}", note);
    }
    if let Some(settings) = settings {
        let checked = parse(&settings, Path::new("gateway.toml"), false);
        prop_assert!(checked.is_ok(), "{}\n{}", settings, checked.unwrap_err());
    }
    Ok(())
}

#[test]
fn the_corpus_becomes_valid_settings() {
    replay("ingress", check_import);
}

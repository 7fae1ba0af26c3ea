//! Tests of Ingresses whose requests are refused.

use super::{action, imported, ingress, parsed, routes_of, rule};

#[test]
fn requests_that_nginx_protects_are_refused() {
    for (annotation, value, status) in [
        ("auth-url", "http://auth/", 403),
        ("auth-type", "basic", 403),
        ("auth-tls-secret", "shop/ca", 403),
        ("configuration-snippet", "deny 10.0.0.0/8;", 403),
        ("server-snippet", "location /x { return 403; }", 403),
        ("whitelist-source-range", "10.0.0.0/99", 503),
        ("backend-protocol", "FCGI", 503),
        ("permanent-redirect", "https://b.test", 404),
        ("ssl-passthrough", "true", 503),
    ] {
        let text = ingress(
            "web",
            &[(annotation, value)],
            &format!("  rules:\n{}", rule("a.test", "/", "Prefix", "app")),
        ) + &ingress(
            "open",
            &[],
            &format!("  rules:\n{}", rule("b.test", "/", "Prefix", "app")),
        );
        let import = imported(&text);
        let settings = parsed(&import);
        let status = status.to_string();
        assert_eq!(
            action(&settings, "a.test", "/"),
            Some(status),
            "{annotation}"
        );
        assert_eq!(action(&settings, "b.test", "/").as_deref(), Some("app"));
        let noted = format!("Ingress shop/web, {annotation}: ");
        assert!(
            import.notes.iter().any(|it| it.contains(&noted)),
            "{:?}",
            import.notes
        );
    }
    let (routes, _) = routes_of(
        &[("configuration-snippet", "more_set_headers \"X: y\";")],
        "/",
    );
    assert!(routes.contains("origin = "), "{routes}");
}

#[test]
fn client_certificates_of_an_ingress_protect_all_of_its_host() {
    let text = ingress(
        "open",
        &[],
        &format!("  rules:\n{}", rule("a.test", "/open", "Prefix", "app")),
    ) + &ingress(
        "closed",
        &[("auth-tls-secret", "shop/ca")],
        &format!("  rules:\n{}", rule("a.test", "/", "Prefix", "app")),
    ) + &ingress(
        "other",
        &[],
        &format!("  rules:\n{}", rule("b.test", "/", "Prefix", "app")),
    );
    let settings = parsed(&imported(&text));
    assert_eq!(action(&settings, "a.test", "/open").as_deref(), Some("403"));
}

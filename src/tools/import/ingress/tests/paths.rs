use super::{found, imported, ingress, parsed, routes_of, rule};

#[test]
fn rewriting_removes_a_prefix() {
    let (routes, _) = routes_of(&[("rewrite-target", "/v2/$1")], "/foo/(.*)");
    let fields = "strip_prefix = \"/foo\"\nadd_prefix = \"/v2/\"\n";
    assert!(routes.ends_with(fields), "{routes}");
    // A target that is the path is none.
    let (routes, _) = routes_of(&[("rewrite-target", "/foo")], "/foo");
    assert!(routes.contains("path = \"= /foo\""), "{routes}");
}

#[test]
fn what_cannot_be_rewritten_is_refused() {
    let spec = "  rules:\n".to_owned()
        + &rule("a.test", "/foo", "Prefix", "foo")
        + &rule("b.test", "/", "Prefix", "b");
    let text = ingress("web", &[("rewrite-target", "/x")], &spec)
        + &ingress(
            "other",
            &[],
            &format!("  rules:\n{}", rule("c.test", "/", "Prefix", "c")),
        );
    let import = imported(&text);
    let settings = parsed(&import);
    assert_eq!(found(&settings, "a.test", "/foo/x").as_deref(), Some("503"));
    assert!(
        import.notes.iter().any(|it| it.contains(
            "rewrite-target /x of the path /foo is not translated, so requests get 503: "
        )),
        "{:?}",
        import.notes
    );
}

#[test]
fn one_regular_expression_makes_all_paths_of_its_host_some() {
    let text = ingress(
        "regex",
        &[("use-regex", "true")],
        &format!(
            "  rules:\n{}{}",
            rule("a.test", "/u/[0-9]+", "ImplementationSpecific", "user"),
            rule("a.test", "/look(?=x)", "ImplementationSpecific", "look"),
        ),
    ) + &ingress(
        "plain",
        &[],
        &format!(
            "  rules:\n{}{}",
            rule("a.test", "/api", "Exact", "api"),
            rule("b.test", "/api", "Exact", "other"),
        ),
    );
    let import = imported(&text);
    let settings = parsed(&import);
    for (host, path, origin) in [
        ("a.test", "/u/12", Some("user")),
        ("a.test", "/U/12/x", Some("user")),
        ("a.test", "/u/x", None),
        ("a.test", "/api", Some("api")),
        // As in ingress-nginx.
        ("a.test", "/API-more", Some("api")),
        ("b.test", "/api", Some("other")),
        ("b.test", "/api-more", None),
    ] {
        assert_eq!(
            found(&settings, host, path),
            origin.map(str::to_owned),
            "{host}{path}"
        );
    }
    for told in [
        "a.test: ingress-nginx takes all paths",
        "/look(?=x) is no regular expression",
    ] {
        assert!(
            import.notes.iter().any(|it| it.contains(told)),
            "{:?}",
            import.notes
        );
    }
}

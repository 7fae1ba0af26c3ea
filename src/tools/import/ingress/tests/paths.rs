//! Tests of paths of Ingresses.

use super::{action, imported, ingress, parsed, rule};

#[test]
fn a_path_whose_rewrite_drip_does_not_have_is_refused() {
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
    let action = action(&settings, "a.test", "/foo/x");
    assert_eq!(action.as_deref(), Some("503"));
    assert!(
        import.notes.iter().any(|it| it.contains(
            "rewrite-target /x of the path /foo is not translated, so requests get 503: "
        )),
        "{:?}",
        import.notes
    );
}

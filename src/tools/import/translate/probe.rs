//! Checks whether the settings accept a value, by parsing a file with it.

use std::path::Path;

use crate::config::{parse, toml_string, toml_text};

pub(super) fn server(url: &str) -> bool {
    takes("", url, "", "/", "")
}

pub(super) fn listen(address: &str) -> bool {
    takes(
        &format!("listen = [{}]", toml_string(address)),
        "http://a",
        "",
        "/",
        "",
    )
}

pub(super) fn origin_host(host: &str) -> bool {
    takes(
        "",
        "http://a",
        &format!("host = {}", toml_string(host)),
        "/",
        "",
    )
}

pub(super) fn path(path: &str) -> bool {
    takes("", "http://a", "", path, "")
}

/// Whether a route can put `add` in place of `strip`.
pub(super) fn rewrite(strip: &str, add: &str) -> bool {
    let fields = format!(
        "strip_prefix = {}\nadd_prefix = {}",
        toml_text(strip),
        toml_text(add)
    );
    takes("", "http://a", "", strip, &fields)
}

pub(super) fn method(method: &str) -> bool {
    let field = format!("methods = [{}]", toml_text(method));
    takes("", "http://a", "", "/", &field)
}

pub(super) fn host(host: &str) -> bool {
    takes(
        "",
        "http://a",
        "",
        "/",
        &format!("host = {}", toml_string(host)),
    )
}

fn takes(server: &str, url: &str, origin: &str, path: &str, route: &str) -> bool {
    let (url, path) = (toml_string(url), toml_string(path));
    let text = format!(
        "[server]\nadmin = \"off\"\n{server}\n[origins.a]\nservers = [{url}]\n{origin}\n\
         [[routes]]\norigin = \"a\"\npath = {path}\n{route}\n"
    );
    parse(&text, Path::new("gateway.toml"), false).is_ok()
}

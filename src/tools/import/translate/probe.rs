//! Checks whether the settings accept a value, by parsing a file with it.

use std::path::Path;

use crate::config::{parse, toml_string};

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

//! Tests of writing settings.

use std::path::Path;

use super::*;
use crate::{Route, parse};

/// A file with every field.
const EVERYTHING: &str = include_str!("everything.toml");
/// Expected output for [`EVERYTHING`].
const SHOWN: &str = include_str!("shown.toml");

#[test]
fn what_is_shown_reads_back_as_the_same_settings() {
    let settings = parse(EVERYTHING, Path::new("/etc/drip/gateway.toml"), true).unwrap();
    assert_eq!(show(&settings), SHOWN);
    let again = parse(SHOWN, Path::new("/elsewhere/gateway.toml"), true).unwrap();
    let warnings = settings.warnings.clone();
    assert_eq!(Settings { warnings, ..again }, settings);
}

#[test]
fn routes_are_named_and_matched_byte_by_byte() {
    let settings = parse(SHOWN, Path::new("gateway.toml"), true).unwrap();
    let names = settings.routes.iter().map(Route::name).collect::<Vec<_>>();
    let (exact, regex) = ("api.example.com = /login", "regex:^/v1/\\d+\"$");
    assert_eq!(
        names,
        [exact, regex, "/private/", "/", "/three", "/four", "/five"]
    );
    let exact = &settings.routes[0].path;
    assert!(exact.matches(b"/login") && !exact.matches(b"/login/") && !exact.matches(b"/Login"));
    let prefix = crate::PathPattern::Prefix("/fast".to_owned());
    assert!(prefix.matches(b"/fast") && prefix.matches(b"/fast.html") && !prefix.matches(b"/fas"));
}

use http::Uri;

use super::{Fields, Node, values};
use crate::config::{Access, Format, Level, Log};

/// Reads `[log]`.
pub(super) fn read(mut fields: Fields) -> Log {
    let log = Log {
        level: fields.or("level", Level::Info, values::choice(&Level::NAMED)),
        format: fields.or("format", Format::Text, values::choice(&Format::NAMED)),
        access: fields.or("access", Access::Off, |node| match node.value.as_str() {
            None | Some("") => node.expected("\"off\", \"stdout\" or the name of a file"),
            Some("off") => Some(Access::Off),
            Some("stdout") => Some(Access::Stdout),
            Some(name) => Some(Access::File(node.in_folder(name))),
        }),
        otlp: fields.or("otlp", None, |node| match node.value.as_str() {
            Some("off") => Some(None),
            text => collector(&node, text).map(Some),
        }),
    };
    fields.finish();
    log
}

fn collector(node: &Node, text: Option<&str>) -> Option<Uri> {
    let url = text.and_then(|text| text.parse::<Uri>().ok());
    let url = url.filter(|url| {
        let is_http = url.scheme_str() == Some("http");
        let has_user = url.authority().is_some_and(|it| it.as_str().contains('@'));
        let has_host = url.host().is_some_and(|host| !host.is_empty());
        is_http && has_host && !has_user && url.query().is_none()
    });
    let Some(url) = url else {
        return node
            .expected("the URL of a collector such as \"http://127.0.0.1:4318\", or \"off\"");
    };
    if cfg!(not(feature = "otlp")) {
        node.wrong(
            "this build of drip sends no spans; build one that does with \
             `cargo install --path . --features otlp`, or remove the field",
        );
        return None;
    }
    Some(url)
}

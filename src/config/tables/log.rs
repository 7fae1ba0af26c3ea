//! `[log]`.

use std::path::PathBuf;

use http::Uri;

use super::prelude::*;

table! {
    /// `[log]`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Log {
        level: Level = word().or("\"info\""), Now,
            "Least severe message in the error log.";
        format: Format = word().or("\"text\""), Restart,
            "Format of both logs.";
        access: Access = ACCESS.or("\"off\""), Now,
            "Where the access log goes: \"off\", \"stdout\" or a file name.";
        /// An `http://` URL; `None`: spans are not exported.
        otlp: Option<Uri> = COLLECTOR.or("\"off\""), Restart,
            "The OpenTelemetry collector that spans are sent to.";
    }
}

const ACCESS: Kind<Access> = kind(
    NOT_EMPTY_FORM,
    |node| match node.value.as_str() {
        None | Some("") => node.expected("\"off\", \"stdout\" or the name of a file"),
        Some("off") => Some(Access::Off),
        Some("stdout") => Some(Access::Stdout),
        Some(name) => Some(Access::File(node.in_folder(name))),
    },
    |it| match it {
        Access::Off => shown("off"),
        Access::Stdout => shown("stdout"),
        Access::File(path) => shown(&path.display()),
    },
);

const COLLECTOR: Kind<Option<Uri>> = kind(
    Form::Like("off|http://[^?@/]+(/[^?]*)?"),
    |node| match node.value.as_str() {
        Some("off") => Some(None),
        text => read_collector(node, text.unwrap_or_default()).map(Some),
    },
    |it| match it {
        Some(url) => shown(url),
        None => shown("off"),
    },
);

/// Reads the URL of a collector: over HTTP, without a user and a query.
fn read_collector(node: Node, text: &str) -> Option<Uri> {
    let url = text.parse::<Uri>().ok().filter(|url| {
        let has_user = url.authority().is_some_and(|it| it.as_str().contains('@'));
        let has_host = url.host().is_some_and(|host| !host.is_empty());
        url.scheme_str() == Some("http") && has_host && !has_user && url.query().is_none()
    });
    let what = "the URL of a collector such as \"http://127.0.0.1:4318\", or \"off\"";
    let url = url.or_else(|| node.expected(what))?;
    if cfg!(not(feature = "otlp")) {
        return node.refused(
            "this build of drip sends no spans; build one that does with \
             `cargo install --path . --features otlp`, or remove the field",
        );
    }
    Some(url)
}

words! {
    /// Severity of a message, from most to least severe.
    #[derive(PartialOrd, Ord)]
    pub enum Level {
        /// Something does not work.
        Error = "error",
        /// Something will stop working soon.
        Warn = "warn",
        /// Information for operators in normal operation.
        Info = "info",
        /// Information for developers of the gateway.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

words! {
    /// Format of a log line.
    pub enum Format {
        /// Plain text, for people.
        Text = "text",
        /// One JSON object per line.
        Json = "json",
    }
}

/// Destination of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// No access log.
    Off,
    /// Standard output.
    Stdout,
    /// A file, with its absolute path.
    File(PathBuf),
}

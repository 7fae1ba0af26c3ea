//! `[log]`: the error log, the access log, and spans for OpenTelemetry.
//!
//! In `table!`, an entry is a field of the file: its type, its reader with the default, when a
//! change takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as
//! `word`).

use std::path::PathBuf;

use http::Uri;

use super::prelude::*;

table! {
    /// `[log]`: what is logged, and where.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Log {
        level: Level = word().with_default("\"info\""), Now,
            "Least severe message in the error log.";
        format: Format = word().with_default("\"text\""), Restart,
            "Format of both logs.";
        access: Access = ACCESS.with_default("\"off\""), Now,
            "Where the access log goes: \"off\", \"stdout\" or a file name.";
        /// An `http://` URL; `None`: spans are not exported.
        otlp: Option<Uri> = COLLECTOR.with_default("\"off\""), Restart,
            "The OpenTelemetry collector that spans are sent to.";
    }
}

/// Destination of the access log.
const ACCESS: Kind<Access> = Kind {
    form: NOT_EMPTY_FORM,
    read: |node| match node.value.as_str() {
        None | Some("") => node.report_expected("\"off\", \"stdout\" or the name of a file"),
        Some("off") => Some(Access::Off),
        Some("stdout") => Some(Access::Stdout),
        Some(name) => Some(Access::File(node.in_folder(name))),
    },
    show: |it| match it {
        Access::Off => show_text("off"),
        Access::Stdout => show_text("stdout"),
        Access::File(path) => show_text(&path.display()),
    },
};

/// URL of a collector, or `"off"`.
const COLLECTOR: Kind<Option<Uri>> = Kind {
    form: Form::Regex("off|http://[^?@/]+(/[^?]*)?"),
    read: |node| match node.value.as_str() {
        Some("off") => Some(None),
        text => read_collector(node, text.unwrap_or_default()).map(Some),
    },
    show: |it| match it {
        Some(url) => show_text(url),
        None => show_text("off"),
    },
};

/// Parses the URL of a collector: over HTTP, without a user and a query.
fn read_collector(node: Node, text: &str) -> Option<Uri> {
    let url = text.parse::<Uri>().ok().filter(|url| {
        let has_user = url.authority().is_some_and(|it| it.as_str().contains('@'));
        let has_host = url.host().is_some_and(|host| !host.is_empty());
        url.scheme_str() == Some("http") && has_host && !has_user && url.query().is_none()
    });
    let what = "the URL of a collector such as \"http://127.0.0.1:4318\", or \"off\"";
    let url = url.or_else(|| node.report_expected(what))?;
    if cfg!(not(feature = "otlp")) {
        return node.refuse(
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

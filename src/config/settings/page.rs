//! Pages: files that clients get instead of the gateway's own short texts, such as `Bad Gateway`.
//!
//! `tables::page` reads the files.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Statuses;
use crate::Words;
use crate::tables::kinds::words;

/// A page, read together with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Absolute path.
    pub file: PathBuf,
    /// Content of the file.
    pub content: Arc<PageContent>,
}

/// A text with placeholders that each response fills.
#[derive(Debug, PartialEq, Eq)]
pub struct PageContent {
    /// Media type of the text.
    pub media: Media,
    parts: Vec<PagePart>,
}

/// Part of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum PagePart {
    /// Text of the file.
    Text(Box<str>),
    /// A value of the response.
    Value(PageValue),
}

words! {
    /// Placeholder for a value of a response, written in double braces.
    pub enum PageValue {
        /// `{{status}}`
        Status = "status",
        /// `{{retry_after}}`: the value of `Retry-After`; empty without that field.
        RetryAfter = "retry_after",
        /// `{{request_id}}`: empty if requests have none.
        RequestId = "request_id",
        /// `{{position}}`: position in a waiting room. The values below are of waiting rooms, too.
        Position = "position",
        /// `{{ahead}}`: number of visitors ahead.
        Ahead = "ahead",
        /// `{{wait}}`: predicted wait.
        Wait = "wait",
        /// `{{refresh}}`: seconds until the page polls again.
        Refresh = "refresh",
        /// `{{opens}}`: opening time of the room.
        Opens = "opens",
        /// `{{word}}`: message from the operator.
        Word = "word",
    }
}

/// Number of placeholders that every page has. Only the page of a waiting room has the others.
const COMMON_VALUES: usize = 3;

impl PageContent {
    /// Parses a page. Unknown names in double braces stay text: scripts may have such templates.
    pub fn parse(media: Media, text: &str) -> Self {
        Self::parse_with(media, text, &PageValue::WORDS[..COMMON_VALUES])
    }

    /// Parses the HTML page of a waiting room, which has more values.
    pub fn parse_room(text: &str) -> Self {
        Self::parse_with(Media::Html, text, PageValue::WORDS)
    }

    /// Parses a page with the placeholders `known`.
    fn parse_with(media: Media, text: &str, known: &[(&str, PageValue)]) -> Self {
        // `plain`: the text since the last placeholder. `rest`: the text that is not parsed yet.
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some((before, behind)) = rest.split_once("{{") {
            plain.push_str(before);
            let placeholder = behind.split_once("}}").and_then(|(name, after)| {
                let (_, value) = known.iter().find(|(word, _)| *word == name.trim())?;
                Some((*value, after))
            });
            if let Some((value, after)) = placeholder {
                if !plain.is_empty() {
                    parts.push(PagePart::Text(std::mem::take(&mut plain).into()));
                }
                parts.push(PagePart::Value(value));
                rest = after;
            } else {
                // Skips only one of the braces: a placeholder may begin at the next one, as in
                // `{{{`.
                plain.push('{');
                rest = &rest[before.len() + 1..];
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(PagePart::Text(plain.into()));
        }
        Self { media, parts }
    }

    /// Returns the parts in order.
    pub fn parts(&self) -> &[PagePart] {
        &self.parts
    }
}

/// Media type of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// HTML.
    Html,
    /// JSON.
    Json,
    /// XML.
    Xml,
    /// SVG.
    Svg,
    /// Any other text.
    Plain,
}

impl Media {
    /// Returns the media type for the extension of a file name.
    pub fn of_file(file: &Path) -> Self {
        let extension = file.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("html" | "htm") => Self::Html,
            Some("json") => Self::Json,
            Some("xml") => Self::Xml,
            Some("svg") => Self::Svg,
            _ => Self::Plain,
        }
    }

    /// Returns the value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            // JSON is always UTF-8 (RFC 8259, section 8.1).
            Self::Json => "application/json",
            Self::Xml => "text/xml; charset=utf-8",
            Self::Svg => "image/svg+xml",
            Self::Plain => "text/plain; charset=utf-8",
        }
    }

    /// Escapes a value so that it stays a plain value anywhere in a text of this type.
    ///
    /// In HTML and XML the value may stand in an attribute without quotes or in a script, so almost
    /// all punctuation is escaped. In JSON it must stand in a string.
    pub fn escape(self, value: &str) -> Cow<'_, str> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:/+".contains(c);
        if value.chars().all(is_plain) || self == Self::Plain {
            return Cow::Borrowed(value);
        }
        let mut escaped = String::with_capacity(value.len() * 2);
        for c in value.chars() {
            // Writing to a string does not fail.
            let _ = match self {
                _ if is_plain(c) => escaped.write_char(c),
                Self::Json => {
                    let mut buffer = [0; 2];
                    let mut units = c.encode_utf16(&mut buffer).iter();
                    units.try_for_each(|unit| write!(escaped, "\\u{unit:04x}"))
                }
                _ => write!(escaped, "&#{};", u32::from(c)),
            };
        }
        Cow::Owned(escaped)
    }
}

/// Page or pages of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageChoice {
    /// One page for all clients.
    One(Page),
    /// A page by the request's `Accept` field.
    ByAccept {
        /// Page for people.
        html: Page,
        /// Page for programs.
        json: Page,
    },
}

/// Pages of a route, by the status of its responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pages(Vec<(Statuses, PageChoice)>);

impl Pages {
    /// Makes pages from a list in which each status and each class of statuses occurs at most once.
    pub fn new(mut pages: Vec<(Statuses, PageChoice)>) -> Self {
        // An exact status, up to 599, precedes each class, whose sort key is 4000 or more.
        pages.sort_by_key(|(statuses, _)| match statuses {
            Statuses::One(status) => *status,
            Statuses::Class(class) => class * 1000,
        });
        Self(pages)
    }

    /// Returns the page of a status, if it has one.
    pub fn get(&self, status: u16) -> Option<&PageChoice> {
        let mut pages = self.0.iter();
        let found = pages.find(|(statuses, _)| statuses.has(status))?;
        Some(&found.1)
    }

    /// Returns all pages, those of an exact status first.
    pub fn iter(&self) -> impl Iterator<Item = &(Statuses, PageChoice)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_in_double_braces_are_placeholders() {
        let text = |text: &str| PagePart::Text(text.into());
        let value = PagePart::Value;
        for (page, parts) in [
            ("", vec![]),
            ("a", vec![text("a")]),
            ("{{status}}", vec![value(PageValue::Status)]),
            (
                "{{{status}}}",
                vec![text("{"), value(PageValue::Status), text("}")],
            ),
            (
                "{{ status }}{{retry_after}}",
                vec![value(PageValue::Status), value(PageValue::RetryAfter)],
            ),
            (
                "a{{user}} {{request_id}}",
                vec![text("a{{user}} "), value(PageValue::RequestId)],
            ),
            ("{{status", vec![text("{{status")]),
            ("{{{{status}}", vec![text("{{"), value(PageValue::Status)]),
            ("{ {status}}", vec![text("{ {status}}")]),
        ] {
            let content = PageContent::parse(Media::Html, page);
            assert_eq!(content.parts(), parts, "{page}");
        }
    }

    #[test]
    fn a_value_is_escaped_for_each_media_type() {
        let value = "<script>\"\\'`= \u{e9}\u{1f600}";
        assert_eq!(Media::Plain.escape(value), value);
        let escaped = "&#60;script&#62;&#34;&#92;&#39;&#96;&#61;&#32;&#233;&#128512;";
        for media in [Media::Html, Media::Xml, Media::Svg] {
            assert_eq!(media.escape(value), escaped);
            assert_eq!(media.escape("0-a_b.c:d/e+f"), "0-a_b.c:d/e+f");
        }
        let json = format!("\"{}\"", Media::Json.escape(value));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), value);
        assert!(!json.contains('<'), "{json}");
    }
}

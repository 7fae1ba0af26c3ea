//! `pages` of a route: files that clients get instead of the short texts of drip's own responses.
//!
//! The files are read here, with the configuration. In `table!`, an entry is a field of the file:
//! its type, its reader with the default, when a change takes effect, and its meaning (see
//! `table_settings`, and `kinds` for readers such as `PAGES`).

use std::path::Path;
use std::sync::Arc;

use super::prelude::*;
use crate::{FileKind, Media, Page, PageChoice, PageContent, Pages, Route, Statuses};

/// Maximum size of a file, in bytes.
const MAX_FILE_SIZE: u64 = 256 * 1024;

/// Table of pages by status, such as `"503"` or `"5xx"`.
pub(super) const PAGES: Kind<Pages> = Kind {
    form: Form::ByName(
        "[45]([0-9][0-9]|xx)",
        &Form::OneOf(&[NOT_EMPTY_FORM, Form::Table(BY_ACCEPT)]),
    ),
    read: read_pages,
    show: |it| {
        let mut pages = it.iter().peekable();
        // Omits an empty table.
        pages.peek()?;
        show_bare(&toml_table(pages.map(|(statuses, choice)| {
            let choice = match choice {
                PageChoice::One(page) => toml_name(page),
                PageChoice::ByAccept { html, json } => {
                    let (html, json) = (toml_name(html), toml_name(json));
                    format!("{{ html = {html}, json = {json} }}")
                }
            };
            (format!("\"{statuses}\""), choice)
        })))
    },
};

// Fields of the table of two pages, by the `Accept` field of requests.
table! {
    pub(super) const BY_ACCEPT {
        html: Field::of_form(NOT_EMPTY_FORM).required("\"busy.html\""), NextRequest,
            "The file for those who accept HTML, and for all who accept both or none.";
        json: Field::of_form(NOT_EMPTY_FORM).required("\"busy.json\""), NextRequest,
            "The file for those who accept JSON rather than HTML.";
    }
}

/// Reports a route with `origin_pages` that has no page for the responses that it would replace.
pub(super) fn check_origin_pages(node: Node, route: &Route) {
    let mut replaced = Route::REPLACEABLE.iter();
    let has_one = replaced.any(|status| route.pages.get(*status).is_some());
    if route.origin_pages && !has_one {
        node.report_problem("pages has none for 502 to 504; add one such as \"5xx\" = \"down.html\" there, or remove origin_pages");
    }
}

impl Route {
    /// Statuses of origin responses that a page may replace.
    ///
    /// They come from a proxy in front of the application that cannot reach it, or from an
    /// overloaded application.
    const REPLACEABLE: [u16; 3] = [502, 503, 504];

    /// Returns whether a page replaces a response of the origin with this status.
    pub fn replaces(&self, status: u16) -> bool {
        self.origin_pages && Self::REPLACEABLE.contains(&status) && self.pages.get(status).is_some()
    }
}

/// Returns the name of a page's file as TOML.
fn toml_name(page: &Page) -> String {
    toml_text(&page.file.display().to_string())
}

/// Reads the pages of a route, by status.
fn read_pages(node: Node) -> Option<Pages> {
    let entries =
        node.entries_or("a table such as { \"429\" = \"busy.html\", \"5xx\" = \"down.html\" }")?;
    // Each right entry gives one page.
    let (count, mut pages) = (entries.len(), Vec::new());
    for entry in entries {
        let statuses = entry.name.parse::<Statuses>().ok().filter(|statuses| {
            // Only one spelling per status is accepted, so that no status occurs twice.
            statuses.to_string() == entry.name && matches!(statuses.class(), 4 | 5)
        });
        match statuses {
            Some(statuses) => pages.extend(read_choice(entry).map(|choice| (statuses, choice))),
            None => entry.report_as_is(
                "a page is for a status from 400 to 599, or for all of \"4xx\" or \"5xx\"",
            ),
        }
    }
    (pages.len() == count).then(|| Pages::new(pages))
}

/// Reads one page, or a page for HTML and one for JSON.
fn read_choice(node: Node) -> Option<PageChoice> {
    if !node.value.is_table() {
        return read_page(node, None).map(PageChoice::One);
    }
    let title = format!("the table {}", node.name);
    let mut fields = Fields::begin(node, title, BY_ACCEPT)?;
    let html = fields.read_required("html", |node| read_page(node, Some(Media::Html)));
    let json = fields.read_required("json", |node| read_page(node, Some(Media::Json)));
    fields.finish();
    let (html, json) = html.zip(json)?;
    Some(PageChoice::ByAccept { html, json })
}

/// Reads a page of this media type. `None`: the extension of the file name decides.
fn read_page(node: Node, media: Option<Media>) -> Option<Page> {
    let what = "the name of a file such as \"busy.html\"";
    read_file(node, what, |file, text| {
        PageContent::parse(media.unwrap_or_else(|| Media::of_file(file)), text)
    })
}

/// Reads the page of a waiting room.
pub(super) fn read_room_page(node: Node) -> Option<Page> {
    let what = "the name of a file such as \"wait.html\"";
    read_file(node, what, |_, text| PageContent::parse_room(text))
}

/// Reads a file, and makes a page of it with `parse`.
fn read_file(
    node: Node,
    what: &str,
    parse: impl FnOnce(&Path, &str) -> PageContent,
) -> Option<Page> {
    let file = values::named_file(node, FileKind::Page, what)?;
    let remedy = "; name a file of UTF-8 text of at most 256KB";
    let text = values::content(node, &file, MAX_FILE_SIZE, remedy)?;
    let Ok(text) = String::from_utf8(text) else {
        return node.refuse_as_is(&format!("{} is not UTF-8{remedy}", node.show_path(&file)));
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let content = Arc::new(parse(&file, text));
    Some(Page { file, content })
}

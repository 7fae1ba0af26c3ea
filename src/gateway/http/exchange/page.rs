//! Error pages of a route: choice by `Accept`, and the body with its values, piece by piece.
//!
//! The same kind of page also serves visitors of a waiting room.

use std::cmp::Reverse;
use std::sync::Arc;

use config::{PageChoice, PageContent, PagePart, PageValue};
use smallvec::SmallVec;

use super::record::RequestRecord;
use crate::http::message::{Buffer, Fields, READ_SIZE, strip_start};

/// Page for one request.
pub(super) struct ChosenPage<'r> {
    pub(super) content: &'r Arc<PageContent>,
    /// Whether `Accept` has decided between two pages. Then the response has `Vary`.
    pub(super) by_accept: bool,
}

impl<'r> ChosenPage<'r> {
    /// Returns the page that the route of a request has for a status.
    pub(super) fn of(record: &RequestRecord<'r>, status: u16) -> Option<Self> {
        let (content, by_accept) = match record.route()?.pages.get(status)? {
            PageChoice::One(page) => (&page.content, false),
            PageChoice::ByAccept { html, json } => {
                let is_json = prefers_json(record.info.fields());
                let page = if is_json { json } else { html };
                (&page.content, true)
            }
        };
        Some(Self { content, by_accept })
    }
}

/// Returns whether `Accept` names HTML itself, as browsers do for a page.
pub(super) fn names_html(fields: Fields<'_>) -> bool {
    let rating = rating(fields, "text", "html");
    rating.is_some_and(|(specificity, _weight)| specificity == EXACT)
}

/// Returns whether a client prefers JSON to HTML.
///
/// The more specific media range wins, then the higher weight, then HTML (RFC 9110, section
/// 12.5.1). So `application/json, */*` prefers JSON.
pub(super) fn prefers_json(fields: Fields<'_>) -> bool {
    // Tuples compare the specificity first, then the weight.
    rating(fields, "application", "json") > rating(fields, "text", "html")
}

/// Specificity of a media range with type and subtype, such as `text/html`.
const EXACT: u8 = 2;

/// Returns the specificity and the weight (0 to 1) that `Accept` has for a media type.
///
/// Returns `None` if no range matches, or if the type is excluded.
fn rating(fields: Fields<'_>, kind: &str, subtype: &str) -> Option<(u8, f32)> {
    let lines = fields.named("accept");
    let ranges = lines.flat_map(|line| line.split(|byte| *byte == b','));
    let ratings = ranges.filter_map(|range| {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let mut name = parts.next()?.splitn(2, |byte| *byte == b'/');
        let (first, second) = (name.next()?, name.next()?);
        let is_of_kind = first.eq_ignore_ascii_case(kind.as_bytes());
        let specificity = match (first, second) {
            (b"*", b"*") => 0,
            (_, b"*") if is_of_kind => 1,
            (_, it) if is_of_kind && it.eq_ignore_ascii_case(subtype.as_bytes()) => EXACT,
            _ => return None,
        };
        Some((specificity, parts.find_map(weight).unwrap_or(1.0)))
    });
    // Of equally specific ranges the first one counts, whatever its weight.
    let best = ratings.min_by_key(|(specificity, _)| Reverse(*specificity))?;
    Some(best).filter(|(_, weight)| *weight > 0.0)
}

/// Returns the weight of a parameter such as `q=0.5`; 1 if it is not a number.
fn weight(parameter: &[u8]) -> Option<f32> {
    let value = strip_start(parameter, b"q=")?;
    let weight = str::from_utf8(value).ok().and_then(|it| it.parse().ok());
    weight.filter(|it| (0.0..=1.0).contains(it)).or(Some(1.0))
}

/// Values filled into a page. A missing value is filled in as empty text.
pub(super) type PageValues = SmallVec<[(PageValue, String); 3]>;

/// Rest of a page's body.
///
/// The body is sent in pieces: a client that reads slowly must not keep a whole page in memory.
pub(super) struct PageBody {
    content: Arc<PageContent>,
    values: PageValues,
    /// Index of the next part.
    part: usize,
    /// Number of bytes of that part that are already taken.
    taken: usize,
}

impl PageBody {
    pub(super) fn new(content: &Arc<PageContent>, mut values: PageValues) -> Self {
        for (_, value) in &mut values {
            *value = content.media.escape(value).into_owned();
        }
        Self {
            content: Arc::clone(content),
            values,
            part: 0,
            taken: 0,
        }
    }

    /// Returns the text of a part: literal text, or the value for a placeholder.
    fn text_of<'s>(&'s self, part: &'s PagePart) -> &'s str {
        match part {
            PagePart::Text(text) => text,
            PagePart::Value(placeholder) => {
                let found = self.values.iter().find(|(value, _)| value == placeholder);
                found.map_or("", |(_, text)| text)
            }
        }
    }

    /// Returns the length of the whole body.
    pub(super) fn length(&self) -> u64 {
        let parts = self.content.parts().iter();
        parts.map(|part| self.text_of(part).len() as u64).sum()
    }

    /// Appends the next bytes to a piece. Returns whether more follow.
    pub(super) fn fill(&mut self, piece: &mut Buffer) -> bool {
        let mut room = READ_SIZE;
        while let Some(part) = self.content.parts().get(self.part) {
            let rest = &self.text_of(part).as_bytes()[self.taken..];
            let count = rest.len().min(room);
            piece.put(&rest[..count]);
            room -= count;
            if count < rest.len() {
                self.taken += count;
                return true;
            }
            (self.part, self.taken) = (self.part + 1, 0);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::message::test_heads::request;
    use config::Media;

    #[test]
    fn the_closer_type_goes_before_then_the_weight_then_html() {
        assert!(!prefers_json(request(&[]).fields()));
        for (expected, cases) in [
            (
                true,
                "application/json|application/json, */*|*/*\nApplication/JSON|application/*|\
                 text/html;q=0, */*|text/html;q=0.4, application/json;q=0.5|\
                 text/*, application/json;q=0.1|\
                 application/json;charset=utf-8; Q=0.9, text/html;q=0.8",
            ),
            (
                false,
                "|*/*|text/html|application/json, text/html|application/json;q=0, */*|\
                 text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8|\
                 application/json;q=0.5, text/html;q=0.5|application/jsonp, image/png|\
                 application/json;q=0.2, text/html;q=nonsense|application",
            ),
        ] {
            for accept in cases.split('|') {
                // Each line of a case is a field of its own.
                let lines = accept.split('\n').map(|line| ("Accept", line.as_bytes()));
                let head = request(&lines.collect::<Vec<_>>());
                assert_eq!(prefers_json(head.fields()), expected, "{accept:?}");
            }
        }
    }

    #[test]
    fn the_values_of_a_room_are_escaped_and_empty_without_one() {
        let names = ["position", "ahead", "wait", "refresh", "opens", "word"];
        let text = names.map(|name| format!("{{{{{name}}}}},")).concat();
        let content = Arc::new(PageContent::parse_room(&text));
        let room = [
            (PageValue::Position, "7"),
            (PageValue::Ahead, "6"),
            (PageValue::Wait, "<1m"),
            (PageValue::Refresh, "2"),
            (PageValue::Opens, "10:00"),
            (PageValue::Word, "a&b"),
        ];
        for (room, expected) in [(&room[..], "7,6,&#60;1m,2,10:00,a&#38;b,"), (&[], ",,,,,,")] {
            let values = room.iter().map(|(value, text)| (*value, (*text).into()));
            let mut body = PageBody::new(&content, values.collect());
            let mut piece = Buffer::for_body();
            assert!(!body.fill(&mut piece));
            assert_eq!(str::from_utf8(piece.filled()), Ok(expected));
        }
    }

    #[test]
    fn a_body_in_pieces_is_the_page_with_its_values() {
        let long = "é".repeat(READ_SIZE);
        let text = format!("{{{{status}}}} {long}{{{{request_id}}}}{{{{retry_after}}}}");
        let content = Arc::new(PageContent::parse(Media::Html, &text));
        let values = [(PageValue::Status, "503"), (PageValue::RequestId, "a<b")];
        let values = values.map(|(value, text)| (value, text.to_owned()));
        let mut body = PageBody::new(&content, values.into_iter().collect());
        let (length, mut all, mut pieces) = (body.length(), Vec::new(), 0);
        let mut has_more = true;
        while has_more {
            let mut piece = Buffer::for_body();
            has_more = body.fill(&mut piece);
            assert!(piece.len() <= READ_SIZE);
            all.extend_from_slice(piece.filled());
            pieces += 1;
        }
        assert_eq!(all, format!("503 {long}a&#60;b").as_bytes());
        assert_eq!((length, pieces), (all.len() as u64, 3));
    }
}

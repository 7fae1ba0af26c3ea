//! The live page: static files that are compiled into the program.
//!
//! | script | content |
//! |---|---|
//! | `page` | order and time of drawing |
//! | `state`, `link`, `events`, `ask` | data of the gateway; the stream; requests to the API |
//! | `token`, `login` | the token of the reader, and the form for it |
//! | `address` | the zone and the time span in the page's address |
//! | `text` | numbers, text and elements |
//! | `plot`, `canvas`, `marks` | plots over time, and the marks of changes on them |
//! | `headline`, `totals` | the gateway's headline; the totals |
//! | `zones`, `overrides` | the cards of zones, and their overrides |
//! | `limited`, `keys` | limited keys; the keys with the most waiters |
//! | `origins`, `servers`, `shared` | the panels of origins, their servers, and shared responses |
//! | `gatepanel`, `gates`, `rooms` | the panels of gates and waiting rooms |
//! | `find`, `findplot`, `ownfinds` | the experiment at a gate, its plot; experiments of this page |
//! | `routes`, `store` | routes; the store of shared zones |
//! | `file`, `notices` | the file and its changes; errors of the file or the connection |
//! | `act`, `actions`, `send`, `whatif` | changes by the reader, and the effect of another rate |

use std::hash::{DefaultHasher, Hash, Hasher};

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETag, EntityTag, Header, IfNoneMatch};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};

use super::resource;

/// A static file of the page.
struct Asset {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

/// Lists the page with its style and icon, and the scripts of these names.
macro_rules! assets {
    ($($script:literal),* $(,)?) => {
        &[
            asset("/", "text/html; charset=utf-8", include_str!("page.html")),
            asset("/page.css", "text/css; charset=utf-8", include_str!("page.css")),
            asset("/icon.svg", "image/svg+xml", include_str!("icon.svg")),
            $(asset(
                concat!("/", $script, ".js"),
                SCRIPT,
                include_str!(concat!($script, ".js")),
            ),)*
        ]
    };
}

/// Content type of a script.
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// All files of the page.
#[rustfmt::skip]
const ASSETS: &[Asset] = assets![
    "page", "state", "link", "events", "token", "login", "ask", "address", "text", "plot",
    "canvas", "marks", "headline", "totals", "zones", "overrides", "limited", "keys", "origins",
    "servers", "shared", "gatepanel", "gates", "find", "findplot", "ownfinds", "rooms",
    "routes", "store", "file", "notices", "act", "actions", "send", "whatif",
];

/// Creates a static file.
const fn asset(path: &'static str, content_type: &'static str, text: &'static str) -> Asset {
    Asset {
        path,
        content_type,
        text,
    }
}

/// Registers the files of the page.
pub(super) fn routes(config: &mut web::ServiceConfig) {
    for asset in ASSETS {
        let handler = async move |request: HttpRequest| asset.answer(&request);
        config.service(resource(
            asset.path,
            [(Method::GET, web::route().to(handler))],
        ));
    }
}

/// Returns whether a path is that of a file of the page.
pub(super) fn has_file(path: &str) -> bool {
    ASSETS.iter().any(|asset| asset.path == path)
}

impl Asset {
    /// Returns the entity tag: a hash of the text.
    ///
    /// A browser validates its copy with it, so it never shows the page of another version.
    fn tag(&self) -> EntityTag {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        EntityTag::new_strong(format!("{:016x}", hasher.finish()))
    }

    /// Returns the text without leading blanks of lines and without comment lines of scripts.
    fn served_text(&self) -> String {
        let is_script = self.content_type == SCRIPT;
        let mut text = String::with_capacity(self.text.len());
        let mut in_comment = false;
        for line in self.text.lines().map(str::trim_start) {
            in_comment |= is_script && line.starts_with("/**");
            let is_dropped = in_comment || (is_script && line.starts_with("//"));
            if !is_dropped {
                text.push_str(line);
                text.push('\n');
            }
            in_comment &= !line.ends_with("*/");
        }
        text
    }

    /// Returns the file, or 304 if the browser has it.
    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let tag = self.tag();
        let is_known = match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Any) => true,
            Ok(IfNoneMatch::Items(known)) => known.iter().any(|known| known.weak_eq(&tag)),
            Err(_) => false,
        };
        let mut answer = HttpResponse::Ok();
        answer
            .insert_header(ETag(tag))
            .insert_header((CACHE_CONTROL, "no-cache"));
        if is_known {
            return answer.status(StatusCode::NOT_MODIFIED).finish();
        }
        answer
            .insert_header((CONTENT_TYPE, self.content_type))
            .body(self.served_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_served_without_its_comments() {
        let text = "// A.\n/** B\n * c.\n */\nf(\n  1, // d\n  * 2,\n);\n/** E. */\ng();\n";
        let served = asset("/a.js", SCRIPT, text).served_text();
        assert_eq!(served, "f(\n1, // d\n* 2,\n);\ng();\n");
        let style = asset("/a.css", "text/css", "/** A. */\n* {\n  b: c;\n}\n");
        assert_eq!(style.served_text(), "/** A. */\n* {\nb: c;\n}\n");
    }
}

//! The live page: static files that are compiled into the program.
//!
//! | script | what it is |
//! |---|---|
//! | `page` | what is asked of the gateway, and what is drawn when |
//! | `state` | what the gateway has told |
//! | `text` | numbers, text and elements |
//! | `plot` | plots over time |
//! | `zones`, `origins` | the cards of zones, the panels of origins |
//! | `gates` | the gates of origins: what waits there, and why |
//! | `summary` | the headline and the totals |

use std::hash::{DefaultHasher, Hash, Hasher};

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETag, EntityTag, Header, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse, web};

use super::reading;

struct Asset {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const ASSETS: [Asset; 11] = [
    Asset {
        path: "/",
        content_type: "text/html; charset=utf-8",
        text: include_str!("page.html"),
    },
    Asset {
        path: "/page.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("page.css"),
    },
    script("/page.js", include_str!("page.js")),
    script("/state.js", include_str!("state.js")),
    script("/text.js", include_str!("text.js")),
    script("/plot.js", include_str!("plot.js")),
    script("/zones.js", include_str!("zones.js")),
    script("/gates.js", include_str!("gates.js")),
    script("/origins.js", include_str!("origins.js")),
    script("/summary.js", include_str!("summary.js")),
    Asset {
        path: "/icon.svg",
        content_type: "image/svg+xml",
        text: include_str!("icon.svg"),
    },
];

const fn script(path: &'static str, text: &'static str) -> Asset {
    Asset {
        path,
        content_type: "text/javascript; charset=utf-8",
        text,
    }
}

pub(super) fn routes(config: &mut web::ServiceConfig) {
    for asset in &ASSETS {
        let handler = async move |request: HttpRequest| asset.answer(&request);
        config.service(reading(asset.path, handler));
    }
}

impl Asset {
    /// The entity tag: a hash of the text.
    ///
    /// A browser validates its copy with it, so it never shows the page of another version.
    fn tag(&self) -> EntityTag {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        EntityTag::new_strong(format!("{:016x}", hasher.finish()))
    }

    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let tag = self.tag();
        let is_known = match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Any) => true,
            Ok(IfNoneMatch::Items(known)) => known.iter().any(|it| it.weak_eq(&tag)),
            Err(_) => false,
        };
        let mut answer = if is_known {
            HttpResponse::NotModified()
        } else {
            HttpResponse::Ok()
        };
        answer
            .insert_header(ETag(tag))
            .insert_header((CACHE_CONTROL, "no-cache"));
        if is_known {
            return answer.finish();
        }
        answer
            .insert_header((CONTENT_TYPE, self.content_type))
            .body(self.text)
    }
}

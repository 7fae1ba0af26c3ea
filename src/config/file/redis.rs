use super::{Fields, values};
use crate::config::Redis;
use crate::store::Url;

const MOST_PREFIX: usize = 100;

/// Reads `[redis]`.
pub(super) fn read(mut fields: Fields) -> Redis {
    let default = Redis::default();
    let redis = Redis {
        url: fields.or("url", default.url, |node| {
            let what = "a URL such as \"redis://127.0.0.1:6379/0\"";
            let url: Url = values::parsed(node, what, str::parse)?;
            Some(match node.written() {
                Some(written) => url.shown_as(written),
                None => url,
            })
        }),
        timeout: fields.or("timeout", default.timeout, values::timeout),
        prefix: fields.or("prefix", default.prefix, |node| {
            let text = values::text(node)?;
            if text.len() > MOST_PREFIX {
                return node.expected(&format!("a text of at most {MOST_PREFIX} bytes"));
            }
            Some(text.to_owned())
        }),
    };
    fields.finish();
    redis
}

//! `[redis]`.

use std::path::Path;
use std::time::Duration;

use super::origin_tls::authorities;
use super::prelude::*;
use crate::FileKind;
use crate::redis::Url;
use crate::report::{Report, Shared};
use crate::tls::Authorities;

table! {
    /// `[redis]`: store of the buckets that several gateways share.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Redis {
        url: Url = URL.or("\"redis://127.0.0.1:6379/0\""), Now,
            "Where Redis is.";
        timeout: Duration = TIMEOUT.or("\"50ms\""), Now,
            "How long a request waits for Redis; then on_store_failure decides.";
        prefix: String = PREFIX.or("\"drip:\""), Now,
            "Begins each key in Redis; at most 100 bytes.";
        ca: Option<Authorities> = CA.optional(), Now,
            "A PEM file of the authorities that sign the certificate of Redis, or of this certificate itself. Default: those of the system.";
    }
}

const URL: Kind<Url> = kind(
    Form::Like("(redis|rediss|redis[+]unix|redis[+]cluster|rediss[+]cluster)://.+"),
    |node| {
        let what = "a URL such as \"redis://127.0.0.1:6379/0\"";
        let url: Url = values::parsed(node, what, str::parse)?;
        Some(match node.written() {
            Some(written) => url.shown_as(written),
            None => url,
        })
    },
    |it| shown(it.written()),
);

const PREFIX: Kind<String> = kind(
    Form::Like("(.|\\n){0,100}"),
    |node| {
        let what = "a text of at most 100 bytes";
        values::fitting(node, what, |text| text.len() <= 100).map(str::to_owned)
    },
    shown,
);

const CA: Kind<Authorities> = kind(
    NOT_EMPTY_FORM,
    |node| authorities(node, FileKind::RedisTls),
    |it| shown(&it.file.display()),
);

/// Reads `[redis]`.
pub(crate) fn read(mut fields: Fields) -> Redis {
    let redis = Redis::read(&mut fields);
    let needs_no_ca = !fields.is_wrong("url") && !redis.url.is_encrypted();
    if let Some(node) = fields.value("ca").filter(|_| needs_no_ca) {
        node.report_as_is("this Redis has no TLS; begin its url with rediss:// or rediss+cluster://, or remove this");
    }
    fields.finish();
    redis
}

/// Settings of a file without the table.
impl Default for Redis {
    fn default() -> Self {
        let shared = Shared::default();
        let (_, report) = Report::parse("", Path::new(""), Path::new(""), &shared);
        Self::of(Fields::absent(Self::TABLE, &report))
    }
}

words! {
    /// Store of a zone's buckets.
    pub enum StoreKind {
        /// Memory of this gateway, used by this gateway only.
        Memory = "memory",
        /// Redis, shared by all gateways that use it.
        Redis = "redis",
    }
}

words! {
    /// Action for requests that the store does not decide in time.
    #[derive(Default)]
    pub enum OnStoreFailure {
        /// The gateway decides alone, starting from the level that the store reported last.
        #[default]
        Local = "local",
        /// Accept the requests.
        Open = "open",
        /// Reject the requests with 503.
        Closed = "closed",
    }
}

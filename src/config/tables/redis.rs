//! `[redis]`: the store of the buckets that several gateways share.
//!
//! In `table!`, an entry is a field of the file: its type, its reader with the default, when a
//! change takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as
//! `TIMEOUT`).

use std::path::Path;
use std::time::Duration;

use super::origin_tls::read_authorities;
use super::prelude::*;
use crate::FileKind;
use crate::redis::Url;
use crate::report::{Report, Shared};
use crate::tls::Authorities;

table! {
    /// `[redis]`: store of the buckets that several gateways share.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Redis {
        url: Url = URL.with_default("\"redis://127.0.0.1:6379/0\""), Now,
            "Where Redis is.";
        timeout: Duration = TIMEOUT.with_default("\"50ms\""), Now,
            "How long a request waits for Redis; then on_store_failure decides.";
        prefix: String = PREFIX.with_default("\"drip:\""), Now,
            "Begins each key in Redis; at most 100 bytes.";
        ca: Option<Authorities> = CA.optional(), Now,
            "A PEM file of the authorities that sign the certificate of Redis, or of this certificate itself. Default: those of the system.";
    }
}

/// URL of Redis. If it comes from the environment, output shows the name of the variable.
const URL: Kind<Url> = Kind {
    form: Form::Regex("(redis|rediss|redis[+]unix|redis[+]cluster|rediss[+]cluster)://.+"),
    read: |node| {
        let what = "a URL such as \"redis://127.0.0.1:6379/0\"";
        let url: Url = values::parse(node, what, str::parse)?;
        Some(match node.unexpanded() {
            Some(written) => url.shown_as(written),
            None => url,
        })
    },
    show: |it| show_text(it.written()),
};

/// Text of at most 100 bytes.
const PREFIX: Kind<String> = Kind {
    form: Form::Regex("(.|\\n){0,100}"),
    read: |node| {
        let what = "a text of at most 100 bytes";
        values::text_if(node, what, |text| text.len() <= 100).map(str::to_owned)
    },
    show: show_text,
};

/// Name of a file with certificates, which is read with the configuration.
const CA: Kind<Authorities> = Kind {
    form: NOT_EMPTY_FORM,
    read: |node| read_authorities(node, FileKind::RedisTls),
    show: |it| show_text(&it.file.display()),
};

/// Reads `[redis]`.
pub(crate) fn read(mut fields: Fields) -> Redis {
    let redis = Redis::read(&mut fields);
    let has_no_tls = !fields.is_wrong("url") && !redis.url.is_encrypted();
    if let Some(node) = fields.peek("ca").filter(|_| has_no_tls) {
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
        Self::read_all(Fields::absent(Self::TABLE, &report))
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

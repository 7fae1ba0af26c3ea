//! Kinds of values that several tables of the file use, such as a duration or a size.
//!
//! A [`Kind`] has the form of a value for the JSON Schema, its reader, and the function that shows
//! it. The reader reports a wrong value, and then returns `None`. A field is made of a kind and its
//! default, as in `TIMEOUT.with_default("\"5s\"")`: see `table_settings`.

#![expect(
    clippy::unnecessary_wraps,
    reason = "`Kind::show` returns `None` for a value that is not written"
)]

use std::fmt::Display;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use limit::{Rate, show_duration};

use super::values;
use crate::node::Node;
use crate::schema::{Form, NETWORK_FORM, NOT_EMPTY_FORM, SIZE_FORM};
use crate::size::show_size;
use crate::table_settings::{Kind, Rows, Shown};
use crate::toml_string::{toml_list, toml_table, toml_text};

/// Shows a text in quotes.
pub(crate) fn show_text<T: Display + ?Sized>(text: &T) -> Option<Shown> {
    Some(Shown::Value(toml_text(&text.to_string())))
}

/// Shows a value that TOML writes without quotes.
pub(crate) fn show_bare<T: Display + ?Sized>(value: &T) -> Option<Shown> {
    Some(Shown::Value(value.to_string()))
}

/// Shows an inner table on one line.
pub(crate) fn show_inline(rows: Rows) -> Option<Shown> {
    show_bare(&inline_table(rows))
}

/// Returns an inner table as TOML on one line. Its own inner tables and comments are omitted.
pub(crate) fn inline_table(rows: Rows) -> String {
    toml_table(rows.into_iter().filter_map(|(name, shown)| match shown {
        Shown::Value(value) => Some((name, value)),
        Shown::Table(_) | Shown::Comment(_) => None,
    }))
}

/// Shows one text, or a list of texts; nothing if there are none.
pub(crate) fn show_one_or_texts<T: Display>(items: &[T]) -> Option<Shown> {
    match items {
        [] => None,
        [item] => show_text(item),
        items => show_texts(items),
    }
}

/// Shows a list of texts.
pub(crate) fn show_texts<T: Display>(items: &[T]) -> Option<Shown> {
    let items = items.iter().map(|item| toml_text(&item.to_string()));
    show_bare(&toml_list(items))
}

/// Any text in quotes.
pub(crate) const TEXT: Kind<String> = Kind {
    form: Form::Text,
    read: |node| values::text(node).map(str::to_owned),
    show: show_text,
};

/// Absolute path of a file.
pub(crate) const FILE_NAME: Kind<PathBuf> = Kind {
    form: NOT_EMPTY_FORM,
    read: |node| values::file(node, "the name of a file such as \"drip.state\""),
    show: |it| show_text(&it.display()),
};

/// `true` or `false`.
pub(crate) const BOOLEAN: Kind<bool> = Kind {
    form: Form::Boolean,
    read: values::boolean,
    show: show_bare,
};

/// Duration; zero is allowed.
pub(crate) const DURATION: Kind<Duration> = Kind {
    form: Form::Regex("0|[0-9]+(d|h|m|s|ms|us|ns)"),
    read: values::duration,
    show: |it| show_text(&show_duration(*it)),
};

/// A second in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// An hour in nanoseconds.
pub(crate) const HOUR: u64 = 3600 * SECOND;

/// Duration from `MIN` to `MAX`, both in nanoseconds and included.
pub(crate) const fn duration<const MIN: u64, const MAX: u64>() -> Kind<Duration> {
    Kind {
        read: |node| {
            let (min, max) = (Duration::from_nanos(MIN), Duration::from_nanos(MAX));
            let in_range = Some(values::duration(node)?).filter(|it| (min..=max).contains(it));
            let (min, max) = (show_duration(min), show_duration(max));
            in_range.or_else(|| node.report_expected(&format!("a duration from {min} to {max}")))
        },
        ..DURATION
    }
}

/// Duration above zero.
pub(crate) const TIMEOUT: Kind<Duration> = Kind {
    form: Form::Regex("0*[1-9][0-9]*(d|h|m|s|ms|us|ns)"),
    read: values::timeout,
    ..DURATION
};

/// Duration above zero, or `"none"`.
pub(crate) const TIMEOUT_OR_NONE: Kind<Option<Duration>> = Kind {
    form: Form::Regex("none|0*[1-9][0-9]*(d|h|m|s|ms|us|ns)"),
    read: |node| values::none_or(node, values::timeout),
    ..DURATION_OR_NONE
};

/// Duration, or `"none"`. Zero is a duration.
pub(crate) const DURATION_OR_NONE: Kind<Option<Duration>> = Kind {
    form: Form::Regex("none|0|[0-9]+(d|h|m|s|ms|us|ns)"),
    read: |node| values::none_or(node, values::duration),
    show: |it| show_text(&it.map_or("none".to_owned(), show_duration)),
};

/// Rate; `"none"` is [`Rate::UNLIMITED`].
pub(crate) const RATE: Kind<Rate> = Kind {
    form: Form::Regex("none|[0-9]+([.][0-9]+)?r/([smhd]|[0-9]+(d|h|m|s|ms|us|ns))"),
    read: values::rate_or_unlimited,
    show: show_text,
};

/// Rate; `"none"` is `None`.
pub(crate) const RATE_OR_NONE: Kind<Option<Rate>> = Kind {
    form: RATE.form,
    read: |node| Some(Some((RATE.read)(node)?).filter(|rate| !rate.is_unlimited())),
    show: |it| show_text(&it.unwrap_or(Rate::UNLIMITED)),
};

/// Size in bytes; 0 is `None`.
pub(crate) const SIZE_OR_ZERO: Kind<Option<NonZeroU64>> = Kind {
    form: SIZE_FORM,
    read: |node| values::size(node).map(NonZeroU64::new),
    show: |it| show_text(&show_size(it.map_or(0, NonZeroU64::get))),
};

/// Size from `MIN` to `MAX` bytes, both included.
pub(crate) const fn size<N, const MIN: u64, const MAX: u64>() -> Kind<N>
where
    N: Copy + TryFrom<u64> + TryInto<u64>,
{
    Kind {
        form: SIZE_FORM,
        read: |node| {
            let bytes = Some(values::size(node)?).filter(|it| (MIN..=MAX).contains(it));
            let in_range = bytes.and_then(|bytes| N::try_from(bytes).ok());
            let (min, max) = (show_size(MIN), show_size(MAX));
            in_range.or_else(|| node.report_expected(&format!("a size from {min} to {max}")))
        },
        show: |it| show_text(&show_size((*it).try_into().unwrap_or_default())),
    }
}

/// Size in bytes; never zero.
pub(crate) const SIZE_ABOVE_ZERO: Kind<NonZeroU64> = Kind {
    form: SIZE_FORM,
    read: |node| {
        NonZeroU64::new(values::size(node)?).or_else(|| node.report_expected("a size above 0"))
    },
    show: |it| show_text(&show_size(it.get())),
};

/// Maximum size of a message's head, in bytes.
pub(crate) const HEAD_SIZE: Kind<usize> = size::<_, 1024, { 1 << 20 }>();

/// List of networks and single addresses.
pub(crate) const NETWORKS: Kind<Vec<IpNet>> = Kind {
    form: Form::UniqueList(&NETWORK_FORM, 0),
    read: |node| {
        let network = |item: Node| values::parse_as(item, values::NETWORK);
        values::list(node, "[\"192.0.2.0/24\"]", network)
    },
    show: |it| show_texts(it),
};

/// Maximum of most numbers, as an argument of [`whole`].
pub(crate) const U32: u64 = u32::MAX as u64;

/// Whole number from `MIN` to `MAX`, both included.
pub(crate) const fn whole<N, const MIN: u64, const MAX: u64>() -> Kind<N>
where
    N: FromStr + Display,
{
    Kind {
        form: Form::Whole(MIN, MAX),
        // Every integer type can be parsed from digits, the `NonZero` types too.
        read: |node| values::whole(node, MIN..=MAX)?.to_string().parse().ok(),
        show: show_bare,
    }
}

/// Whole number up to `MAX`; 0 is `None`.
pub(crate) const fn whole_or_zero<N, const MAX: u64>() -> Kind<Option<N>>
where
    N: FromStr + Display,
{
    Kind {
        form: Form::Whole(0, MAX),
        read: |node| Some(values::whole(node, 0..=MAX)?.to_string().parse().ok()),
        show: |it| it.as_ref().map_or(show_bare(&0), show_bare),
    }
}

/// A type whose values have a word each, in the file or in texts.
pub trait Words: Copy + PartialEq + 'static {
    /// All words, each with its value.
    const WORDS: &'static [(&'static str, Self)];

    /// Returns all words, in the order of messages.
    fn all() -> Vec<&'static str> {
        Self::WORDS.iter().map(|(word, _)| *word).collect()
    }

    /// Returns the word of a value.
    fn word(self) -> &'static str {
        let named = Self::WORDS.iter().find(|(_, value)| *value == self);
        named.map_or("", |(word, _)| word)
    }
}

/// Makes an enum whose variants have a word each, and implements [`Words`] for it.
///
/// `words!(Type)` implements [`Words`] for a type of another crate that has its words in the
/// constant `NAMED`.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident {
            $( $(#[$word_meta:meta])* $Word:ident = $word:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Name {
            $( $(#[$word_meta])* $Word, )+
        }

        impl $crate::tables::kinds::Words for $Name {
            const WORDS: &'static [(&'static str, Self)] = &[$( ($word, Self::$Word) ),+];
        }
    };
    ($($Type:ty),*) => { $(
        impl $crate::tables::kinds::Words for $Type {
            const WORDS: &'static [(&'static str, Self)] = &Self::NAMED;
        }
    )* };
}
pub(crate) use words;

/// One of the words of a type.
pub(crate) const fn word<W: Words>() -> Kind<W> {
    Kind {
        form: Form::Word(W::all),
        read: |node| values::choice(node, W::WORDS),
        show: |it| show_text(it.word()),
    }
}

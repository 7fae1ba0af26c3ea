//! Kinds of values that several tables use.

#![expect(
    clippy::unnecessary_wraps,
    reason = "a kind shows a value that is there or not"
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
use crate::schema::{
    DURATION_FORM, DURATION_OR_NONE_FORM, Form, NETWORK_FORM, NOT_EMPTY_FORM, RATE_FORM, SIZE_FORM,
    TIMEOUT_FORM, TIMEOUT_OR_NONE_FORM,
};
use crate::size::show_size;
use crate::table_settings::{Kind, Rows, Shown, kind};
use crate::toml_string::{toml_list, toml_table, toml_text};

/// Shows a text in quotes.
pub(crate) fn shown<T: Display + ?Sized>(text: &T) -> Option<Shown> {
    Some(Shown::Value(toml_text(&text.to_string())))
}

/// Shows a value that TOML writes without quotes.
pub(crate) fn bare<T: Display + ?Sized>(value: &T) -> Option<Shown> {
    Some(Shown::Value(value.to_string()))
}

/// Shows a table on one line.
pub(crate) fn inline(rows: Rows) -> Option<Shown> {
    bare(&inline_text(rows))
}

/// Returns the text of a table on one line.
pub(crate) fn inline_text(rows: Rows) -> String {
    toml_table(rows.into_iter().filter_map(|(name, shown)| match shown {
        Shown::Value(value) => Some((name, value)),
        Shown::Table(_) | Shown::Comment(_) => None,
    }))
}

/// Shows one text, or a list of texts; nothing if there are none.
pub(crate) fn one_or_texts<T: Display>(items: &[T]) -> Option<Shown> {
    match items {
        [] => None,
        [item] => shown(item),
        items => texts(items),
    }
}

/// Shows a list of texts.
pub(crate) fn texts<T: Display>(items: &[T]) -> Option<Shown> {
    let items = items.iter().map(|item| toml_text(&item.to_string()));
    bare(&toml_list(items))
}

pub(crate) const TEXT: Kind<String> = kind(
    Form::Text,
    |node| values::text(node).map(str::to_owned),
    shown,
);

/// Absolute path of a file.
pub(crate) const FILE_NAME: Kind<PathBuf> = kind(
    NOT_EMPTY_FORM,
    |node| values::file(node, "the name of a file such as \"drip.state\""),
    |it| shown(&it.display()),
);

pub(crate) const BOOLEAN: Kind<bool> = kind(Form::Boolean, values::boolean, bare);

pub(crate) const DURATION: Kind<Duration> = kind(DURATION_FORM, values::duration, |it| {
    shown(&show_duration(*it))
});

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const HOUR: u64 = 3600 * SECOND;

/// Duration in a range, in nanoseconds.
pub(crate) const fn duration<const MIN: u64, const MAX: u64>() -> Kind<Duration> {
    Kind {
        read: |node| {
            let (min, max) = (Duration::from_nanos(MIN), Duration::from_nanos(MAX));
            let in_range = Some(values::duration(node)?).filter(|it| (min..=max).contains(it));
            let (min, max) = (show_duration(min), show_duration(max));
            in_range.or_else(|| node.expected(&format!("a duration from {min} to {max}")))
        },
        ..DURATION
    }
}

pub(crate) const TIMEOUT: Kind<Duration> = Kind {
    form: TIMEOUT_FORM,
    read: values::timeout,
    ..DURATION
};

pub(crate) const TIMEOUT_OR_NONE: Kind<Option<Duration>> = Kind {
    form: TIMEOUT_OR_NONE_FORM,
    read: |node| values::none_or(node, values::timeout),
    ..DURATION_OR_NONE
};

pub(crate) const DURATION_OR_NONE: Kind<Option<Duration>> = kind(
    DURATION_OR_NONE_FORM,
    |node| values::none_or(node, values::duration),
    |it| shown(&it.map_or("none".to_owned(), show_duration)),
);

/// Rate; `"none"` is [`Rate::UNLIMITED`].
pub(crate) const RATE: Kind<Rate> = kind(RATE_FORM, values::rate_or_unlimited, shown);

pub(crate) const RATE_OR_NONE: Kind<Option<Rate>> = kind(
    RATE_FORM,
    |node| Some(Some((RATE.read)(node)?).filter(|rate| !rate.is_unlimited())),
    |it| shown(&it.unwrap_or(Rate::UNLIMITED)),
);

/// Size; 0 stands for none.
pub(crate) const SIZE_OR_ZERO: Kind<Option<NonZeroU64>> = kind(
    SIZE_FORM,
    |node| values::size(node).map(NonZeroU64::new),
    |it| shown(&show_size(it.map_or(0, NonZeroU64::get))),
);

/// Size in a range, in bytes.
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
            in_range.or_else(|| node.expected(&format!("a size from {min} to {max}")))
        },
        show: |it| shown(&show_size((*it).try_into().unwrap_or_default())),
    }
}

/// Size that is never zero.
pub(crate) const SIZE_ABOVE_ZERO: Kind<NonZeroU64> = kind(
    SIZE_FORM,
    |node| NonZeroU64::new(values::size(node)?).or_else(|| node.expected("a size above 0")),
    |it| shown(&show_size(it.get())),
);

/// Maximum size of a message's head, in bytes.
pub(crate) const HEAD_SIZE: Kind<usize> = size::<_, 1024, { 1 << 20 }>();

pub(crate) const NETWORKS: Kind<Vec<IpNet>> = kind(
    Form::UniqueList(&NETWORK_FORM, 0),
    |node| {
        let network = |item: Node| values::pattern(item, values::NETWORK);
        values::list(node, "[\"192.0.2.0/24\"]", network)
    },
    |it| texts(it),
);

/// Maximum of most numbers.
pub(crate) const U32: u64 = u32::MAX as u64;

/// Whole number in a range.
pub(crate) const fn whole<N, const MIN: u64, const MAX: u64>() -> Kind<N>
where
    N: FromStr + Display,
{
    Kind {
        form: Form::Whole(MIN, MAX),
        // Every integer type can be parsed from digits, the `NonZero` types too.
        read: |node| values::whole(node, MIN..=MAX)?.to_string().parse().ok(),
        show: bare,
    }
}

/// Whole number up to `MAX`; 0 stands for none.
pub(crate) const fn whole_or_zero<N, const MAX: u64>() -> Kind<Option<N>>
where
    N: FromStr + Display,
{
    Kind {
        form: Form::Whole(0, MAX),
        read: |node| Some(values::whole(node, 0..=MAX)?.to_string().parse().ok()),
        show: |it| it.as_ref().map_or(bare(&0), bare),
    }
}

/// Values that have a word each, in the file or in texts.
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

/// Makes an enum whose variants have a word each.
///
/// The second form lists the words of an enum that has `NAMED`.
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

pub(crate) const fn word<W: Words>() -> Kind<W> {
    Kind {
        form: Form::Word(W::all),
        read: |node| values::choice(node, W::WORDS),
        show: |it| shown(it.word()),
    }
}

use super::Table;

/// The form of a value.
#[derive(Debug)]
pub(super) enum Form {
    /// Any text.
    Text,
    /// A text that this regular expression matches as a whole, or one from the environment.
    Like(&'static str),
    /// A duration, from so many to so many nanoseconds.
    Duration(u64, u64),
    TimeoutOrNone,
    DurationOrNone,
    /// A time after which a TCP connection is probed.
    Keepalive,
    /// A size, from so many to so many bytes.
    Size(u64, u64),
    /// A text that this regular expression matches as a whole; never from the environment.
    Template(&'static str),
    /// One of these words.
    Word(&'static [&'static str]),
    Boolean,
    /// A whole number, from the first to the second.
    Whole(u64, u64),
    /// A list without duplicates; at least so many.
    List(&'static Form, usize),
    /// A list in which an item may be twice; at least so many.
    AnyList(&'static Form, usize),
    Table(&'static Table),
    /// Tables by names that the user chooses.
    Named(&'static Table),
    /// Values by names that the user chooses, from one to so many.
    ByName(&'static Form, usize),
    /// Values of header fields by their names; `false` removes one.
    HeaderFields,
    OneOf(&'static [Form]),
}

/// The longest duration of a file, 366 days, in nanoseconds.
pub(super) const MAX_DURATION: u64 = 366 * 86_400_000_000_000;

pub(super) const DURATION_FORM: Form = Form::Duration(0, MAX_DURATION);
/// A duration above zero.
pub(super) const TIMEOUT: Form = Form::Duration(1, MAX_DURATION);
pub(super) const TIMEOUT_OR_NONE: Form = Form::TimeoutOrNone;
pub(super) const DURATION_OR_NONE: Form = Form::DurationOrNone;
/// How long places are taken ahead.
pub(super) const LEASE: Form = Form::Duration(0, 1_000_000_000);
pub(super) const RATE_OR_NONE: Form = Form::Like(
    "none|([0-9]*[1-9][0-9]*([.][0-9]+)?|[0-9]+[.][0-9]*[1-9][0-9]*)r/([smhd]|0*[1-9][0-9]*(d|h|m|s|ms|us|ns))",
);
/// A size: a text with a unit, or bytes.
pub(super) const SIZE: Form = Form::Size(0, u64::MAX);
/// The size of a head of a message.
pub(super) const HEAD_SIZE: Form = Form::Size(1024, 1024 * 1024);
pub(super) const SIZE_ABOVE_ZERO: Form = Form::Size(1, u64::MAX);
/// Bytes over a span, or none.
pub(super) const BYTE_RATE: Form =
    Form::Like("0|[0-9]+(GB|MB|KB|B)/([smhd]|0*[1-9][0-9]*(d|h|m|s|ms|us|ns))");
pub(super) const PERCENT: Form = Form::Like(
    "0{0,6}100([.]0{1,4})?%|0{0,8}[1-9]([.][0-9]{1,4})?%|0{0,7}[1-9][0-9]([.][0-9]{1,4})?%|0{1,9}[.]([0-9]{0,3}[1-9]|[0-9]{0,2}[1-9]0|[0-9]?[1-9]00|[1-9]000)%",
);
pub(super) const NETWORK: Form = Form::Like(
    "((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(/(0?[0-9]|[12][0-9]|3[0-2]))?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(/(12[0-8]|1[01][0-9]|0?[0-9]{1,2}))?",
);
/// A network, or all programs that connect to a socket file.
pub(super) const PEER: Form = Form::Like(
    "unix:|((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(/(0?[0-9]|[12][0-9]|3[0-2]))?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(/(12[0-8]|1[01][0-9]|0?[0-9]{1,2}))?",
);
/// An address for clients.
pub(super) const ADDRESS: Form = Form::Like(
    "unix:.+|([0-9.]+|\\[[0-9a-fA-F:.%]+\\]):0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])",
);
/// A text that is not empty.
pub(super) const NOT_EMPTY: Form = Form::Like("(.|\\n)+");
pub(super) const HEADER_NAME: Form = Form::Like(TOKEN);
/// A name of a header field.
pub(super) const TOKEN: &str = "[0-9A-Za-z!#$%&'*+.^_`|~-]+";
/// A value of a header field.
pub(super) const HEADER_VALUE: &str = "[^\\u0000-\\u0020\\u007f]([^\\u0000-\\u0008\\u000a-\\u001f\\u007f]*[^\\u0000-\\u0020\\u007f])?";
/// What a request costs.
pub(super) const COST: Form = Form::Whole(1, 64);
/// A name of an origin, zone, plan or class.
pub(super) const NAME: &str = "[0-9A-Za-z_.-]+";

/// The names in a table of names and meanings.
pub(super) const fn words<T, const N: usize>(
    named: &'static [(&'static str, T); N],
) -> [&'static str; N] {
    let mut words = [""; N];
    let mut index = 0;
    while index < N {
        words[index] = named[index].0;
        index += 1;
    }
    words
}

use super::Table;

/// The form of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Any text.
    Text,
    /// A text that this regular expression matches as a whole, or one from the environment.
    Like(&'static str),
    /// A duration in a range, in nanoseconds.
    Duration(u64, u64),
    /// A text that this regular expression matches, or a duration in a range, in nanoseconds.
    DurationOr(&'static str, u64, u64),
    /// A size in a range, in bytes.
    Size(u64, u64),
    /// A text that this regular expression matches as a whole; never from the environment.
    Template(&'static str),
    /// One of these words.
    Word(fn() -> Vec<&'static str>),
    Boolean,
    /// A whole number, from the first to the second.
    Whole(u64, u64),
    /// A list without duplicates; at least so many.
    List(&'static Form, usize),
    /// A list in which an item may be twice; at least so many.
    AnyList(&'static Form, usize),
    Table(Table),
    /// Tables by names that the user chooses.
    Named(Table),
    /// Values by names that the user chooses, from one to so many.
    ByName(&'static Form, usize),
    /// Values by statuses of errors, such as `429` and `5xx`.
    ByStatus(&'static Form),
    /// Values of header fields by their names; `false` removes one.
    HeaderFields,
    /// Values of parts of a request by their names, such as `header:x-version`; at most so many.
    Conditions(usize),
    OneOf(&'static [Form]),
}

/// The shortest and the longest time after which a connection is probed, in nanoseconds: Linux counts
/// it in whole seconds, and accepts at most 32767 of them (tcp(7), `TCP_KEEPIDLE`).
pub(crate) const KEEPALIVE: (u64, u64) = (1_000_000_000, 9 * 3600 * 1_000_000_000);

/// The longest duration of a file, 366 days, in nanoseconds.
pub(crate) const MAX_DURATION: u64 = 366 * 86_400_000_000_000;

pub(crate) const DURATION_FORM: Form = Form::Duration(0, MAX_DURATION);
/// A duration above zero.
pub(crate) const TIMEOUT_FORM: Form = Form::Duration(1, MAX_DURATION);
pub(crate) const TIMEOUT_OR_NONE_FORM: Form = Form::DurationOr("none", 1, MAX_DURATION);
pub(crate) const DURATION_OR_NONE_FORM: Form = Form::DurationOr("none|0", 0, MAX_DURATION);
pub(crate) const RATE_FORM: Form = Form::Like(
    "none|([0-9]*[1-9][0-9]*([.][0-9]+)?|[0-9]+[.][0-9]*[1-9][0-9]*)r/([smhd]|0*[1-9][0-9]*(d|h|m|s|ms|us|ns))",
);
/// A size: a text with a unit, or bytes.
pub(crate) const SIZE_FORM: Form = Form::Size(0, u64::MAX);
pub(crate) const SIZE_ABOVE_ZERO_FORM: Form = Form::Size(1, u64::MAX);
/// Bytes over a span, or none.
pub(crate) const BYTE_RATE_FORM: Form =
    Form::Like("0|[0-9]+(GB|MB|KB|B)/([smhd]|0*[1-9][0-9]*(d|h|m|s|ms|us|ns))");
pub(crate) const PERCENT_FORM: Form = Form::Like(
    "0{0,6}100([.]0{1,4})?%|0{0,8}[1-9]([.][0-9]{1,4})?%|0{0,7}[1-9][0-9]([.][0-9]{1,4})?%|0{1,9}[.]([0-9]{0,3}[1-9]|[0-9]{0,2}[1-9]0|[0-9]?[1-9]00|[1-9]000)%",
);
pub(crate) const NETWORK_FORM: Form = Form::Like(
    "((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(/(0?[0-9]|[12][0-9]|3[0-2]))?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(/(12[0-8]|1[01][0-9]|0?[0-9]{1,2}))?",
);
/// A network, or all programs that connect to a socket file.
pub(crate) const PEER_FORM: Form = Form::Like(
    "unix:|((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(/(0?[0-9]|[12][0-9]|3[0-2]))?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(/(12[0-8]|1[01][0-9]|0?[0-9]{1,2}))?",
);
/// An address for clients.
pub(crate) const ADDRESS_FORM: Form = Form::Like(
    "unix:.+|([0-9.]+|\\[[0-9a-fA-F:.%]+\\]):0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])",
);
/// A text that is not empty.
pub(crate) const NOT_EMPTY_FORM: Form = Form::Like("(.|\\n)+");
pub(crate) const HEADER_NAME_FORM: Form = Form::Like(TOKEN);
/// A name of a header field.
pub(crate) const TOKEN: &str = "[0-9A-Za-z!#$%&'*+.^_`|~-]+";
/// A value of a header field.
pub(crate) const HEADER_VALUE: &str = "[^\\u0000-\\u0020\\u007f]([^\\u0000-\\u0008\\u000a-\\u001f\\u007f]*[^\\u0000-\\u0020\\u007f])?";
/// A name of an origin, zone, plan or class.
pub(crate) const NAME: &str = "[0-9A-Za-z_.-]+";

use super::Table;

/// The form of a value.
#[derive(Debug)]
pub(super) enum Form {
    /// Any text.
    Text,
    /// A text that this regular expression matches as a whole, or one from the environment.
    Like(&'static str),
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

/// A whole number and a unit; zero needs none.
const DURATION: &str = "0|[0-9]+(d|h|m|s|ms|us|ns)";

pub(super) const DURATION_FORM: Form = Form::Like(DURATION);
/// A duration above zero.
pub(super) const TIMEOUT: Form = Form::Like("0*[1-9][0-9]*(d|h|m|s|ms|us|ns)");
pub(super) const TIMEOUT_OR_NONE: Form = Form::Like("none|0*[1-9][0-9]*(d|h|m|s|ms|us|ns)");
pub(super) const DURATION_OR_NONE: Form = Form::Like("none|0|[0-9]+(d|h|m|s|ms|us|ns)");
pub(super) const RATE_OR_NONE: Form = Form::Like(
    "none|([0-9]*[1-9][0-9]*([.][0-9]+)?|[0-9]+[.][0-9]*[1-9][0-9]*)r/([smhd]|0*[1-9][0-9]*(d|h|m|s|ms|us|ns))",
);
/// A size: a text with a unit, or bytes.
pub(super) const SIZE: Form =
    Form::OneOf(&[Form::Like("[0-9]+(GB|MB|KB|B)?"), Form::Whole(0, u64::MAX)]);
/// The size of a head of a message.
pub(super) const HEAD_SIZE: Form = Form::OneOf(&[
    Form::Like("[0-9]+(MB|KB|B)?"),
    Form::Whole(1024, 1024 * 1024),
]);
pub(super) const SIZE_ABOVE_ZERO: Form = Form::OneOf(&[
    Form::Like("0*[1-9][0-9]*(GB|MB|KB|B)?"),
    Form::Whole(1, u64::MAX),
]);
/// Bytes over a span, or none.
pub(super) const BYTE_RATE: Form =
    Form::Like("0|[0-9]+(GB|MB|KB|B)/([smhd]|0*[1-9][0-9]*(d|h|m|s|ms|us|ns))");
pub(super) const PERCENT: Form =
    Form::Like("([0-9]*[1-9][0-9]*([.][0-9]+)?|[0-9]+[.][0-9]*[1-9][0-9]*)%");
pub(super) const NETWORK: Form = Form::Like("[0-9a-fA-F:.]*[.:][0-9a-fA-F:.]*(/[0-9]{1,3})?");
/// A network, or all programs that connect to a socket file.
pub(super) const PEER: Form = Form::Like("unix:|[0-9a-fA-F:.]*[.:][0-9a-fA-F:.]*(/[0-9]{1,3})?");
/// An address for clients.
pub(super) const ADDRESS: Form = Form::Like("unix:.+|([0-9.]+|\\[[0-9a-fA-F:.%]+\\]):[0-9]+");
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

//! Forms of values, from which the JSON Schema is made.

use super::Table;

/// Form of a value.
///
/// A regular expression must match the whole text. A text with a variable of the environment always
/// fits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Any text.
    Text,
    /// A text that matches this regular expression.
    Like(&'static str),
    /// One of these words.
    Word(fn() -> Vec<&'static str>),
    /// Only `false`.
    False,
    Boolean,
    /// A whole number between two bounds, both included.
    Whole(u64, u64),
    /// A list without duplicates, with at least this many items.
    UniqueList(&'static Form, usize),
    /// A list with at least this many items.
    List(&'static Form, usize),
    Table(Table),
    /// A table of values. The names match this regular expression.
    ByName(&'static str, &'static Form),
    /// A table as in `ByName`, with a minimum and a maximum number of entries.
    BoundedByName(&'static str, &'static Form, [usize; 2]),
    OneOf(&'static [Form]),
}

/// A duration; zero is allowed.
pub(crate) const DURATION_FORM: Form = Form::Like("0|[0-9]+(d|h|m|s|ms|us|ns)");
/// A duration above zero.
pub(crate) const TIMEOUT_FORM: Form = Form::Like("0*[1-9][0-9]*(d|h|m|s|ms|us|ns)");
pub(crate) const TIMEOUT_OR_NONE_FORM: Form = Form::Like("none|0*[1-9][0-9]*(d|h|m|s|ms|us|ns)");
pub(crate) const DURATION_OR_NONE_FORM: Form = Form::Like("none|0|[0-9]+(d|h|m|s|ms|us|ns)");
pub(crate) const RATE_FORM: Form =
    Form::Like("none|[0-9]+([.][0-9]+)?r/([smhd]|[0-9]+(d|h|m|s|ms|us|ns))");
/// A size: a text with a unit, or a number of bytes.
pub(crate) const SIZE_FORM: Form =
    Form::OneOf(&[Form::Like("[0-9]+(GB|MB|KB|B)?"), Form::Whole(0, u64::MAX)]);
/// Bytes per duration; 0: no minimum.
pub(crate) const BYTE_RATE_FORM: Form =
    Form::Like("0|[0-9]+(GB|MB|KB|B)/([smhd]|[0-9]+(d|h|m|s|ms|us|ns))");
pub(crate) const PERCENT_FORM: Form = Form::Like("[0-9]+([.][0-9]{1,4})?%");
pub(crate) const NETWORK_FORM: Form = Form::Like("[0-9a-fA-F:.]+(/[0-9]{1,3})?");
/// A network, or all programs that connect to a Unix socket.
pub(crate) const PEER_FORM: Form = Form::Like("unix:|[0-9a-fA-F:.]+(/[0-9]{1,3})?");
/// An address for clients.
pub(crate) const ADDRESS_FORM: Form = Form::Like("unix:.+|([0-9.]+|\\[[0-9a-fA-F:.%]+\\]):[0-9]+");
/// A text that is not empty.
pub(crate) const NOT_EMPTY_FORM: Form = Form::Like("(.|\\n)+");
/// One text, or a list of texts that is not empty.
pub(crate) const ONE_OR_LIST_FORM: Form =
    Form::OneOf(&[NOT_EMPTY_FORM, Form::UniqueList(&NOT_EMPTY_FORM, 1)]);
pub(crate) const HEADER_NAME_FORM: Form = Form::Like(TOKEN);
/// Name of a header field.
pub(crate) const TOKEN: &str = "[0-9A-Za-z!#$%&'*+.^_`|~-]+";
/// Value of a header field.
pub(crate) const HEADER_VALUE: &str = "[^\\u0000-\\u0020\\u007f]([^\\u0000-\\u0008\\u000a-\\u001f\\u007f]*[^\\u0000-\\u0020\\u007f])?";
/// Name of an origin, zone, plan or class.
pub(crate) const NAME: &str = "[0-9A-Za-z_.-]+";

//! Forms of values: what the JSON Schema says about the type and the text of a value.
//!
//! `json` writes them as JSON Schema. The readers in `tables` check values in more detail.

use super::Table;

/// Form of a value.
///
/// A regular expression must match the whole text. A text with a variable of the environment, such
/// as `"${RATE}"`, fits every form of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Any text.
    Text,
    /// A text that matches this regular expression.
    Regex(&'static str),
    /// One of the words that the function returns.
    Word(fn() -> Vec<&'static str>),
    /// Only `false`.
    False,
    /// `true` or `false`.
    Boolean,
    /// A whole number between two bounds, both included.
    Whole(u64, u64),
    /// A list without duplicates, with at least this many items.
    UniqueList(&'static Form, usize),
    /// A list with at least this many items.
    List(&'static Form, usize),
    /// A table with a fixed set of fields.
    Table(Table),
    /// A table with names that users choose. The names match this regular expression, and each
    /// value has this form.
    ByName(&'static str, &'static Form),
    /// A table as in `ByName`, with a minimum and a maximum number of entries.
    BoundedByName(&'static str, &'static Form, [usize; 2]),
    /// A value that has at least one of these forms.
    OneOf(&'static [Form]),
}

/// A size: a text with a unit, or a number of bytes.
pub(crate) const SIZE_FORM: Form =
    Form::OneOf(&[Form::Regex("[0-9]+(GB|MB|KB|B)?"), Form::Whole(0, u64::MAX)]);
/// A network such as `10.0.0.0/8`, or a single address.
pub(crate) const NETWORK_FORM: Form = Form::Regex("[0-9a-fA-F:.]+(/[0-9]{1,3})?");
/// A network, or all programs that connect to a Unix socket.
pub(crate) const PEER_FORM: Form = Form::Regex("unix:|[0-9a-fA-F:.]+(/[0-9]{1,3})?");
/// A text that is not empty.
pub(crate) const NOT_EMPTY_FORM: Form = Form::Regex("(.|\\n)+");
/// One text, or a list of texts that is not empty.
pub(crate) const ONE_OR_LIST_FORM: Form =
    Form::OneOf(&[NOT_EMPTY_FORM, Form::UniqueList(&NOT_EMPTY_FORM, 1)]);
/// Name of a header field, or of a cookie.
pub(crate) const HEADER_NAME_FORM: Form = Form::Regex(TOKEN);
/// Regular expression of [`HEADER_NAME_FORM`]: a token (RFC 9110, section 5.6.2).
pub(crate) const TOKEN: &str = "[0-9A-Za-z!#$%&'*+.^_`|~-]+";
/// Regular expression of the value of a header field: no blanks around it, no control characters.
pub(crate) const HEADER_VALUE: &str = "[^\\u0000-\\u0020\\u007f]([^\\u0000-\\u0008\\u000a-\\u001f\\u007f]*[^\\u0000-\\u0020\\u007f])?";
/// Regular expression of the name of an origin, zone, plan or class.
pub(crate) const NAME: &str = "[0-9A-Za-z_.-]+";

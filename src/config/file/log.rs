use super::{Fields, values};
use crate::config::{Access, Format, Level, Log};

/// Reads `[log]`.
pub(super) fn read(mut fields: Fields) -> Log {
    let log = Log {
        level: fields.or("level", Level::Info, values::choice(&Level::NAMED)),
        format: fields.or("format", Format::Text, values::choice(&Format::NAMED)),
        access: fields.or("access", Access::Off, |node| match node.value.as_str() {
            None | Some("") => node.expected("\"off\", \"stdout\" or the name of a file"),
            Some("off") => Some(Access::Off),
            Some("stdout") => Some(Access::Stdout),
            Some(name) => Some(Access::File(node.in_folder(name))),
        }),
    };
    fields.finish();
    log
}

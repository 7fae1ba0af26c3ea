use super::scope::named;
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;

/// The directive that forwards the requests of a location: `proxy_pass` or `grpc_pass`.
#[derive(Clone, Copy)]
pub(super) struct Pass<'t> {
    directive: &'t Directive,
    is_grpc: bool,
    target: &'t str,
}

impl<'t> Pass<'t> {
    /// That of a block, without those in the blocks within it.
    pub(super) fn of(block: &'t [Directive]) -> Option<Self> {
        let all = [("proxy_pass", false), ("grpc_pass", true)];
        all.into_iter().find_map(|(name, is_grpc)| {
            let directive = named(block, name).next()?;
            Some(Self {
                directive,
                is_grpc,
                target: directive.arg(0),
            })
        })
    }

    /// Where the requests go, as it is written.
    pub(super) fn target(self) -> &'t str {
        self.target
    }

    /// The same to another target.
    pub(super) fn to<'o>(self, target: &'o str) -> Pass<'o>
    where
        't: 'o,
    {
        Pass { target, ..self }
    }

    /// The scheme that drip has for the target's, and the rest; `None` if it has none.
    pub(super) fn scheme(self) -> Option<(&'static str, &'t str)> {
        let (scheme, rest) = match self.target().split_once("://") {
            Some(split) => split,
            // nginx takes an address alone for one without TLS.
            None if self.is_grpc => ("grpc", self.target()),
            None => return None,
        };
        let scheme = match (scheme, self.is_grpc) {
            ("http", false) => "http",
            ("https", false) | ("grpcs", true) => "https",
            ("grpc", true) => "h2c",
            _ => return None,
        };
        Some((scheme, rest))
    }

    /// The name of a directive of the same module, such as `proxy_read_timeout` for
    /// `read_timeout`.
    pub(super) fn directive(self, name: &str) -> String {
        let module = if self.is_grpc { "grpc" } else { "proxy" };
        format!("{module}_{name}")
    }

    /// Notes something about it.
    pub(super) fn note(self, what: &str, notes: &mut Notes) {
        let Directive { name, place, .. } = self.directive;
        notes.add(*place, format!("{name} {}: {what}", self.directive.arg(0)));
    }
}

//! The blocks and the server around a directive, and the directives that it inherits from them.

use crate::import::tree::Directive;

/// The blocks around a directive, the outermost first. An inner block overrides an outer one.
#[derive(Clone, Default)]
pub(super) struct Scope<'t>(Vec<&'t [Directive<'t>]>);

impl<'t> Scope<'t> {
    /// Returns these blocks and `block` inside them.
    pub(super) fn inside(&self, block: &'t [Directive<'t>]) -> Self {
        let mut blocks = self.0.clone();
        blocks.push(block);
        Self(blocks)
    }

    /// Returns these blocks inside `block`, whose directives apply where no other block has them.
    pub(super) fn with_outermost(&self, block: &'t [Directive<'t>]) -> Self {
        let blocks = std::iter::once(block).chain(self.0.iter().copied());
        Self(blocks.collect())
    }

    /// Returns the directive of a name that applies here; the first one if there are several.
    pub(super) fn get(&self, name: &str) -> Option<&'t Directive<'t>> {
        self.all(name).first().copied()
    }

    /// Returns all directives of a name that apply here, for a directive that may be repeated.
    ///
    /// A block with at least one of them inherits none.
    pub(super) fn all(&self, name: &str) -> Vec<&'t Directive<'t>> {
        self.all_of(&[name])
    }

    /// Returns the directives that apply here, for names that are inherited together, in order.
    pub(super) fn all_of(&self, names: &[&str]) -> Vec<&'t Directive<'t>> {
        let is_named = |directive: &&Directive| names.contains(&&*directive.name);
        let mut by_block = self.0.iter().rev().map(|block| {
            let found = block.iter().filter(is_named);
            found.collect::<Vec<_>>()
        });
        let innermost = by_block.find(|found| !found.is_empty());
        innermost.unwrap_or_default()
    }
}

/// The server that contains the locations that are being translated.
#[derive(Clone, Copy)]
pub(super) struct EnclosingServer<'s> {
    /// Index of the server in the file.
    pub(super) index: usize,
    /// First name that is a single host.
    pub(super) host: Option<&'s str>,
    /// Whether the file has other servers.
    pub(super) has_others: bool,
    /// Whether nginx protects some requests of the server.
    pub(super) protects: bool,
    pub(super) block: &'s [Directive<'s>],
    pub(super) scope: &'s Scope<'s>,
    /// Path of the enclosing location, if any.
    pub(super) outer_path: Option<&'s str>,
}

/// Returns the directives of a block that have this name.
pub(super) fn named<'t, 'n>(
    block: &'t [Directive<'n>],
    name: &str,
) -> impl Iterator<Item = &'t Directive<'n>> {
    block.iter().filter(move |directive| directive.name == name)
}

/// Returns the directives of a name in `http`, its servers and their locations.
pub(super) fn everywhere<'t>(block: &'t [Directive<'t>], name: &str) -> Vec<&'t Directive<'t>> {
    let mut found = Vec::new();
    for directive in block {
        if directive.name == name {
            found.push(directive);
        }
        if ["server", "location"].contains(&&*directive.name) {
            found.extend(everywhere(directive.inside(), name));
        }
    }
    found
}

use super::Translation;
use super::pass::Pass;
use super::protection::Protection;
use super::scope::{Around, Scope, named};
use crate::tools::import::tree::Directive;

/// The named location to which `try_files` passes requests.
pub(super) struct Fallback<'t> {
    pub(super) name: String,
    pub(super) pass: Pass<'t>,
    pub(super) scope: Scope<'t>,
    pub(super) protection: Option<Protection>,
}

impl Translation<'_> {
    /// The named location at the end of `try_files`.
    pub(super) fn fallback<'t>(
        &mut self,
        block: &[Directive],
        scope: &Scope,
        around: Around<'t>,
    ) -> Option<Fallback<'t>> {
        let files = named(block, "try_files")
            .next()
            .or_else(|| scope.get("try_files"))?;
        let name = files.args.last().filter(|last| last.starts_with('@'))?;
        let mut named_locations = named(around.block, "location");
        let target = named_locations.find(|location| location.args.first() == Some(name))?;
        let inside = target.inside();
        let pass = Pass::of(inside)?;
        self.notes.add(
            files.place,
            format!("try_files: drip serves no files; all requests go to {name}"),
        );
        let scope = around.scope.inside(inside);
        Some(Fallback {
            name: name.clone(),
            pass,
            protection: Protection::of_location(inside, around.block, &scope),
            scope,
        })
    }
}

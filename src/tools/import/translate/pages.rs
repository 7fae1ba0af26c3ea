//! Translates `error_page` with a file to `pages` of routes.

use std::path::PathBuf;

use super::kind::{Kind, Mark, kind};
use super::page::Section;
use super::pass::Pass;
use super::protection::Protection;
use super::scope::{Around, Scope, named};
use super::{Translation, pcre};
use crate::config::toml_text;
use crate::tools::import::tree::Directive;

/// The pages of a route.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// The file for each status.
    files: Vec<(u16, String)>,
    /// Whether they also replace responses of the origin.
    of_origin: bool,
}

/// Statuses of an origin's responses that drip replaces.
const OF_ORIGIN: [u16; 3] = [502, 503, 504];

/// Directives by which something other than a file is sent, or another one.
const NO_FILES: [&str; 11] = [
    "proxy_pass",
    "grpc_pass",
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "memcached_pass",
    "return",
    "rewrite",
    "if",
    "try_files",
    "empty_gif",
];

impl Pages {
    /// Writes the fields of a route that forwards.
    pub(super) fn write(&self, section: &mut Section) {
        self.write_for(section, |_| true);
        if self.of_origin {
            section.fields.push(("origin_pages", "true".to_owned()));
        }
    }

    /// Writes the fields of a route that answers with this status.
    pub(super) fn write_for_status(&self, section: &mut Section, status: u16) {
        self.write_for(section, |known| known == status);
    }

    fn write_for(&self, section: &mut Section, is_used: impl Fn(u16) -> bool) {
        let used = self.files.iter().filter(|(status, _)| is_used(*status));
        let entry = |(status, file): &(u16, String)| format!("\"{status}\" = {}", toml_text(file));
        let entries: Vec<String> = used.map(entry).collect();
        if !entries.is_empty() {
            let pages = format!("{{ {} }}", entries.join(", "));
            section.fields.push(("pages", pages));
        }
    }
}

impl Translation<'_> {
    /// The pages of a location.
    pub(super) fn pages(&mut self, inside: &[Directive], scope: &Scope, around: Around) -> Pages {
        let mut pages = Pages::default();
        for directive in scope.all("error_page") {
            if let Err(why) = self.add_pages(directive, around, &mut pages) {
                self.notes.add(directive.place, format!("error_page {} is not translated: {why}; drip has pages on a route, which name files", directive.args.join(" ")));
            }
        }
        let intercepts = Pass::of(inside).map_or_else(
            || "proxy_intercept_errors".to_owned(),
            |pass| pass.directive("intercept_errors"),
        );
        let intercepts = scope.get(&intercepts).filter(|it| it.arg(0) == "on");
        if let Some(intercepts) = intercepts.filter(|_| !pages.files.is_empty()) {
            let is_replaced = |(status, _): &(u16, String)| OF_ORIGIN.contains(status);
            pages.of_origin = pages.files.iter().any(is_replaced);
            if !pages.files.iter().all(is_replaced) {
                self.notes.add(intercepts.place, format!("{}: of the origin's responses drip replaces only those with 502, 503 and 504", intercepts.name));
            }
        }
        pages
    }

    fn add_pages(
        &mut self,
        directive: &Directive,
        around: Around,
        pages: &mut Pages,
    ) -> Result<(), String> {
        let (uri, codes) = directive.args.split_last().ok_or("it names no page")?;
        let (answer, codes) = match codes.split_last() {
            Some((last, codes)) if last.starts_with('=') => (Some(&last[1..]), codes),
            _ => (None, codes),
        };
        if answer.is_some_and(|answer| codes.iter().any(|code| code != answer)) {
            return Err("drip keeps the status".to_owned());
        }
        let statuses = codes.iter().map(|code| code.parse::<u16>().ok());
        let statuses: Option<Vec<u16>> = statuses.collect();
        let known = |statuses: &Vec<u16>| statuses.iter().all(|it| (400..600).contains(it));
        let statuses = statuses
            .filter(known)
            .ok_or("drip has pages for 400 to 599 only")?;
        let key = (around.server, uri.clone());
        let file = if let Some(known) = self.page_files.get(&key) {
            known.clone()
        } else {
            let found = self.page_file(uri, around);
            self.page_files.insert(key, found.clone());
            found
        }?;
        for status in statuses {
            // The first one of a status counts.
            if pages.files.iter().all(|(known, _)| *known != status) {
                pages.files.push((status, file.clone()));
            }
        }
        Ok(())
    }

    /// The file that the server sends for a URI.
    fn page_file(&self, uri: &str, around: Around) -> Result<String, String> {
        if !uri.starts_with('/') || uri.contains(['$', '?', '#', '%']) {
            return Err("it goes to no file".to_owned());
        }
        let server = around.block;
        if ["return", "rewrite", "if"]
            .iter()
            .any(|name| named(server, name).next().is_some())
        {
            return Err(format!(
                "what the server does before its locations may concern {uri}"
            ));
        }
        let found = location(uri, server)?;
        let inside = found
            .as_ref()
            .map_or(&[][..], |(directive, _)| directive.inside());
        let scope = around.scope.inside(inside);
        if inside.iter().any(|it| NO_FILES.contains(&&*it.name)) || scope.get("try_files").is_some()
        {
            return Err(format!("the location of {uri} does not just send a file"));
        }
        if let Some(protection) = Protection::inherited(&scope) {
            return Err(format!("{} protects {uri}", protection.by()));
        }
        let file = match (scope.get("alias"), found) {
            (Some(alias), Some((_, Some(path)))) => {
                format!("{}{}", alias.arg(0), &uri[path.len()..])
            }
            (Some(_), _) => return Err(format!("the alias of {uri} is not that of a path")),
            (None, _) => {
                let root = scope
                    .get("root")
                    .ok_or(format!("there is no root for {uri}"))?;
                format!("{}{uri}", root.arg(0).trim_end_matches('/'))
            }
        };
        if file.contains('$') {
            return Err("the name of its file has variables".to_owned());
        }
        let path = self.folder.join(PathBuf::from(file));
        let path = std::path::absolute(&path).unwrap_or(path);
        let file = path.display().to_string();
        match self.files.page(&path) {
            Ok(()) => Ok(file),
            Err(why) => Err(format!("its file {file} cannot be used here: {why}")),
        }
    }
}

/// A location and its path; `None` of a regular expression.
type Found<'t> = (&'t Directive, Option<&'t str>);

/// The location of a server's URI; `None` if it has none.
fn location<'t>(uri: &str, server: &'t [Directive]) -> Result<Option<Found<'t>>, String> {
    let mut best: Option<(&Directive, Mark, &str)> = None;
    for directive in named(server, "location") {
        if let Kind::Path { mark, path } = kind(&directive.args) {
            let fits = match mark {
                Mark::Exact if path == uri => return Ok(Some((directive, Some(path)))),
                Mark::Exact => false,
                Mark::None | Mark::Stops => uri.starts_with(path),
            };
            if fits && best.is_none_or(|(_, _, known)| known.len() < path.len()) {
                best = Some((directive, mark, path));
            }
        }
    }
    let is_nested = |it: &Directive| named(it.inside(), "location").next().is_some();
    if best.is_some_and(|(directive, ..)| is_nested(directive)) {
        return Err(format!("the location of {uri} has others within"));
    }
    if best.is_none_or(|(_, mark, _)| mark != Mark::Stops) {
        for directive in named(server, "location") {
            let Kind::Regex {
                pattern,
                ignores_case,
            } = kind(&directive.args)
            else {
                continue;
            };
            let translated = pcre::translate(pattern, ignores_case);
            let unknown = || {
                format!(
                    "it is not known whether {uri} is of location {}",
                    directive.args.join(" ")
                )
            };
            let translated = translated.ok_or_else(unknown)?;
            if pcre::matches(&translated.text, uri) {
                if !translated.is_exact || is_nested(directive) {
                    return Err(unknown());
                }
                return Ok(Some((directive, None)));
            }
        }
    }
    Ok(best.map(|(directive, _, path)| (directive, Some(path))))
}

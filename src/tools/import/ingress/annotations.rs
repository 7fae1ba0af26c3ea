//! Reads the annotations of a Kubernetes Ingress.
//!
//! Remembers which of them were read, so that all others can be noted as not translated.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Display;

use super::yaml::Node;
use crate::import::notes::SourceLocation;
use crate::import::values;

/// Prefix of the names of ingress-nginx's annotations.
const PREFIX: &str = "nginx.ingress.kubernetes.io/";

/// The ingress-nginx annotations of one Ingress. They are named without the prefix.
pub(super) struct Annotations<'n> {
    /// Name of the Ingress in notes, such as `shop/web`.
    ingress_name: String,
    /// All of them, in the order of the manifest.
    pub(super) all: Vec<Annotation<'n>>,
    /// Names that were read or noted. All other annotations are noted at the end.
    read: RefCell<HashSet<String>>,
}

/// One annotation.
#[derive(Clone, Debug)]
pub(super) struct Annotation<'n> {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) at: SourceLocation<'n>,
}

impl<'n> Annotations<'n> {
    /// Reads the annotations of an Ingress. `start`: a location in its file.
    pub(super) fn read(
        ingress_name: String,
        metadata: Option<&Node>,
        start: SourceLocation<'n>,
    ) -> Self {
        let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
        let entries = annotations.map_or(&[][..], Node::entries).iter();
        let all = entries.filter_map(|(name, node)| {
            let name = name.strip_prefix(PREFIX)?;
            Some(Annotation {
                name: name.to_owned(),
                value: node.text().unwrap_or_default().trim().to_owned(),
                at: start.at_line(node.line),
            })
        });
        Self {
            ingress_name,
            all: all.collect(),
            read: RefCell::default(),
        }
    }

    /// Returns the first annotation that exists under one of these names. All names count as read.
    pub(super) fn any(&self, names: &[&str]) -> Option<&Annotation<'n>> {
        for name in names {
            self.read.borrow_mut().insert((*name).to_owned());
        }
        let find = |name: &&str| self.all.iter().find(|known| known.name == **name);
        names.iter().find_map(find)
    }

    /// Returns the annotation of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Annotation<'n>> {
        self.any(&[name])
    }

    /// Returns a value that is `true` or `false`; `None` if it is absent or neither.
    ///
    /// Notes a value that is neither.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        let annotation = self.get(name)?;
        // Accepts the same words as Go's strconv.ParseBool.
        match &*annotation.value {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
            other => {
                let what = format!("\"{other}\" is neither true nor false; the default is used");
                self.note(annotation, what);
                None
            }
        }
    }

    /// Returns a whole number; `None` if it is absent. Notes a wrong value.
    pub(super) fn whole(&self, name: &str) -> Option<u32> {
        let annotation = self.get(name)?;
        let number = values::whole(&annotation.value);
        if number.is_none() {
            let what = format!(
                "\"{}\" is not a whole number; it is left out",
                annotation.value
            );
            self.note(annotation, what);
        }
        number
    }

    /// Notes the annotations that nothing has read.
    pub(super) fn note_unread(&self) {
        for annotation in &self.all {
            if !self.read.borrow().contains(&annotation.name) {
                self.note(annotation, "not translated");
            }
        }
    }

    /// Adds a note about an annotation.
    pub(super) fn note(&self, annotation: &Annotation, what: impl Display) {
        self.read.borrow_mut().insert(annotation.name.clone());
        annotation.at.note(self.message(annotation, what));
    }

    /// Counts a lost limit, and notes its annotation.
    pub(super) fn lose(&self, annotation: &Annotation, what: impl Display) {
        annotation.at.lose(self.message(annotation, what));
    }

    /// Returns the text of a note.
    fn message(&self, annotation: &Annotation, what: impl Display) -> String {
        format!("Ingress {}, {}: {what}", self.ingress_name, annotation.name)
    }
}

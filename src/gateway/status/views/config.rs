use config;
use serde::{Deserialize, Serialize};

use super::Plain;

/// One error in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// The included file that it is in; `None`: the file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Plain>,
    /// From 1; `None` if it is of no line.
    pub line: Option<u64>,
    /// From 1, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// What is wrong, and what would be right.
    pub message: Plain,
}

impl From<config::Problem> for Problem {
    fn from(problem: config::Problem) -> Self {
        let file = problem.file.as_ref();
        Self {
            file: file.map(|file| Plain::new(&file.display().to_string())),
            line: (problem.line > 0).then_some(problem.line as u64),
            column: (problem.column > 0).then_some(problem.column as u64),
            message: Plain::new(&problem.message),
        }
    }
}

impl Problem {
    /// Where it is: `line 3`, or `conf.d/a.toml, line 3`; empty if it has no place.
    pub fn place(&self) -> String {
        let file = self.file.as_ref().map(ToString::to_string);
        let line = self.line.map(|line| format!("line {line}"));
        let parts: Vec<String> = file.into_iter().chain(line).collect();
        parts.join(", ")
    }
}

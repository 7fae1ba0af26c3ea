//! The cases of the suite: an answer, two requests, and whether the second may have it.

mod lifetimes;
mod requests;

use crate::support::scripted::Script;

/// Whether RFC 9111 lets a shared cache give the answer to the second request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Allowed,
    Forbidden,
}

/// The method of a request, and its fields, each with the end of its line.
pub type Request = (&'static str, &'static str);

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    pub rule: Rule,
    pub script: Script,
    pub first: Request,
    /// A request of this method comes between.
    pub between: Option<&'static str>,
    pub second: Request,
}

impl Case {
    const fn status(mut self, status: u16) -> Self {
        self.script.status = status;
        self
    }

    const fn asks(mut self, first: &'static str, second: &'static str) -> Self {
        (self.first.1, self.second.1) = (first, second);
        self
    }

    const fn methods(mut self, first: &'static str, second: &'static str) -> Self {
        (self.first.0, self.second.0) = (first, second);
        self
    }
}

const fn case(rule: Rule, name: &'static str, fields: &'static str) -> Case {
    Case {
        name,
        rule,
        script: Script {
            status: 200,
            fields,
        },
        first: ("GET", ""),
        between: None,
        second: ("GET", ""),
    }
}

/// The second request may have the answer.
const fn may(name: &'static str, fields: &'static str) -> Case {
    case(Rule::Allowed, name, fields)
}

/// It may not.
const fn no(name: &'static str, fields: &'static str) -> Case {
    case(Rule::Forbidden, name, fields)
}

/// All cases, each with a name of its own.
pub fn cases() -> Vec<Case> {
    [
        lifetimes::lifetimes(),
        lifetimes::spellings(),
        lifetimes::directives(),
        lifetimes::expires(),
        lifetimes::ages(),
        requests::statuses(),
        requests::vary(),
        requests::requests(),
    ]
    .concat()
}

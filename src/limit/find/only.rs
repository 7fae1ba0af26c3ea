use std::fmt;
use std::str::FromStr;

/// Which requests an experiment measures: those of a class or of a route.
///
/// ```
/// use drip::limit::find::Only;
///
/// let only: Only = "class=interactive".parse()?;
/// assert!(only.takes("interactive", "/reports") && !only.takes("batch", "/reports"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Only {
    /// Those of a class at the gate.
    Class(Box<str>),
    /// Those of a route, by its name.
    Route(Box<str>),
}

impl Only {
    /// Whether a request of this class and this route is one of them.
    #[must_use]
    pub fn takes(&self, class: &str, route: &str) -> bool {
        match self {
            Self::Class(wanted) => **wanted == *class,
            Self::Route(wanted) => **wanted == *route,
        }
    }
}

impl FromStr for Only {
    type Err = String;

    /// Reads `class=interactive` or `route=/reports`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("class", name)) if !name.is_empty() => Ok(Self::Class(name.into())),
            Some(("route", name)) if !name.is_empty() => Ok(Self::Route(name.into())),
            _ => Err(
                "it must be a class or a route, such as class=interactive or route=/reports"
                    .to_owned(),
            ),
        }
    }
}

impl fmt::Display for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(name) => write!(f, "class={name}"),
            Self::Route(name) => write!(f, "route={name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_and_shown_as_written() {
        for text in ["class=interactive", "route=/a=b", "route=app.example/x"] {
            let only: Only = text.parse().unwrap();
            assert_eq!(only.to_string(), text);
        }
        for wrong in ["", "class", "class=", "interactive", "zone=a"] {
            assert!(wrong.parse::<Only>().is_err(), "{wrong}");
        }
    }
}

//! Regular expressions on bytes, with bounded time and memory.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};
use regex_automata::Input;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::syntax;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};

/// Regular expression on bytes, such as those of a path.
///
/// `.` is any byte except a line feed. `\d`, `\w` and `(?i)` apply to ASCII only.
#[derive(Clone)]
pub struct ByteRegex {
    /// Finds the groups of a match. It also keeps the text of the expression.
    compiled: Regex,
    /// Tests for a match. Shared, because settings are cloned.
    automaton: Arc<dense::DFA<Vec<u32>>>,
}

impl ByteRegex {
    /// Maximum length of an expression, in bytes.
    pub const MAX_LENGTH: usize = 1000;
    /// Maximum memory of a compiled expression, in bytes.
    pub const MAX_SIZE: usize = 256 << 10;
    /// Maximum memory of a compiled expression with groups, in bytes.
    ///
    /// Finding a group takes time proportional to this, multiplied by the length of the text.
    pub const MAX_SIZE_WITH_GROUPS: usize = 64 << 10;
    /// Maximum size of the automaton of an expression, in bytes.
    ///
    /// The automaton is built completely when the file is read. So matching reads each byte of a
    /// text once: 32 KB take a few ms. With an automaton that is built during matching, some texts
    /// of 32 KB would take a second.
    const MAX_AUTOMATON_SIZE: usize = 1 << 20;

    /// Compiles a regular expression.
    ///
    /// # Errors
    ///
    /// Returns an error if `text` is too long, has a syntax error, or is too large when compiled.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > Self::MAX_LENGTH {
            let max = Self::MAX_LENGTH;
            return Err(format!(
                "a regular expression has at most {max} bytes; write several routes"
            ));
        }
        let compiled = compile(text, Self::MAX_SIZE).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => format!(
                "this regular expression, compiled, takes more than {} KB; lower the counts in {{}} or write several routes",
                Self::MAX_SIZE >> 10
            ),
            error => format!("this is not a regular expression of drip: {}", reason(&error)),
        })?;
        if compiled.captures_len() > 1 && compile(text, Self::MAX_SIZE_WITH_GROUPS).is_err() {
            return Err(format!(
                "this regular expression with groups, compiled, takes more than {} KB; lower the counts in {{}}, or write (?:...) where no group is needed",
                Self::MAX_SIZE_WITH_GROUPS >> 10
            ));
        }
        let automaton = build_automaton(text).ok_or_else(|| {
            format!(
                "the automaton of this regular expression takes more than {} KB; begin it with ^, lower the counts in {{}} or write several routes",
                Self::MAX_AUTOMATON_SIZE >> 10
            )
        })?;
        let automaton = Arc::new(automaton);
        Ok(Self {
            compiled,
            automaton,
        })
    }

    /// Returns whether there is a match, in time proportional to the length of `bytes`.
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        let input = Input::new(bytes).earliest(true);
        let found = self.automaton.try_search_fwd(&input);
        // Only an automaton that quits at certain bytes can fail. This one never quits.
        found.map_or_else(|_| self.compiled.is_match(bytes), |found| found.is_some())
    }

    /// Returns the part of `bytes` that a group of the expression matches.
    ///
    /// Empty if there is no such group, or if the group is not part of the match. `group`: a name,
    /// or a number from 1.
    pub fn capture<'b>(&self, bytes: &'b [u8], group: &str) -> &'b [u8] {
        let found = self.compiled.captures(bytes).and_then(|captures| {
            let by_number = group.parse().ok().and_then(|number| captures.get(number));
            by_number.or_else(|| captures.name(group))
        });
        found.map_or(&[], |found| found.as_bytes())
    }

    /// Returns whether the expression begins with `^` and a literal that begins with this text.
    pub(super) fn begins_with(&self, text: &str) -> bool {
        let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
        let Ok(HirKind::Concat(parts)) = parser.parse(self.compiled.as_str()).map(Hir::into_kind)
        else {
            return false;
        };
        let mut kinds = parts.iter().map(Hir::kind);
        let has_anchor = kinds.next() == Some(&HirKind::Look(Look::Start));
        let Some(HirKind::Literal(literal)) = kinds.next() else {
            return false;
        };
        has_anchor && literal.0.starts_with(text.as_bytes())
    }
}

/// Compiles an expression. Fails if that takes more than `max_size` bytes.
fn compile(text: &str, max_size: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text)
        .unicode(false)
        .size_limit(max_size)
        .build()
}

/// Builds the automaton of an expression without syntax errors; `None`: it is too large.
fn build_automaton(text: &str) -> Option<dense::DFA<Vec<u32>>> {
    let limits = dense::Config::new()
        .start_kind(StartKind::Unanchored)
        .dfa_size_limit(Some(ByteRegex::MAX_AUTOMATON_SIZE))
        .determinize_size_limit(Some(4 * ByteRegex::MAX_AUTOMATON_SIZE));
    let states = thompson::Config::new()
        .utf8(false)
        .which_captures(WhichCaptures::None);
    dense::Builder::new()
        .configure(limits)
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .thompson(states)
        .build(text)
        .ok()
}

/// Returns the reason why an expression is wrong, for a message on one line.
///
/// It is the last line of the error. The other lines show the location.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

impl fmt::Debug for ByteRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ByteRegex")
            .field(&self.compiled.as_str())
            .finish()
    }
}

/// Compares the texts of the expressions.
impl PartialEq for ByteRegex {
    fn eq(&self, other: &Self) -> bool {
        self.compiled.as_str() == other.compiled.as_str()
    }
}

impl Eq for ByteRegex {}

impl Hash for ByteRegex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.compiled.as_str().hash(state);
    }
}

impl fmt::Display for ByteRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.compiled.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn invalid_or_too_large_expressions_are_refused() {
        let automaton = "the automaton of this regular expression takes more";
        for (text, reason) in [
            ("a(?=b)", "look-around"),
            ("(", "unclosed group"),
            (r"\p{L}", "not a regular expression"),
            (&*"a".repeat(1001), "at most 1000 bytes"),
            ("(a{500}){500}", "compiled, takes more than 256 KB"),
            ("[ab]*a[ab]{50}c", automaton),
            ("a[ab]{1000}", automaton),
            ("a.{20}b", automaton),
        ] {
            let message = ByteRegex::new(text).unwrap_err();
            assert!(message.contains(reason), "{text}: {message}");
        }
        for (text, is_accepted) in [
            ("^/([a-z]{0,60}[0-9]){1,20}$", false),
            ("^/(?:[a-z]{0,60}[0-9]){1,20}$", true),
            ("^/([a-z]{0,60}[0-9]){1,2}$", true),
        ] {
            let refused = ByteRegex::new(text).err();
            let reason = "with groups, compiled, takes";
            let is_refused = refused.is_some_and(|message| message.contains(reason));
            assert_eq!(is_refused, !is_accepted, "{text}");
            assert_eq!(ByteRegex::new(text).is_ok(), is_accepted, "{text}");
        }
        assert!(ByteRegex::new("^a[ab]{1000}").is_ok());
    }

    #[test]
    fn common_expressions_have_small_automatons() {
        let alphanumerics: String = ('!'..='~').filter(|c| c.is_alphanumeric()).collect();
        let long = format!("(?i){}", alphanumerics.repeat(16));
        let agents = "(?i)(googlebot|bingbot|yandexbot|duckduckbot|baiduspider|ahrefsbot|semrushbot|mj12bot|\
                      dotbot|petalbot|gptbot|ccbot|claudebot|bytespider|facebookexternalhit|twitterbot|curl|wget|\
                      python-requests|go-http-client|libwww-perl|scrapy|headlesschrome|phantomjs)";
        let queries = "(?i)(union.*select|insert.*into|drop.*table|etc.*passwd)";
        for text in [
            &*long,
            agents,
            queries,
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            r"(?i)\.(jpe?g|png|gif|css|js|woff2?|svg|php[0-9]?)$",
            r"^/(?<year>\d{4})/(?<month>\d{2})/[^/]{1,200}\.html$",
            r"^/api/v[0-9]+/users/(?<user>[^/]+)/orders/(?<order>[0-9]{1,20})(/.*)?$",
            "/a/.*/b/.*/c/.*/d",
            r"^/[\w\.-]+/[\w\.-]+/(info/refs|git-upload-pack|git-receive-pack)$",
        ] {
            assert_eq!(ByteRegex::new(text).err(), None, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_compared_in_a_few_milliseconds() {
        let paths = [b"a".repeat(32 << 10), b"abc0-/".repeat(32 << 10)];
        for text in [
            "^(?:(?:[a-z]{0,50}){0,20})*!",
            "^(?:a?){500}(a*)(a*)(a*)(a*)!",
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "a[a-z]{9}!",
        ] {
            let regex = ByteRegex::new(text).unwrap();
            for path in &paths {
                #[allow(clippy::disallowed_methods, reason = "the test measures the duration")]
                let durations = (0..2).map(|_| {
                    let start = Instant::now();
                    assert!(!regex.is_match(&path[..32 << 10]), "{text}");
                    start.elapsed()
                });
                // This must hold without optimizations and beside other tests. The crate `regex`
                // needs a second for the first text.
                let shortest = durations.min().unwrap_or_default();
                assert!(shortest.as_millis() < 100, "{text}: {shortest:?}");
            }
        }
    }

    #[test]
    fn the_automaton_finds_what_the_crate_finds() {
        for text in [
            "", "^$", "$", r"\bab\b", "^a|b$", "(?m)^a$", "(?s)a.b", "a.b", "(?i)AB", r"\xff",
            "[^a]", "a|ab|abc",
        ] {
            let regex = ByteRegex::new(text).unwrap();
            for bytes in [
                &b""[..],
                b"a",
                b"b",
                b"ab",
                b"abc",
                b"xab y",
                b"x\na\n",
                b"a\nb",
                b"\xff",
                b"AB",
                b"a\xffb",
            ] {
                let expected = regex.compiled.is_match(bytes);
                assert_eq!(regex.is_match(bytes), expected, "{text} {bytes:?}");
            }
        }
    }

    #[test]
    fn groups_have_names_and_numbers() {
        let regex = ByteRegex::new("^/u/(?<user>[0-9]+)(/x)?").unwrap();
        for (path, group, expected) in [
            ("/u/12/x", "user", "12"),
            ("/u/12/x", "1", "12"),
            ("/u/12/x", "2", "/x"),
            ("/u/12", "2", ""),
            ("/u/12", "3", ""),
            ("/u/12", "name", ""),
            ("/v/12", "user", ""),
        ] {
            let found = regex.capture(path.as_bytes(), group);
            assert_eq!(found, expected.as_bytes(), "{path} {group}");
        }
    }
}

//! Reads YAML into a tree whose nodes know their line numbers.
//!
//! Size and depth of the input are bounded. Aliases and merge keys are refused: kubectl writes
//! none.

use std::collections::HashSet;

use saphyr_parser::{Event, Parser, Span};

/// Maximum size of a text in bytes.
///
/// The parser keeps about 200 bytes for each comma of `[a,a,...`.
const MAX_SIZE: usize = 4 * 1024 * 1024;

/// Maximum nesting depth of lists and maps.
const MAX_DEPTH: usize = 64;

/// A value with its line number, starting at 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

/// The content of a node. Numbers and booleans are texts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// Reason why a text cannot be read, with the line number.
#[derive(Debug, PartialEq)]
pub(super) struct YamlError {
    pub(super) line: usize,
    pub(super) message: String,
}

impl Node {
    /// Returns the value at a key of a map.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let mut entries = self.entries().iter();
        entries.find_map(|(known, node)| (known == key).then_some(node))
    }

    /// Returns the text at a key of a map; `None` if it is absent, empty or not a text.
    pub(super) fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Node::text)
    }

    /// Returns the value as text; `None` if it is empty or not a text.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) if !text.is_empty() && text != "~" && text != "null" => Some(text),
            _ => None,
        }
    }

    /// Returns the keys and values of a map. Other values have none.
    pub(super) fn entries(&self) -> &[(String, Node)] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Text(_) | Value::List(_) => &[],
        }
    }

    /// Returns the items of a list. Other values have none.
    pub(super) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            Value::Text(_) | Value::Map(_) => &[],
        }
    }

    /// Returns the items of the list at a key of a map.
    pub(super) fn items_of(&self, key: &str) -> &[Node] {
        self.get(key).map_or(&[], Node::items)
    }
}

/// Parses the documents of a text.
pub(super) fn parse_documents(text: &str) -> Result<Vec<Node>, YamlError> {
    if text.len() > MAX_SIZE {
        return Err(YamlError {
            line: 1,
            message: format!("larger than {} MB; import it in parts", MAX_SIZE >> 20),
        });
    }
    let mut reader = Reader::default();
    let mut line = 1;
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| YamlError {
            line: error.marker().line(),
            message: format!("this is not YAML: {}", error.info()),
        })?;
        line = line.max(span.start.line());
        let taken = reader.take(event, span);
        taken.map_err(|message| YamlError { line, message })?;
    }
    Ok(reader.documents)
}

/// A list or map that is being read.
struct Open {
    node: Node,
    /// The key of the next value, in a map.
    key: Option<String>,
    /// The keys read so far, in a map.
    keys: HashSet<String>,
}

/// Builds nodes from the events of the parser.
#[derive(Default)]
struct Reader {
    /// The complete documents.
    documents: Vec<Node>,
    /// The lists and maps that are being read, the outermost first.
    open: Vec<Open>,
}

impl Reader {
    /// Takes the next event.
    fn take(&mut self, event: Event, span: Span) -> Result<(), String> {
        let line = span.start.line();
        match event {
            Event::Scalar(text, ..) => {
                let value = Value::Text(text.into_owned());
                self.add(Node { line, value })
            }
            Event::SequenceStart(..) => self.begin(Value::List(Vec::new()), line),
            Event::MappingStart(..) => self.begin(Value::Map(Vec::new()), line),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.add(open.node),
                None => Ok(()),
            },
            Event::Alias(_) => {
                Err("aliases (*) are not read; write out what they stand for".to_owned())
            }
            // Events at the start and end of documents.
            _ => Ok(()),
        }
    }

    /// Begins a list or a map.
    fn begin(&mut self, value: Value, line: usize) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("lists and maps are more than {MAX_DEPTH} deep"));
        }
        self.open.push(Open {
            node: Node { line, value },
            key: None,
            keys: HashSet::new(),
        });
        Ok(())
    }

    /// Adds a complete node to the innermost list or map, or to the documents.
    fn add(&mut self, node: Node) -> Result<(), String> {
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        match (&mut open.node.value, open.key.take()) {
            (Value::List(items), _) => items.push(node),
            (Value::Map(entries), Some(key)) => entries.push((key, node)),
            (Value::Map(_), None) => {
                let Value::Text(key) = node.value else {
                    return Err("a key is a list or a map; write a text".to_owned());
                };
                if key == "<<" {
                    return Err("merge keys (<<) are not read; write out what they add".to_owned());
                }
                if !open.keys.insert(key.clone()) {
                    return Err(format!("the key {key} is there twice; remove one"));
                }
                open.key = Some(key);
            }
            // A text has no children.
            (Value::Text(_), _) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_know_their_lines() {
        let text = "# a comment\na: 1\nb:\n  - x\n  - {c: 'd e'}\n---\n\nf: |\n  g\n  h\n";
        let documents = parse_documents(text).unwrap();
        assert_eq!(documents.len(), 2);
        let list = documents[0].get("b").unwrap();
        assert_eq!(documents[0].text_of("a"), Some("1"));
        let lines: Vec<usize> = list.items().iter().map(|item| item.line).collect();
        assert_eq!(lines, [4, 5]);
        assert_eq!(list.items()[1].text_of("c"), Some("d e"));
        assert_eq!(documents[1].text_of("f"), Some("g\nh\n"));
        assert_eq!(documents[1].line, 8);
    }

    #[test]
    fn an_error_has_its_line() {
        for (text, line, message) in [
            ("a: 1\nb: [", 3, "not YAML"),
            ("a: 1\na: 2\n", 2, "the key a is there twice"),
            ("a: 1\n? [b]\n: 2\n", 2, "a key is a list or a map"),
            ("a: 1\n<<: {b: 1}\n", 2, "merge keys"),
            ("a: &x 1\nb: *x\n", 2, "aliases"),
        ] {
            let error = parse_documents(text).unwrap_err();
            assert!(error.message.contains(message), "{text}: {error:?}");
            assert_eq!(error.line, line, "{text}: {error:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse_documents(&nested(MAX_DEPTH)).is_ok());
        for text in [
            nested(MAX_DEPTH + 1),
            "[".repeat(1_000_000),
            "{a: ".repeat(300_000),
            "- ".repeat(300_000),
        ] {
            let error = parse_documents(&text).unwrap_err();
            // The parser itself refuses some forms at its own depth limit.
            let mut limit_messages = ["64 deep", "recursion limit"].iter();
            let is_refused = limit_messages.any(|part| error.message.contains(part));
            assert!(is_refused, "{error:?}");
        }
    }

    #[test]
    fn size_is_bounded() {
        let error = parse_documents(&"#\n".repeat(MAX_SIZE)).unwrap_err();
        assert!(error.message.contains("larger than 4 MB"), "{error:?}");
    }
}

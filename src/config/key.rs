//! Key templates, such as `$remote_addr`: their variables, and how a text is parsed as one.
//!
//! The value of a template for a request is its key, which selects a bucket of a zone. Templates
//! are also the values of header fields that a route sets.

use std::fmt;
use std::str::FromStr;

/// Maximum length of a key in bytes, as in nginx. A longer key is truncated.
///
/// nginx does not limit a request with a longer key at all. Clients choose most of the text in
/// keys, so they could evade the limit that way.
pub const MAX_KEY_SIZE: usize = 65_535;

/// Template of a zone's key: text and nginx's variables. Each value has its own bucket.
///
/// Examples: `$remote_addr` and `$host:${http_x_api_key}`. A template without variables gives all
/// requests one bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyTemplate {
    parts: Vec<Part>,
}

/// One part of a [`KeyTemplate`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Literal text. It is never empty, and never next to another text.
    Text(String),
    /// Value taken from the request.
    Variable(Variable),
}

/// Value of a request, under nginx's name for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Variable {
    /// `$remote_addr`: the client's address, after trusted proxies.
    RemoteAddr,
    /// `$host`: the requested host, in lowercase and without its port.
    Host,
    /// `$uri`: the path, without the query.
    Uri,
    /// `$request_uri`: path and query as they were sent.
    RequestUri,
    /// `$request_method`: the method, such as `GET`.
    RequestMethod,
    /// `$scheme`: `http` or `https`.
    Scheme,
    /// `$server_port`: the port that the client connected to.
    ServerPort,
    /// `$ssl_client_verify`: `SUCCESS` with a client certificate, `NONE` without one.
    ///
    /// Empty without TLS.
    SslClientVerify,
    /// `$ssl_client_fingerprint`: SHA-256 of the client certificate, in hexadecimal.
    SslClientFingerprint,
    /// `$ssl_client_subject`: subject of the client certificate, in the format of RFC 4514.
    SslClientSubject,
    /// `$ssl_client_serial`: serial number of the client certificate, in hexadecimal.
    SslClientSerial,
    /// `$http_NAME`: a header field. The name is stored in lowercase, with `-` for `_`.
    Header(String),
    /// `$cookie_NAME`: a cookie.
    Cookie(String),
    /// `$arg_NAME`: an argument of the query.
    Arg(String),
    /// `$path_NAME`: text that a group of the route's regular expression captured.
    ///
    /// The group is given by its name or its number.
    Path(String),
    /// `$jwt_NAME_CLAIM`: a claim of the client's token, once `[jwt.NAME]` has verified it.
    Jwt {
        /// Name of the table.
        name: String,
        /// Name of the claim.
        claim: String,
    },
}

/// Variables with a fixed name, each with that name.
const FIXED: [(&str, Variable); 11] = [
    ("remote_addr", Variable::RemoteAddr),
    ("host", Variable::Host),
    ("uri", Variable::Uri),
    ("request_uri", Variable::RequestUri),
    ("request_method", Variable::RequestMethod),
    ("scheme", Variable::Scheme),
    ("server_port", Variable::ServerPort),
    ("ssl_client_verify", Variable::SslClientVerify),
    ("ssl_client_fingerprint", Variable::SslClientFingerprint),
    ("ssl_client_subject", Variable::SslClientSubject),
    ("ssl_client_serial", Variable::SslClientSerial),
];

/// Variables that consist of a prefix and a name that the user chooses, for messages.
const PREFIXED: &str = "$http_NAME, $cookie_NAME, $arg_NAME, $path_NAME, $jwt_NAME_CLAIM";

/// Parses a variable such as `http_x_api_key`. `prefix`: the text before the first `_`, in
/// lowercase. `name`: the text behind it.
fn parse_prefixed(prefix: &str, name: &str) -> Option<Variable> {
    Some(match prefix {
        "http" => Variable::Header(name.to_ascii_lowercase().replace('_', "-")),
        "cookie" => Variable::Cookie(name.to_owned()),
        "arg" => Variable::Arg(name.to_owned()),
        "path" => Variable::Path(name.to_owned()),
        "jwt" => {
            let (name, claim) = name.split_once('_')?;
            let has_both = !name.is_empty() && !claim.is_empty();
            let (name, claim) = (name.to_owned(), claim.to_owned());
            return has_both.then_some(Variable::Jwt { name, claim });
        }
        _ => return None,
    })
}

/// Lists all variables for messages, with placeholders such as `NAME`.
pub(crate) fn list_variables() -> String {
    let fixed: Vec<String> = FIXED.iter().map(|(name, _)| format!("${name}")).collect();
    format!("{}, {PREFIXED}", fixed.join(", "))
}

/// Error of a text that is not a [`KeyTemplate`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is empty.
    #[error(
        "a key is made of variables such as \"$remote_addr\", or of a text alone for one bucket for all clients"
    )]
    Empty,
    /// A `$` without a name.
    #[error(
        "a $ begins a variable: {}; ${{...}} separates one from the text after it",
        list_variables()
    )]
    LoneDollar,
    /// A `${` without a `}`.
    #[error("${{{0} has no closing brace")]
    Unclosed(String),
    /// An unknown variable.
    #[error("${0} is not a variable here; the variables are {all}", all = list_variables())]
    Unknown(String),
    /// nginx's binary form of the address. It saves memory in nginx, but not here.
    #[error("$binary_remote_addr is written $remote_addr here")]
    BinaryRemoteAddr,
}

impl KeyTemplate {
    /// Returns the parts in order; at least one.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the text of a template without variables; `None` if it has any.
    pub fn as_text(&self) -> Option<&str> {
        match &self.parts[..] {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the variables in order.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(variable) => Some(variable),
            Part::Text(_) => None,
        })
    }

    /// Returns whether the key is the same for all requests.
    pub fn is_constant(&self) -> bool {
        self.variables().next().is_none()
    }

    /// Returns whether the key contains the client's address.
    pub fn has_address(&self) -> bool {
        let mut variables = self.variables();
        variables.any(|variable| *variable == Variable::RemoteAddr)
    }

    /// Returns the key of a request. `add_value` appends the value of a variable.
    pub fn fill(&self, add_value: impl FnMut(&Variable, &mut Vec<u8>)) -> Vec<u8> {
        let mut key = Vec::new();
        self.fill_into(&mut key, add_value);
        key
    }

    /// Appends the key of a request to `key`. `add_value` appends the value of a variable.
    pub fn fill_into(&self, key: &mut Vec<u8>, mut add_value: impl FnMut(&Variable, &mut Vec<u8>)) {
        for part in &self.parts {
            match part {
                Part::Text(text) => key.extend_from_slice(text.as_bytes()),
                Part::Variable(variable) => add_value(variable, key),
            }
        }
    }

    /// Parses a template.
    ///
    /// # Errors
    ///
    /// Returns an error per wrong variable, or one error if the text is empty.
    pub fn parse(text: &str) -> Result<Self, Vec<KeyError>> {
        Self::parse_with(text, false)
    }

    /// Parses a template in which `$$` stands for a `$`, such as the value of a header field.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_value(text: &str) -> Result<Self, Vec<KeyError>> {
        Self::parse_with(text, true)
    }

    /// Parses a template. `has_escapes`: whether `$$` stands for a `$`.
    fn parse_with(text: &str, has_escapes: bool) -> Result<Self, Vec<KeyError>> {
        let (mut parts, mut wrong) = (Vec::new(), Vec::new());
        // Two texts in a row become one part, and an empty text none.
        let add_text = |parts: &mut Vec<Part>, more: &str| match parts.last_mut() {
            Some(Part::Text(text)) => text.push_str(more),
            _ if more.is_empty() => {}
            _ => parts.push(Part::Text(more.to_owned())),
        };
        let mut rest = text;
        while !rest.is_empty() {
            let (plain, behind) = rest.split_at(rest.find('$').unwrap_or(rest.len()));
            add_text(&mut parts, plain);
            rest = behind;
            if let Some(behind) = rest.strip_prefix("$$").filter(|_| has_escapes) {
                add_text(&mut parts, "$");
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix('$') {
                rest = behind;
                // After an error, the parser goes on behind the `$`, or behind the wrong name.
                let variable = split_name(behind).and_then(|(name, behind)| {
                    rest = behind;
                    name.parse()
                });
                match variable {
                    Ok(variable) => parts.push(Part::Variable(variable)),
                    Err(error) => wrong.push(error),
                }
            }
        }
        if parts.is_empty() && wrong.is_empty() {
            wrong.push(KeyError::Empty);
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(Self { parts })
    }
}

impl FromStr for KeyTemplate {
    type Err = KeyError;

    /// Reads a template as [`KeyTemplate::parse`] does. Returns the first error.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text).map_err(|mut wrong| wrong.swap_remove(0))
    }
}

/// Splits the text after a `$` into the variable's name, in braces or not, and the rest.
fn split_name(text: &str) -> Result<(&str, &str), KeyError> {
    let (name, behind) = match text.strip_prefix('{') {
        Some(braced) => braced
            .split_once('}')
            .ok_or_else(|| KeyError::Unclosed(braced.to_owned()))?,
        None => text.split_at(text.find(|c| !is_name_part(c)).unwrap_or(text.len())),
    };
    if name.is_empty() {
        return Err(KeyError::LoneDollar);
    }
    Ok((name, behind))
}

/// Returns whether a character may be part of the name of a variable.
fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl FromStr for Variable {
    type Err = KeyError;

    /// Reads a name without its `$`.
    ///
    /// As in nginx, case is ignored, except in the name of a cookie, an argument, a group or a
    /// claim.
    fn from_str(name: &str) -> Result<Self, KeyError> {
        let lower = name.to_ascii_lowercase();
        if lower == "binary_remote_addr" {
            return Err(KeyError::BinaryRemoteAddr);
        }
        let fixed = FIXED.iter().find(|(fixed, _)| *fixed == lower);
        if let Some((_, variable)) = fixed {
            return Ok(variable.clone());
        }
        let variable = lower.split_once('_').and_then(|(prefix, _)| {
            let rest = &name[prefix.len() + 1..];
            let is_right = !rest.is_empty() && rest.chars().all(is_name_part);
            parse_prefixed(prefix, rest).filter(|_| is_right)
        });
        variable.ok_or_else(|| KeyError::Unknown(name.to_owned()))
    }
}

/// Writes the name without its `$`.
impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "http_{}", name.replace('-', "_")),
            Self::Cookie(name) => write!(f, "cookie_{name}"),
            Self::Arg(name) => write!(f, "arg_{name}"),
            Self::Path(name) => write!(f, "path_{name}"),
            Self::Jwt { name, claim } => write!(f, "jwt_{name}_{claim}"),
            fixed => FIXED
                .iter()
                .filter(|(_, variable)| variable == fixed)
                .try_for_each(|(name, _)| f.write_str(name)),
        }
    }
}

/// Writes the template as in a file, with braces only where the next text would continue the name.
///
/// A `$` in a text becomes `$$`. Only templates that [`KeyTemplate::parse_value`] read have one.
impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            match (part, self.parts.get(index + 1)) {
                (Part::Text(text), _) => f.write_str(&text.replace('$', "$$"))?,
                (Part::Variable(variable), Some(Part::Text(text)))
                    if text.starts_with(is_name_part) =>
                {
                    write!(f, "${{{variable}}}")?;
                }
                (Part::Variable(variable), _) => write!(f, "${variable}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests;

//! Compares names of header fields, cookies and query arguments, also as other programs do.
//!
//! Some programs treat different names as equal. A client could use this to show drip one value and
//! the origin another.

/// Returns whether some programs treat a header field called `name` as the field `known`.
///
/// CGI programs get fields as variables, so `X_Api_Key` and `X-Api-Key` look the same. To PHP,
/// `X.Api.Key` does, too. Therefore all punctuation characters count as the same one.
pub fn is_same_field(known: &str, name: &[u8]) -> bool {
    is_alike(known, name, |byte| match byte {
        byte if byte.is_ascii_alphanumeric() => byte.to_ascii_lowercase(),
        _ => b'-',
    })
}

/// Returns whether a field called `name` is `known`, ignoring case.
///
/// `underscores`: whether `_` in `name` counts as `-`.
pub fn is_field(known: &str, name: &[u8], underscores: bool) -> bool {
    is_alike(known, name, |byte| match byte {
        b'_' if underscores => b'-',
        byte => byte.to_ascii_lowercase(),
    })
}

/// Returns whether two names are equal once `normalize` is applied to each byte.
fn is_alike(known: &str, name: &[u8], normalize: impl Fn(u8) -> u8) -> bool {
    // Fast path: most bytes are equal without `normalize`.
    let is_equal = |(one, other): (u8, &u8)| one == *other || normalize(one) == normalize(*other);
    known.len() == name.len() && known.bytes().zip(name).all(is_equal)
}

/// Returns whether some programs treat the decoded cookie or argument name `name` as `known`.
///
/// Case is ignored, as in nginx. PHP skips blanks before a name, and ends it at a zero byte. It
/// reads a blank, a dot and a bracket as `_`, and a closed bracket as the index of an array.
pub fn is_same_variable(known: &str, name: &[u8]) -> bool {
    let end = memchr::memchr(0, name).unwrap_or(name.len());
    let name = name[..end].trim_ascii();
    let is_known = |name: &[u8]| {
        is_alike(known, name, |byte| match byte {
            b' ' | b'.' | b'[' => b'_',
            byte => byte.to_ascii_lowercase(),
        })
    };
    let bracket = memchr::memchr(b'[', name);
    is_known(name) || bracket.is_some_and(|bracket| is_known(&name[..bracket]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_case_and_as_programs_see_them() {
        for name in ["x-user", "X-USER", "x_User", "X.User", "x~user"] {
            assert!(is_same_field("X-User", name.as_bytes()), "{name}");
        }
        for name in ["x-use", "x-users", "", "xauser"] {
            assert!(!is_same_field("X-User", name.as_bytes()), "{name}");
        }
        // A name, and whether it is the field without and with `underscores`.
        for (name, strictly, with_underscores) in [
            ("X-Api-Key", true, true),
            ("x_api_key", false, true),
            ("x-api_key", false, true),
            ("x.api.key", false, false),
            ("x-api-keys", false, false),
        ] {
            let found = |underscores| is_field("x-api-key", name.as_bytes(), underscores);
            assert_eq!(found(false), strictly, "{name}");
            assert_eq!(found(true), with_underscores, "{name}");
        }
        // The spelling of the file always matches itself.
        assert!(is_field("x_cost", b"X_Cost", false));
        assert!(!is_field("x_cost", b"X-Cost", false));
    }

    #[test]
    fn names_of_cookies_and_arguments_are_compared_as_php_sees_them() {
        let zero_byte = "my_key\0x";
        for name in [
            "my_key", "my.key", "my[key", "my_key ", zero_byte, "my_key[]", "my.key[",
        ] {
            assert!(is_same_variable("my_key", name.as_bytes()), "{name:?}");
        }
        for name in [
            "", "my-key", "my_keys", "amy_key", "[my_key]", "\0my_key", "my_ke\0y",
        ] {
            assert!(!is_same_variable("my_key", name.as_bytes()), "{name:?}");
        }
    }
}

//! Detection of zones that protect passwords from guessing: their limits are meant to reject.

use config::{PathPattern, Route, Settings};

/// Words by which the path of a login is recognized.
const LOGIN_WORDS: [&str; 12] = [
    "login", "log-in", "logon", "signin", "sign-in", "sign_in", "auth", "oauth", "token",
    "password", "session", "otp",
];

/// Returns whether the paths of all routes with a limit in this zone look like logins.
pub(crate) fn is_login(settings: &Settings, zone: usize) -> bool {
    let routes = settings.routes.iter();
    let is_limited = |route: &&Route| route.limits.iter().any(|limit| limit.zone == zone);
    let mut routes = routes.filter(is_limited).peekable();
    routes.peek().is_some() && routes.all(|route| has_word(&route.path))
}

/// Returns whether a path contains a word of logins.
fn has_word(path: &PathPattern) -> bool {
    let text = match path {
        PathPattern::Prefix(text) | PathPattern::Exact(text) => text.clone(),
        PathPattern::Regex(regex) => regex.to_string(),
    };
    let is_separator = |c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let is_of_login = |word: &str| LOGIN_WORDS.iter().any(|it| it.eq_ignore_ascii_case(word));
    text.split(is_separator).any(is_of_login)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_zone_whose_limits_are_all_of_logins_is_one_of_logins() {
        let is_of_logins = |paths: &[&str]| {
            let mut text = "[origins.app]\nservers = [\"http://127.0.0.1:1\"]\n\
                            [zones.z]\nkey = \"$remote_addr\"\nrate = \"5r/m\"\n"
                .to_owned();
            let routes = paths.iter().map(|path| {
                format!(
                    "[[routes]]\npath = '{path}'\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 5 }}]\n"
                )
            });
            text.extend(routes);
            is_login(&crate::test_settings::of_file(&text), 0)
        };
        for paths in [
            &["/login"][..],
            &["= /api/v1/Sign-In", "/oauth/token"],
            &["/wp/login.php"],
            &["regex:^/(en|de)/session$"],
        ] {
            assert!(is_of_logins(paths), "{paths:?}");
        }
        for paths in [&["/"][..], &["/authors"], &["/login", "/"]] {
            assert!(!is_of_logins(paths), "{paths:?}");
        }
    }
}

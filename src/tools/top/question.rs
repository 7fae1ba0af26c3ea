//! The one question that is asked before something is changed.
//!
//! First the numbers that it needs are typed, then it is answered with y or n.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::change::{Change, Override, Request, Target};
use crate::limit::{Rate, parse_duration};

/// How long an override lasts, if nothing else is typed.
const SPAN: &str = "10m";

/// Longest text that can be typed, in characters.
const MAX_CHARACTERS: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) target: Target,
    pub(super) state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// What the change needs is typed.
    Typing {
        wants: Wants,
        text: String,
        /// What is wrong with the text.
        wrong: Option<String>,
    },
    /// Shall this be done?
    Asking(Change),
}

/// What is to be typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// A rate, and how long.
    Rate,
    /// Requests at an origin at once, and how long.
    Places,
    /// How long.
    Span(Override),
}

/// What a typed key leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The question stays open.
    Open,
    Closed,
    /// The question is closed, and this is to be sent. Also says what is done.
    Send(&'static str, Request),
}

impl Question {
    /// Asks whether to make a change that needs no numbers.
    pub(super) fn asking(target: Target, change: Change) -> Self {
        let state = State::Asking(change);
        Self { target, state }
    }

    /// Asks for the numbers of an override first.
    pub(super) fn typing(target: Target, wants: Wants) -> Self {
        let text = match wants {
            Wants::Rate | Wants::Places => String::new(),
            Wants::Span(_) => SPAN.to_owned(),
        };
        let wrong = None;
        let state = State::Typing { wants, text, wrong };
        Self { target, state }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        if key.kind == KeyEventKind::Release {
            return Next::Open;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Esc || (control && key.code == KeyCode::Char('c')) {
            return Next::Closed;
        }
        match &mut self.state {
            State::Typing { wants, text, wrong } => match key.code {
                KeyCode::Enter => match read(wants, text) {
                    Ok(change) => self.state = State::Asking(change),
                    Err(error) => *wrong = Some(error),
                },
                KeyCode::Backspace => drop(text.pop()),
                KeyCode::Char(c)
                    if !control && !c.is_control() && text.chars().count() < MAX_CHARACTERS =>
                {
                    text.push(c);
                }
                _ => {}
            },
            State::Asking(change) => match key.code {
                KeyCode::Char('y' | 'Y') => {
                    return Next::Send(change.verb(), change.request(&self.target));
                }
                KeyCode::Char('n' | 'N' | 'q') => return Next::Closed,
                _ => {}
            },
        }
        Next::Open
    }
}

/// Reads what was typed.
fn read(wants: &Wants, text: &str) -> Result<Change, String> {
    let mut words = text.split_whitespace();
    let what = match wants {
        Wants::Span(what) => what.clone(),
        Wants::Rate => {
            let rate = words.next().ok_or("type a rate such as 20r/s")?;
            let wrong = |error| format!("the rate is {rate:?}: {error}");
            Override::Rate(rate.parse::<Rate>().map_err(wrong)?)
        }
        Wants::Places => {
            let places = words.next().and_then(|places| places.parse().ok());
            Override::Places(places.ok_or("type how many requests at once, such as 24")?)
        }
    };
    let span = words.next().unwrap_or(SPAN);
    // The admin port knows the bounds.
    if parse_duration(span).is_none() || words.next().is_some() {
        let whole = match wants {
            Wants::Rate => "20r/s 10m",
            Wants::Places => "24 10m",
            Wants::Span(_) => "10m",
        };
        return Err(format!(
            "type how long as a number with a unit, such as {whole}"
        ));
    }
    let span = span.to_owned();
    Ok(Change::Override { what, span })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::views::Plain;

    fn zone() -> Target {
        Target::Zone(Plain::new("z"))
    }

    fn press(question: &mut Question, keys: &str) -> Next {
        let mut next = Next::Open;
        for key in keys.chars() {
            assert_eq!(next, Next::Open, "before {key:?} of {keys:?}");
            let code = match key {
                '\n' => KeyCode::Enter,
                '<' => KeyCode::Backspace,
                '\x1b' => KeyCode::Esc,
                key => KeyCode::Char(key),
            };
            next = question.key(code.into());
        }
        next
    }

    #[test]
    fn what_is_typed_and_answered_becomes_a_request() {
        let pause = || Question::typing(zone(), Wants::Span(Override::Pause));
        let rate = || Question::typing(zone(), Wants::Rate);
        let places = || Question::typing(zone(), Wants::Places);
        let undo = || Question::asking(zone(), Change::Undo { paused: false });
        let body = |rest: &str| Some(format!("{{\"for\":{rest}}}"));
        for (mut question, keys, expected) in [
            (pause(), "\ny", Some(body("\"10m\",\"pause\":true"))),
            (pause(), "<<<30s\ny", Some(body("\"30s\",\"pause\":true"))),
            (rate(), "20r/s\ny", Some(body("\"10m\",\"rate\":\"20r/s\""))),
            (
                rate(),
                " 20r/s  1h \nY",
                Some(body("\"1h\",\"rate\":\"20r/s\"")),
            ),
            (
                places(),
                "24\ny",
                Some(body("\"10m\",\"max_in_flight\":24")),
            ),
            (undo(), "y", Some(None)),
            (undo(), "n", None),
            (undo(), "\x1b", None),
            (pause(), "\nn", None),
            (rate(), "20\x1b", None),
        ] {
            let next = press(&mut question, keys);
            match expected {
                None => assert_eq!(next, Next::Closed, "{keys:?}"),
                Some(expected) => {
                    let Next::Send(_, Request { body, .. }) = next else {
                        panic!("{keys:?}: {next:?}");
                    };
                    assert_eq!(body, expected, "{keys:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_and_nothing_is_asked() {
        let wrong = |wants: &Wants, keys: &str| {
            let mut question = Question::typing(zone(), wants.clone());
            assert_eq!(press(&mut question, keys), Next::Open);
            match question.state {
                State::Typing {
                    wrong: Some(wrong), ..
                } => wrong,
                state => panic!("{keys:?}: {state:?}"),
            }
        };
        let span = Wants::Span(Override::Pause);
        assert_eq!(wrong(&Wants::Rate, "\n"), "type a rate such as 20r/s");
        assert!(wrong(&Wants::Rate, "20 a day\n").starts_with("the rate is \"20\""));
        assert!(wrong(&Wants::Rate, "20r/s soon\n").ends_with("20r/s 10m"));
        assert!(wrong(&Wants::Places, "0\n").ends_with("such as 24"));
        assert!(wrong(&Wants::Places, "24 soon\n").ends_with("24 10m"));
        assert!(wrong(&span, " 5m\n").ends_with("such as 10m"));
        let mut question = Question::asking(zone(), Change::Reload);
        assert_eq!(press(&mut question, "xsp\n "), Next::Open);
    }
}

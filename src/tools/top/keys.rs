//! Maps typed keys to actions.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Up,
    Down,
    Next,
    Back,
    Sort,
    /// Keep what is shown, or show the present again.
    Freeze,
    /// Pause the selected zone or key, or end its pause.
    Pause,
    Rate,
    Places,
    DryRun,
    Enforce,
    Undo,
    Forget,
    ForgetAndReject,
    Reload,
    Help,
}

/// Keys and their descriptions, in the order that the help shows them.
pub(super) const HELP: [(&str, &str); 15] = [
    ("q, Esc, Ctrl-C", "quit"),
    ("↑ ↓, k j", "select a zone, or scroll keys and origins"),
    ("Tab, Shift-Tab", "the next panel, the one before"),
    ("s", "sort keys by depth, oldest wait, name, rejections"),
    ("Space", "keep what is shown; the gateway goes on"),
    (
        "p",
        "pause the zone, or the first key or origin listed; resume",
    ),
    ("r", "give it another rate for a while"),
    ("m", "give the origin another max_in_flight for a while"),
    ("d, D", "dry run on, off, for a while"),
    ("u", "undo what is not as in the file"),
    ("f", "forget the key"),
    ("F", "forget the key, and reject who waits"),
    ("R", "read the file now"),
    ("?", "this help"),
    ("", "in/s came, out/s went on, in the last second"),
];

pub(super) fn action(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => Action::Quit,
        _ if control => return None,
        KeyCode::Char('q') | KeyCode::Esc => Action::Quit,
        KeyCode::Up | KeyCode::Char('k') => Action::Up,
        KeyCode::Down | KeyCode::Char('j') => Action::Down,
        KeyCode::Tab => Action::Next,
        KeyCode::BackTab => Action::Back,
        KeyCode::Char('s') => Action::Sort,
        KeyCode::Char(' ') => Action::Freeze,
        KeyCode::Char('p') => Action::Pause,
        KeyCode::Char('r') => Action::Rate,
        KeyCode::Char('m') => Action::Places,
        KeyCode::Char('d') => Action::DryRun,
        KeyCode::Char('D') => Action::Enforce,
        KeyCode::Char('u') => Action::Undo,
        KeyCode::Char('f') => Action::Forget,
        KeyCode::Char('F') => Action::ForgetAndReject,
        KeyCode::Char('R') => Action::Reload,
        KeyCode::Char('?') => Action::Help,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_does_what_the_help_says() {
        for (code, expected) in [
            (KeyCode::Char('q'), Some(Action::Quit)),
            (KeyCode::Esc, Some(Action::Quit)),
            (KeyCode::Char('c'), None),
            (KeyCode::Char('j'), Some(Action::Down)),
            (KeyCode::Up, Some(Action::Up)),
            (KeyCode::Tab, Some(Action::Next)),
            (KeyCode::BackTab, Some(Action::Back)),
            (KeyCode::Char('s'), Some(Action::Sort)),
            (KeyCode::Char(' '), Some(Action::Freeze)),
            (KeyCode::Char('p'), Some(Action::Pause)),
            (KeyCode::Char('r'), Some(Action::Rate)),
            (KeyCode::Char('m'), Some(Action::Places)),
            (KeyCode::Char('R'), Some(Action::Reload)),
            (KeyCode::Char('d'), Some(Action::DryRun)),
            (KeyCode::Char('D'), Some(Action::Enforce)),
            (KeyCode::Char('u'), Some(Action::Undo)),
            (KeyCode::Char('f'), Some(Action::Forget)),
            (KeyCode::Char('F'), Some(Action::ForgetAndReject)),
            (KeyCode::Char('?'), Some(Action::Help)),
            (KeyCode::F(5), None),
        ] {
            assert_eq!(action(code.into()), expected, "{code:?}");
        }
        let with_control = |c| action(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
        assert_eq!(with_control('c'), Some(Action::Quit));
        assert_eq!(with_control('p'), None);
    }
}

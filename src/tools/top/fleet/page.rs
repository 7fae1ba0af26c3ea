use ratatui::crossterm::event::KeyEvent;

use super::lines::{Section, sections};
use crate::status::views::Fleet;
use crate::tools::top::keys::{self, Action};

/// What a typed key leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Quit,
}

/// What is shown, and what the user has chosen.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) fleet: Fleet,
    /// Whether the picture stays as it is.
    pub(super) is_frozen: bool,
    /// The index of the selected item, over all sections.
    pub(super) selected: usize,
    /// Lines of the picture that are scrolled away.
    pub(super) scroll: usize,
    /// Why a key does nothing.
    pub(super) notice: Option<&'static str>,
}

impl Page {
    /// Takes a new picture, unless the one that is shown is kept.
    pub(super) fn show(&mut self, fleet: Fleet) {
        if !self.is_frozen {
            self.fleet = fleet;
        }
        self.selected = self.selected.min(self.count().saturating_sub(1));
    }

    /// Carries out a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        let Some(action) = keys::action(key) else {
            return Next::Stay;
        };
        self.notice = None;
        match action {
            Action::Quit => return Next::Quit,
            Action::Up => self.selected = self.selected.saturating_sub(1),
            Action::Down => {
                let last = self.count().saturating_sub(1);
                self.selected = last.min(self.selected + 1);
            }
            Action::Next => self.turn(true),
            Action::Back => self.turn(false),
            Action::Freeze => self.is_frozen = !self.is_frozen,
            Action::Help | Action::Sort => {}
            _ => {
                self.notice = Some(
                    "several gateways are only shown; to change one, start drip top with its address alone",
                );
            }
        }
        Next::Stay
    }

    fn count(&self) -> usize {
        sections(&self.fleet).iter().map(|it| it.items.len()).sum()
    }

    /// Selects the first item of another section: the next one, or the one before.
    fn turn(&mut self, is_next: bool) {
        let sections = sections(&self.fleet);
        let mut first = 0;
        let begins = sections.iter().map(|section: &Section| {
            let begin = first;
            first += section.items.len();
            begin
        });
        let begins: Vec<usize> = begins.collect();
        let here = begins.iter().rposition(|begin| *begin <= self.selected);
        let (here, count) = (here.unwrap_or_default(), begins.len().max(1));
        let next = if is_next { here + 1 } else { here + count - 1 };
        self.selected = begins.get(next % count).copied().unwrap_or_default();
    }
}

//! What the user has chosen on the page.

use super::keys::Action;
use super::model::{Model, Sort};
use crate::admin::views::Plain;
use crate::admin::views::Zone;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Panel {
    #[default]
    Zones,
    Settings,
    Keys,
    Origins,
}

const PANELS: [Panel; 4] = [Panel::Zones, Panel::Settings, Panel::Keys, Panel::Origins];

#[derive(Debug, Default)]
pub(super) struct Page {
    /// By name, because a new file may move the zone.
    ///
    /// If no zone has that name, the first is selected.
    selected: Option<Plain>,
    pub(super) panel: Panel,
    pub(super) sort: Sort,
    pub(super) help: bool,
    /// Lines of the panel that are scrolled away.
    pub(super) scroll: usize,
    /// The model at the time of the pause.
    paused: Option<Box<Model>>,
}

impl Page {
    /// Carries out an action. Returns false if the action is to quit.
    pub(super) fn act(&mut self, action: Action, model: &Model) -> bool {
        match action {
            Action::Quit => return false,
            // Any other key closes the help.
            _ if self.help => self.help = false,
            Action::Help => self.help = true,
            Action::Up => self.step(model, -1),
            Action::Down => self.step(model, 1),
            Action::Next => self.turn(1),
            Action::Back => self.turn(PANELS.len() - 1),
            Action::Sort => self.sort = self.sort.next(),
            Action::Pause => {
                self.paused = match self.paused.take() {
                    None => Some(Box::new(model.clone())),
                    Some(_) => None,
                }
            }
        }
        true
    }

    /// The model to show: the paused one if the page is paused.
    pub(super) fn shown<'a>(&'a self, model: &'a Model) -> &'a Model {
        self.paused.as_deref().unwrap_or(model)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// The index of the selected zone.
    pub(super) fn selected(&self, zones: &[Zone]) -> usize {
        let named = |zone: &Zone| self.selected.as_ref() == Some(&zone.name);
        zones.iter().position(named).unwrap_or_default()
    }

    fn turn(&mut self, by: usize) {
        let at = PANELS.iter().position(|panel| *panel == self.panel);
        self.panel = PANELS[(at.unwrap_or_default() + by) % PANELS.len()];
        self.scroll = 0;
    }

    fn step(&mut self, model: &Model, by: isize) {
        let shown = self.shown(model);
        let last = |lines: usize| lines.saturating_sub(1);
        let moved = |at: usize, lines: usize| at.saturating_add_signed(by).min(last(lines));
        match self.panel {
            Panel::Zones | Panel::Settings => {
                let zones = shown.zones();
                let zone = zones.get(moved(self.selected(zones), zones.len()));
                self.selected = zone.map(|zone| zone.name.clone());
            }
            Panel::Keys => self.scroll = moved(self.scroll, shown.listed(self.sort)),
            Panel::Origins => self.scroll = moved(self.scroll, shown.origin_lines().len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::feed::News;
    use super::*;
    use crate::admin::views::Zones;
    use crate::limit::Moment;

    fn model(names: &[&str]) -> Model {
        let mut model = Model::default();
        let zones = names.iter().map(|name| Zone {
            name: Plain::new(name),
            ..Zone::default()
        });
        let zones = zones.collect();
        model.hear(News::Zones(Zones { zones }), Moment::default());
        model
    }

    #[test]
    fn the_selection_stays_within_and_follows_its_zone() {
        let (mut page, before) = (Page::default(), model(&["a", "b"]));
        for (action, expected) in [
            (Action::Up, 0),
            (Action::Down, 1),
            (Action::Down, 1),
            (Action::Up, 0),
            (Action::Down, 1),
        ] {
            assert!(page.act(action, &before));
            assert_eq!(page.selected(before.zones()), expected);
        }
        assert_eq!(page.selected(model(&["b", "a"]).zones()), 0);
        assert_eq!(page.selected(model(&["c", "a"]).zones()), 0);
        assert_eq!(page.selected(model(&[]).zones()), 0);
        assert!(page.act(Action::Down, &model(&[])));
    }

    #[test]
    fn a_pause_keeps_what_was_shown() {
        let (mut page, before, after) = (Page::default(), model(&["a"]), model(&["b"]));
        page.act(Action::Pause, &before);
        assert_eq!(page.shown(&after).zones()[0].name.as_str(), "a");
        page.act(Action::Pause, &after);
        assert_eq!(page.shown(&after).zones()[0].name.as_str(), "b");
    }

    #[test]
    fn panels_go_round_and_any_key_closes_the_help() {
        let (mut page, model) = (Page::default(), model(&["a"]));
        page.act(Action::Back, &model);
        assert_eq!(page.panel, Panel::Origins);
        page.act(Action::Next, &model);
        assert_eq!(page.panel, Panel::Zones);
        page.act(Action::Help, &model);
        page.act(Action::Next, &model);
        assert_eq!((page.panel, page.help), (Panel::Zones, false));
        assert!(!page.act(Action::Quit, &model));
    }
}

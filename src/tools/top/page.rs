//! What the user has chosen on the page.

use ratatui::crossterm::event::KeyEvent;

use super::change::{Change, Override, Request, Target};
use super::keys::Action;
use super::model::{Model, OriginLine, Sort};
use super::question::{Next, Question, Wants};
use crate::status::views::Plain;
use crate::status::views::Zone;

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
    /// The model that is kept on the page.
    frozen: Option<Box<Model>>,
    pub(super) question: Option<Question>,
    /// What became of the last change, or why nothing was asked.
    pub(super) told: Option<Notice>,
}

/// A line about a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) is_bad: bool,
}

impl Notice {
    fn good(text: String) -> Self {
        Self {
            text,
            is_bad: false,
        }
    }

    fn bad(text: String) -> Self {
        Self { text, is_bad: true }
    }
}

impl Page {
    /// Carries out an action. Returns false if the action is to quit.
    pub(super) fn act(&mut self, action: Action, model: &Model) -> bool {
        self.told = None;
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
            Action::Freeze => {
                self.frozen = match self.frozen.take() {
                    None => Some(Box::new(model.clone())),
                    Some(_) => None,
                }
            }
            Action::Reload => {
                self.question = Some(Question::asking(Target::Gateway, Change::Reload));
            }
            Action::Pause
            | Action::Rate
            | Action::Places
            | Action::DryRun
            | Action::Enforce
            | Action::Undo
            | Action::Forget
            | Action::ForgetAndReject => match self.ask(action, model) {
                Ok(question) => self.question = Some(question),
                Err(why) => self.told = Some(Notice::bad(why.to_owned())),
            },
        }
        true
    }

    /// The question before a change of what is selected, or why it cannot be asked.
    fn ask(&self, action: Action, model: &Model) -> Result<Question, &'static str> {
        let target = self.target(model)?;
        let typing = |what| Question::typing(target.clone(), Wants::Span(what));
        let asking = |change| Question::asking(target.clone(), change);
        let is_key = matches!(target, Target::Key { .. });
        let is_origin = matches!(target, Target::Origin(_));
        Ok(match action {
            Action::DryRun | Action::Enforce if is_origin => {
                return Err("a gate has no dry run");
            }
            Action::Places if !is_origin => {
                return Err("select an origin first: Tab to the panel of origins");
            }
            Action::Pause if self.is_paused(&target, model) => {
                asking(Change::Undo { paused: true })
            }
            Action::Pause => typing(Override::Pause),
            Action::Rate => Question::typing(target.clone(), Wants::Rate),
            Action::Places => Question::typing(target.clone(), Wants::Places),
            Action::DryRun => typing(Override::DryRun(true)),
            Action::Enforce => typing(Override::DryRun(false)),
            Action::Forget | Action::ForgetAndReject if !is_key => {
                return Err("select a key first: Tab to the panel of keys");
            }
            Action::Forget => asking(Change::Forget { rejecting: false }),
            Action::ForgetAndReject => asking(Change::Forget { rejecting: true }),
            _ => asking(Change::Undo { paused: false }),
        })
    }

    /// What is selected: in the panels of keys and of origins their first line, elsewhere the zone.
    fn target(&self, model: &Model) -> Result<Target, &'static str> {
        let shown = self.shown(model);
        if self.panel == Panel::Origins {
            return self.origin(shown);
        }
        if self.panel != Panel::Keys {
            let zones = shown.zones();
            let zone = zones.get(self.selected(zones)).ok_or("there is no zone")?;
            return Ok(Target::Zone(zone.name.clone()));
        }
        let keys = shown.keys(self.sort);
        let first = self.scroll.min(keys.len().saturating_sub(1));
        let (zone, key) = keys.get(first).copied().ok_or("no key is listed")?;
        // The gateway cuts long names, so that the whole one is not known here.
        if key.as_str().ends_with('…') {
            return Err("the name of this key is too long to act on it here");
        }
        let (zone, key) = (zone.clone(), key.clone());
        Ok(Target::Key { zone, key })
    }

    /// The origin that the first line of the panel is about.
    fn origin(&self, shown: &Model) -> Result<Target, &'static str> {
        let lines = shown.origin_lines();
        let first = self.scroll.min(lines.len().saturating_sub(1));
        let mut above = lines.iter().take(first + 1).rev();
        let origin = above.find_map(|line| match line {
            OriginLine::Origin(origin) => Some(*origin),
            _ => None,
        });
        let origin = origin.ok_or("there is no origin")?;
        if origin.gate.is_none() {
            return Err("the origin has no gate: give it rate or max_in_flight in the file");
        }
        Ok(Target::Origin(origin.name.clone()))
    }

    fn is_paused(&self, target: &Target, model: &Model) -> bool {
        let Some(now) = self.shown(model).now() else {
            return false;
        };
        match target {
            Target::Zone(zone) => {
                let overridden = now.zone(zone).and_then(|it| it.overridden.as_ref());
                overridden.is_some_and(|it| it.pause)
            }
            Target::Origin(origin) => {
                let gate = now.origin(origin).and_then(|it| it.gate.as_ref());
                let overridden = gate.and_then(|it| it.overridden.as_ref());
                overridden.is_some_and(|it| it.pause)
            }
            Target::Gateway | Target::Key { .. } => false,
        }
    }

    /// Passes a key to the open question. Returns what is to be sent, if it was answered with yes.
    pub(super) fn answer(&mut self, key: KeyEvent) -> Option<(&'static str, Request)> {
        match self.question.as_mut()?.key(key) {
            Next::Open => None,
            Next::Closed => {
                self.question = None;
                None
            }
            Next::Send(verb, request) => {
                self.question = None;
                self.told = Some(Notice::good(format!("{verb}: sent")));
                Some((verb, request))
            }
        }
    }

    /// Tells what became of a change.
    pub(super) fn tell(&mut self, verb: &str, result: Result<(), String>) {
        self.told = Some(match result {
            Ok(()) => Notice::good(format!("{verb}: done")),
            Err(why) => Notice::bad(format!("{verb}: {why}")),
        });
    }

    /// The model to show: the kept one if there is one.
    pub(super) fn shown<'a>(&'a self, model: &'a Model) -> &'a Model {
        self.frozen.as_deref().unwrap_or(model)
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen.is_some()
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
            Panel::Keys => self.scroll = moved(self.scroll, shown.keys(self.sort).len()),
            Panel::Origins => self.scroll = moved(self.scroll, shown.origin_lines().len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::feed::News;
    use super::*;
    use crate::limit::Moment;
    use crate::status::views::Zones;

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
    fn a_frozen_page_keeps_what_was_shown() {
        let (mut page, before, after) = (Page::default(), model(&["a"]), model(&["b"]));
        page.act(Action::Freeze, &before);
        assert_eq!(page.shown(&after).zones()[0].name.as_str(), "a");
        page.act(Action::Freeze, &after);
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

use std::env;

use ratatui::style::{Color, Modifier, Style};

/// Colours are only an addition: what they show is also written in words.
#[derive(Clone, Copy, Debug)]
pub(in crate::tools::top) struct Paint {
    pub(super) colours: bool,
}

impl Paint {
    /// Uses colours unless `NO_COLOR` is set and not empty.
    pub(in crate::tools::top) fn wanted() -> Self {
        let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colours: !plain }
    }

    #[cfg(test)]
    pub(in crate::tools::top) fn none() -> Self {
        Self { colours: false }
    }

    pub(in crate::tools::top) fn strong() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(in crate::tools::top) fn faint() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(in crate::tools::top) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    pub(in crate::tools::top) fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(in crate::tools::top) fn mark(self) -> Style {
        self.colour(Color::Yellow)
    }

    pub(in crate::tools::top) fn water(self) -> Style {
        self.colour(Color::Cyan)
    }

    fn colour(self, colour: Color) -> Style {
        if self.colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }
}

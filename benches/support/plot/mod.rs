//! Charts as SVG: lines, steps and bars in panels, one above the other.
//!
//! A chart depends only on its input: not on fonts, a clock or the order of a hash map. The same
//! data give the same bytes. Colours follow the reader's system or page, light or dark.

mod chart;
mod draw;
mod panel;
mod scale;
mod thin;

pub use chart::Chart;
pub use panel::Panel;

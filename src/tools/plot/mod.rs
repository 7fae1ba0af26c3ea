//! Charts as SVG: lines, steps and bars in panels, one above the other.
//!
//! A chart depends only on its input: not on fonts, a clock or the order of a hash map. The same
//! data give the same bytes. Colours follow the reader's system or page, light or dark.
//!
//! ```
//! use drip_tools::plot::{Chart, Panel};
//!
//! let waiting = [(0.0, 0.0), (0.5, 3.0), (2.0, 0.0)];
//! let svg = Chart::new("Thirty at once, at 10r/s")
//!     .x_label("seconds")
//!     .panel(Panel::new("requests waiting").step("in the queue", &waiting))
//!     .render();
//! assert!(svg.starts_with("<svg") && svg.contains("in the queue"));
//! ```

mod chart;
mod draw;
mod panel;
mod scale;
mod thin;
mod values;

pub use chart::Chart;
pub use panel::Panel;
pub(crate) use values::stairs;
pub use values::{number, seconds};

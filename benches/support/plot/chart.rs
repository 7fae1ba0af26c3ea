//! A picture with a title and panels, as an SVG file.

use std::path::Path;
use std::{fs, io};

use svg::Node;
use svg::node::Text;
use svg::node::element::Element;

use super::draw::{Frame, break_lines, draw, number, text};
use super::panel::Panel;
use super::scale::Range;

const WIDTH: f64 = 900.0;
const MARGIN: f64 = 16.0;

/// A picture with a title and panels below each other, as an SVG file.
#[derive(Clone, Debug)]
pub struct Chart {
    title: String,
    subtitle: Option<String>,
    x_label: Option<String>,
    same_x: bool,
    panels: Vec<Panel>,
}

impl Chart {
    /// A chart without panels.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subtitle: None,
            x_label: None,
            same_x: false,
            panels: Vec::new(),
        }
    }

    /// Sets a smaller line below the title, for example how the data were measured.
    #[must_use]
    pub fn subtitle(mut self, text: impl Into<String>) -> Self {
        self.subtitle = Some(text.into());
        self
    }

    /// Names the horizontal axis and its unit for every panel that does not set its own.
    #[must_use]
    pub fn x_label(mut self, label: impl Into<String>) -> Self {
        self.x_label = Some(label.into());
        self
    }

    /// Gives all panels the same horizontal range.
    ///
    /// Then points above each other are at the same time.
    #[must_use]
    pub fn same_x(mut self) -> Self {
        self.same_x = true;
        self
    }

    /// Adds a panel below the others.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// The text of the SVG file.
    #[must_use]
    pub fn render(&self) -> String {
        let mut body = Vec::new();
        let mut y = MARGIN + 14.0;
        body.push(text("title", MARGIN, y, "start", &self.title));
        if let Some(subtitle) = &self.subtitle {
            for line in break_lines(subtitle, WIDTH - 2.0 * MARGIN) {
                y += 18.0;
                body.push(text("sub", MARGIN, y, "start", &line));
            }
        }
        y += 16.0;
        let ranges = self.panels.iter().map(Panel::x_range);
        let all = ranges.fold(Range::NONE, Range::and);
        for panel in &self.panels {
            let frame = Frame {
                left: MARGIN,
                right: WIDTH - MARGIN,
                top: y,
                x_range: if self.same_x { all } else { panel.x_range() },
                x_label: panel.x_label.as_deref().or(self.x_label.as_deref()),
            };
            y = draw(panel, &frame, &mut body) + 18.0;
        }
        let height = y;
        let mut root = Element::new("svg");
        root.assign("xmlns", "http://www.w3.org/2000/svg");
        root.assign("viewBox", format!("0 0 {WIDTH} {}", number(height)));
        root.assign("width", WIDTH);
        root.assign("height", number(height));
        root.assign("role", "img");
        let mut title = Element::new("title");
        title.append(Text::new(&self.title));
        root.append(title);
        let mut style = Element::new("style");
        style.append(Text::new(include_str!("style.css").trim_end()));
        root.append(style);
        let mut paper = Element::new("rect");
        paper.assign("class", "paper");
        paper.assign("width", WIDTH);
        paper.assign("height", number(height));
        paper.assign("rx", 6);
        root.append(paper);
        for element in body {
            root.append(element);
        }
        format!("{root}\n")
    }

    /// Writes the SVG file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        fs::write(path, self.render())
    }
}

#[cfg(test)]
mod tests {
    use svg::parser::Event;

    use super::*;

    fn chart() -> Chart {
        let depth = [(0.0, 0.0), (0.5, 3.0), (f64::NAN, 1.0), (2.0, 0.0)];
        Chart::new("a < b & \"c\"")
            .subtitle("one line of words, and a second one ".repeat(8))
            .x_label("seconds")
            .same_x()
            .panel(
                Panel::new("waiting")
                    .step(
                        "a long name of a series, which is given a line of its own",
                        &depth,
                    )
                    .line(
                        "and another one that is so long that both go on two lines",
                        &depth,
                    )
                    .mark_y("burst", 4.0)
                    .mark_x("here", 1.0),
            )
            .panel(
                Panel::new("requests a second")
                    .bars("nginx", &[(0.0, 10.0), (1.0, 20.0)])
                    .bars("drip", &[(0.0, 11.0), (1.0, 0.0)])
                    .x_names(["one", "two"])
                    .log_y()
                    .height(100),
            )
    }

    /// The names of all tags. Fails if they are not balanced.
    fn tags(svg: &str) -> Vec<String> {
        let mut open = 0;
        let mut seen = Vec::new();
        for event in svg::read(svg).expect("SVG") {
            match event {
                Event::Tag(name, svg::node::element::tag::Type::Start, _) => {
                    open += 1;
                    seen.push(name.to_owned());
                }
                Event::Tag(_, svg::node::element::tag::Type::End, _) => open -= 1,
                Event::Tag(name, ..) => seen.push(name.to_owned()),
                Event::Error(error) => panic!("{error}"),
                _ => {}
            }
        }
        assert_eq!(open, 0);
        seen
    }

    #[test]
    fn a_chart_is_well_formed_and_the_same_each_time() {
        let svg = chart().render();
        assert_eq!(svg, chart().render());
        let tags = tags(&svg);
        let count = |name| tags.iter().filter(|tag| *tag == name).count();
        // A bar of 0 cannot be drawn on a logarithmic axis.
        assert_eq!(
            count("rect"),
            1 + 3 + 4,
            "paper, bars, and squares of the legends"
        );
        assert!(svg.contains("a &lt; b &amp; \"c\"") && svg.contains("prefers-color-scheme: dark"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn a_chart_without_valid_points_is_well_formed() {
        tags(&Chart::new("").render());
        let empty = Panel::new("").line("", &[]).log_y();
        tags(&Chart::new("nothing").panel(empty).render());
        let wrong = [(f64::NAN, 0.0), (0.0, f64::INFINITY), (-1.0, -1.0)];
        let svg = Chart::new("nothing")
            .panel(Panel::new("").bars("", &wrong).step("", &wrong).log_y())
            .render();
        tags(&svg);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}

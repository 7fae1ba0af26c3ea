use super::hours::Class;
use crate::replay::Spread;

/// Widths of the counting windows in nanoseconds, and their names. Each is ten times the next.
pub(super) const WIDTHS: [(u64, &str); 3] = [
    (1_000_000_000, "1 s"),
    (100_000_000, "100 ms"),
    (10_000_000, "10 ms"),
];
const FINEST: u64 = WIDTHS[2].0;

/// The widths as the headings of columns.
pub(super) fn headings() -> String {
    let headings = WIDTHS.iter().map(|(_, width)| format!("{width:>8}"));
    headings.collect()
}

/// How many of the finest windows make a window of each width.
const FINEST_IN: [u64; 3] = [100, 10, 1];

/// The number of requests in the present windows. Windows are aligned to whole seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    /// The finest window of the last request.
    at: u64,
    class: Class,
    present: [u32; 3],
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            at: 0,
            class: Class::Other,
            present: [0; 3],
        }
    }
}

/// A window that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Index into [`WIDTHS`].
    pub(super) width: usize,
    pub(super) class: Class,
    /// Its start, in nanoseconds.
    pub(super) begin: u64,
    pub(super) count: u32,
}

impl Counts {
    /// Counts a request. Calls `over` for each window that has ended by then and had a request.
    pub(super) fn add(&mut self, time: u64, class: Class, over: impl FnMut(Window)) {
        let at = time / FINEST;
        self.close(Some((at, class)), over);
        self.at = at;
        self.class = class;
        for count in &mut self.present {
            *count = count.saturating_add(1);
        }
    }

    /// Ends all windows.
    pub(super) fn end(&mut self, over: impl FnMut(Window)) {
        self.close(None, over);
    }

    fn close(&mut self, next: Option<(u64, Class)>, mut over: impl FnMut(Window)) {
        for (width, finest) in FINEST_IN.into_iter().enumerate() {
            let window = self.at / finest;
            let goes_on =
                next.is_some_and(|(at, class)| at / finest == window && class == self.class);
            if self.present[width] > 0 && !goes_on {
                over(Window {
                    width,
                    class: self.class,
                    begin: window * finest * FINEST,
                    count: self.present[width],
                });
                self.present[width] = 0;
            }
        }
    }
}

/// Distributions of the windows' counts, by class of hours and by window width.
#[derive(Clone, Debug)]
pub(super) struct Spreads([[Spread; 3]; 3]);

impl Spreads {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| {
            std::array::from_fn(|_| Spread::default())
        }))
    }

    pub(super) fn add(&mut self, window: Window) {
        self.0[window.class as usize][window.width].add(window.count.into());
    }

    pub(super) fn of(&self, class: Class, width: usize) -> &Spread {
        &self.0[class as usize][width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_cut_at_whole_seconds_and_where_the_hours_change() {
        let mut counts = Counts::default();
        let mut over = Vec::new();
        let ms = 1_000_000;
        for (time, class) in [
            (1_990, Class::Good),
            (1_995, Class::Good),
            (2_000, Class::Good),
            (2_050, Class::Good),
            (2_100, Class::Bad),
        ] {
            counts.add(time * ms, class, |window| over.push(window));
        }
        counts.end(|window| over.push(window));
        let told: Vec<_> = over
            .iter()
            .map(|it| (it.width, it.class, it.begin / ms, it.count))
            .collect();
        let expected = [
            (0, Class::Good, 1_000, 2),
            (1, Class::Good, 1_900, 2),
            (2, Class::Good, 1_990, 2),
            (2, Class::Good, 2_000, 1),
            (0, Class::Good, 2_000, 2),
            (1, Class::Good, 2_000, 2),
            (2, Class::Good, 2_050, 1),
            (0, Class::Bad, 2_000, 1),
            (1, Class::Bad, 2_100, 1),
            (2, Class::Bad, 2_100, 1),
        ];
        assert_eq!(told, expected);
    }
}

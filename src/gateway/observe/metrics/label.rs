//! Values of a metric's label, with a count for each.

use super::count::Count;

/// Label of a metric with few values, each with a count of its own.
pub trait Label: Copy + 'static {
    /// Array of one count for each value.
    type Counts: AsRef<[Count]> + Default;

    /// Returns the text of each value in the metric, in the order of the counts.
    fn texts() -> impl Iterator<Item = &'static str>;

    /// Returns the index of the value's count.
    fn index(self) -> usize;
}

/// One count for each value of a label.
pub struct CountBy<L: Label>(L::Counts);

impl<L: Label> Default for CountBy<L> {
    fn default() -> Self {
        Self(L::Counts::default())
    }
}

impl<L: Label> CountBy<L> {
    /// Adds to the count of one value.
    pub fn add(&self, value: L, more: u64) {
        self.0.as_ref()[value.index()].add(more);
    }

    /// Returns the count of one value so far.
    pub fn get(&self, value: L) -> u64 {
        self.0.as_ref()[value.index()].get()
    }

    /// Returns the values, each with its count so far.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        L::texts().zip(self.0.as_ref().iter().map(Count::get))
    }
}

/// Defines an enum that is a [`Label`]: each variant with its text in the metric.
macro_rules! labels {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $($(#[$about_variant:meta])* $variant:ident = $text:literal,)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$about_variant])* $variant,)+ }

        impl $name {
            /// All values, in their order.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Text in the metric.
            pub fn label(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl $crate::observe::metrics::Label for $name {
            type Counts = [$crate::observe::metrics::Count; Self::ALL.len()];

            fn texts() -> impl Iterator<Item = &'static str> {
                Self::ALL.into_iter().map(Self::label)
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

pub(crate) use labels;

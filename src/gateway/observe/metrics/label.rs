//! The values of a metric's label.

use super::count::Count;

/// A label of a metric with few values, each of which has a count of its own.
pub trait Label: Copy + 'static {
    /// One count for each value.
    type Counts: AsRef<[Count]> + Default;

    /// Each value, as the metric has it, in the order of the counts.
    fn texts() -> impl Iterator<Item = &'static str>;

    /// The index of its count.
    fn index(self) -> usize;
}

/// Defines an enum that is a [`Label`]: each variant with its value in the metric.
macro_rules! labels {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $($(#[$about_variant:meta])* $variant:ident = $text:literal,)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$about_variant])* $variant,)+ }

        impl $name {
            /// All of them, in their order.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// The value in the metric.
            #[must_use]
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

pub(super) use labels;

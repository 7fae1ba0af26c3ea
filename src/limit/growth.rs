//! Growth of large lists: by a quarter instead of to twice the size.

/// Returns the number of entries by which a full list grows: a quarter of its length, plus 4.
///
/// A doubled capacity might waste half of the memory of a large list. The 4 let a short list grow,
/// too.
pub fn more_room(length: usize) -> usize {
    length / 4 + 4
}

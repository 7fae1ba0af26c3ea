//! Growth of large lists: by a quarter instead of to twice the size.

/// Returns the number of entries by which a full list grows: a quarter of its length.
///
/// A doubled capacity might waste half of the memory of a large list.
pub fn more_room(length: usize) -> usize {
    length / 4 + 4
}

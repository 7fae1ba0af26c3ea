//! Growth of large lists.

/// Returns the number of entries by which a full list grows: a quarter of its length.
///
/// Many entries take much memory: doubling it might waste half of it.
pub fn more_room(length: usize) -> usize {
    length / 4 + 4
}

/// For how many more entries a full list of `length` gets room: a quarter.
///
/// Many entries take much memory: room for as many again might never be needed.
pub fn more_room(length: usize) -> usize {
    length / 4 + 4
}

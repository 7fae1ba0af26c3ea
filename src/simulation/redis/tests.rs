//! The fake Redis beside a real one: the same calls have the same replies, to the byte.

//! A test case of the oracle: bytes in pieces, read by both parsers.

use std::fmt;

use crate::oracle::compare;
use crate::oracle::{reference, subject};

/// Bytes that arrive in pieces, either requests or a response.
#[derive(Clone)]
pub struct Case {
    pieces: Vec<Vec<u8>>,
    side: Side,
}

#[derive(Clone, Copy, Debug)]
enum Side {
    Requests,
    Answer { to_head: bool },
}

impl Case {
    pub fn requests(pieces: Vec<Vec<u8>>) -> Self {
        let side = Side::Requests;
        Self { pieces, side }
    }

    pub fn answers(pieces: Vec<Vec<u8>>, to_head: bool) -> Self {
        let side = Side::Answer { to_head };
        Self { pieces, side }
    }

    /// Compares both parsers. Returns the number of complete messages.
    ///
    /// # Errors
    ///
    /// Returns an error if they read the bytes differently, or if drip reads what hyper refuses.
    pub fn check(&self) -> Result<usize, String> {
        let (readings, end) = match self.side {
            Side::Requests => subject::requests(&self.pieces),
            Side::Answer { to_head } => {
                let (reading, end) = subject::answer(&self.pieces, to_head);
                (reading.into_iter().collect(), end)
            }
        };
        let expected = match self.side {
            Side::Requests => reference::requests(&self.pieces),
            Side::Answer { to_head } => reference::answer(&self.pieces, to_head)
                .into_iter()
                .collect(),
        };
        compare::check(&readings, end, &expected)?;
        Ok(readings.iter().filter(|reading| reading.whole).count())
    }

    /// Returns a smaller case that also differs, with the difference.
    pub fn reduced(self, difference: String) -> (Self, String) {
        let mut best = (self, difference);
        let mut tried = best.0.clone();
        tried.pieces = vec![tried.pieces.concat()];
        if let Err(difference) = tried.check() {
            best = (tried, difference);
        }
        let mut size = best.0.pieces.iter().map(Vec::len).sum::<usize>();
        while size > 0 {
            let mut at = (0, 0);
            while at.0 < best.0.pieces.len() {
                let mut tried = best.0.clone();
                let piece = &mut tried.pieces[at.0];
                piece.drain(at.1..piece.len().min(at.1 + size));
                if let Err(difference) = tried.check() {
                    best = (tried, difference);
                } else {
                    at.1 += size;
                }
                if at.1 >= best.0.pieces[at.0].len() {
                    at = (at.0 + 1, 0);
                }
            }
            size /= 2;
        }
        best.0.pieces.retain(|piece| !piece.is_empty());
        best
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?} in {} pieces:", self.side, self.pieces.len())?;
        for piece in &self.pieces {
            writeln!(f, "  b\"{}\"", piece.escape_ascii())?;
        }
        Ok(())
    }
}

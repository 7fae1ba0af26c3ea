use super::Refusal;

/// Bytes that chunk extensions and trailers of one body may have, all together.
const MOST_BESIDES: usize = 16 * 1024;

/// Hexadecimal digits that a chunk's size may have: more than any size needs, fewer than overflow.
const MOST_DIGITS: u8 = 15;

/// How far a chunked body has been read (RFC 9112, section 7.1).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunks {
    at: At,
    /// Bytes of extensions and trailers so far.
    besides: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Size {
        size: u64,
        digits: u8,
    },
    Extension {
        size: u64,
    },
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataReturn,
    DataEnd,
    /// In a line after the last chunk; `empty` while nothing of it has come.
    Trailer {
        empty: bool,
    },
    TrailerEnd {
        empty: bool,
    },
    Over,
}

impl Default for At {
    fn default() -> Self {
        Self::Size { size: 0, digits: 0 }
    }
}

impl Chunks {
    pub(super) fn is_over(&self) -> bool {
        self.at == At::Over
    }

    /// How many of `bytes` belong to the body.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let mut taken = 0;
        while taken < bytes.len() && !self.is_over() {
            if let At::Data { left } = self.at {
                let data = usize::try_from(left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len() - taken);
                taken += data;
                let left = left - data as u64;
                self.at = if left == 0 {
                    At::DataReturn
                } else {
                    At::Data { left }
                };
            } else {
                self.at = self.step(bytes[taken]).ok_or(Refusal::Malformed)?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Where the next byte leads; `None` where it must not stand there.
    fn step(&mut self, byte: u8) -> Option<At> {
        if matches!(self.at, At::Extension { .. } | At::Trailer { .. }) {
            self.besides += 1;
            if self.besides > MOST_BESIDES {
                return None;
            }
        }
        match (self.at, byte) {
            (At::Size { size, digits }, _) if byte.is_ascii_hexdigit() && digits < MOST_DIGITS => {
                let digit = char::from(byte).to_digit(16)?;
                Some(At::Size {
                    size: size * 16 + u64::from(digit),
                    digits: digits + 1,
                })
            }
            (At::Size { digits: 0, .. }, _) => None,
            (At::Size { size, .. } | At::Extension { size }, b'\r') => Some(At::SizeEnd { size }),
            (At::Size { size, .. }, b';' | b' ' | b'\t') => Some(At::Extension { size }),
            (At::Extension { size }, _) if byte != b'\n' => Some(At::Extension { size }),
            (At::SizeEnd { size: left @ 1.. }, b'\n') => Some(At::Data { left }),
            (At::DataReturn, b'\r') => Some(At::DataEnd),
            (At::DataEnd, b'\n') => Some(At::default()),
            (At::Trailer { empty }, b'\r') => Some(At::TrailerEnd { empty }),
            (At::Trailer { .. }, _) if byte != b'\n' => Some(At::Trailer { empty: false }),
            (At::TrailerEnd { empty: true }, b'\n') => Some(At::Over),
            (At::SizeEnd { size: 0 } | At::TrailerEnd { empty: false }, b'\n') => {
                Some(At::Trailer { empty: true })
            }
            _ => None,
        }
    }
}

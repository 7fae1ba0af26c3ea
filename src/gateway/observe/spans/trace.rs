//! Trace context of a request: the W3C `traceparent` field.

/// Trace of a sampled request, with its parent and its own span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Span that the client named.
    pub parent: Parent,
    /// Id of the request's own span at its origin; never zero.
    pub origin: u64,
}

impl Trace {
    /// Builds the `traceparent` for the origin.
    ///
    /// It names the same trace, with the request's own span as parent. Its version is 00, whatever
    /// the client's version is (W3C Trace Context, section 3.2).
    pub fn traceparent(&self) -> String {
        let (trace, flags) = (self.parent.trace, self.parent.flags);
        format!("00-{trace:032x}-{:016x}-{flags:02x}", self.origin)
    }
}

/// Parent span of a request, in a sampled trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Id of the trace; never zero.
    pub trace: u128,
    /// Id of the span; never zero.
    pub span: u64,
    /// Known flags: sampled (1), which is set, and random (2).
    pub flags: u8,
}

impl Parent {
    /// Flag of a sampled trace.
    const SAMPLED: u8 = 1;
    /// Flag of a random trace id.
    const RANDOM: u8 = 2;

    /// Returns the parent that the `traceparent` fields of a request name.
    ///
    /// `None` if there is not exactly one field, if it is not valid, or if its trace is not
    /// sampled. See W3C Trace Context, section 3.2.
    pub fn sampled<'f>(mut fields: impl Iterator<Item = &'f [u8]>) -> Option<Self> {
        match (fields.next(), fields.next()) {
            (Some(field), None) => Self::read(field),
            _ => None,
        }
    }

    /// Parses one `traceparent` field: `version-trace-span-flags`, in hexadecimal digits.
    fn read(field: &[u8]) -> Option<Self> {
        // A later version may have a fifth part, whose meaning is unknown.
        let mut parts = field.splitn(5, |byte| *byte == b'-');
        let version = parts.next().and_then(|part| hex(part, 2))?;
        let trace = parts.next().and_then(|part| hex(part, 32))?;
        let span = parts.next().and_then(|part| hex(part, 16))?;
        let flags = parts.next().and_then(|part| hex(part, 2))?;
        // Version ff is invalid.
        let is_known_form = match version {
            0 => parts.next().is_none(),
            version => version < 0xff,
        };
        let (span, flags) = (u64::try_from(span).ok()?, u8::try_from(flags).ok()?);
        let is_sampled = flags & Self::SAMPLED != 0;
        let flags = flags & (Self::SAMPLED | Self::RANDOM);
        let parent = Self { trace, span, flags };
        (is_known_form && is_sampled && trace != 0 && span != 0).then_some(parent)
    }
}

/// Parses exactly `length` lowercase hexadecimal digits, at most 32.
fn hex(digits: &[u8], length: usize) -> Option<u128> {
    if digits.len() != length {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const PARENT: Parent = Parent {
        trace: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
        span: 0x00f0_67aa_0ba9_02b7,
        flags: 1,
    };

    #[test]
    fn spans_have_a_parent_only_as_the_recommendation_allows() {
        let with = |flags| Some(Parent { flags, ..PARENT });
        let later = VALID.replacen("00-", "01-", 1);
        // A field, and the parent that it names.
        let table = [
            (VALID.to_owned(), with(1)),
            (VALID.replace("-01", "-03"), with(3)),
            (VALID.replace("-01", "-ff"), with(3)),
            (VALID.replacen("00-", "cc-", 1), with(1)),
            (format!("{later}-what-comes"), with(1)),
            (VALID.replace("-01", "-00"), None),
            (VALID.replace("-01", "-02"), None),
            (VALID.replacen("00-", "ff-", 1), None),
            (format!("{VALID}-more"), None),
            (format!("{later}more"), None),
            (VALID.to_uppercase(), None),
            (VALID.replace("00f067aa0ba902b7", &"0".repeat(16)), None),
            (VALID.replace(&VALID[3..35], &"0".repeat(32)), None),
            (VALID[..54].to_owned(), None),
            (VALID.replace('-', "_"), None),
            (String::new(), None),
        ];
        for (field, expected) in table {
            let fields = [field.as_bytes()].into_iter();
            assert_eq!(Parent::sampled(fields), expected, "{field}");
        }
        let twice = [VALID.as_bytes(); 2].into_iter();
        assert_eq!(Parent::sampled(twice), None);
        assert_eq!(Parent::sampled([].into_iter()), None);
    }

    #[test]
    fn spans_of_the_origin_belong_to_the_trace_of_the_client() {
        let trace = Trace {
            parent: PARENT,
            origin: 0xb7,
        };
        let expected = "00-4bf92f3577b34da6a3ce929d0e0e4736-00000000000000b7-01";
        assert_eq!(trace.traceparent(), expected);
        assert!(Parent::sampled([expected.as_bytes()].into_iter()).is_some());
    }
}

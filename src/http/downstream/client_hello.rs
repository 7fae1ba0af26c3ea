//! The server name in the first message of a TLS connection (RFC 8446, section 4.1.2).

use tokio_rustls::rustls::pki_types::{IpAddr, ServerName};

/// The server name in `bytes`, if it is one that TLS does not allow, and so rustls refuses.
///
/// `bytes` is the beginning of a connection. Returns `None` for a name that is allowed, for an
/// address, which rustls ignores, and if the name is not within `bytes`, or not where it should be.
pub(super) fn invalid_name(bytes: &[u8]) -> Option<&[u8]> {
    let name = server_name(bytes)?;
    let text = str::from_utf8(name).ok();
    let is_valid =
        |text: &str| ServerName::try_from(text).is_ok() || IpAddr::try_from(text).is_ok();
    (!text.is_some_and(is_valid)).then_some(name)
}

/// The name of type `host_name` (RFC 6066, section 3).
fn server_name(bytes: &[u8]) -> Option<&[u8]> {
    const HANDSHAKE: u8 = 22;
    const CLIENT_HELLO: u8 = 1;
    const SERVER_NAME: u16 = 0;
    const HOST_NAME: u8 = 0;

    let mut hello = Reader(bytes);
    if hello.byte()? != HANDSHAKE {
        return None;
    }
    // The version and length of the record.
    hello.skip(4)?;
    if hello.byte()? != CLIENT_HELLO {
        return None;
    }
    // The length of the message, the version, and the random bytes.
    hello.skip(3 + 2 + 32)?;
    let session = hello.byte()?;
    hello.skip(usize::from(session))?;
    let suites = hello.number()?;
    hello.skip(usize::from(suites))?;
    let compressions = hello.byte()?;
    hello.skip(usize::from(compressions))?;
    // The length of all extensions.
    hello.skip(2)?;
    loop {
        let (kind, length) = (hello.number()?, hello.number()?);
        if kind != SERVER_NAME {
            hello.skip(usize::from(length))?;
            continue;
        }
        // The length of the list of names.
        hello.skip(2)?;
        if hello.byte()? != HOST_NAME {
            return None;
        }
        let length = hello.number()?;
        return hello.skip(usize::from(length));
    }
}

/// The bytes that are left. Each read returns `None` if they are too few.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn skip(&mut self, count: usize) -> Option<&'b [u8]> {
        let (skipped, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(skipped)
    }

    fn byte(&mut self) -> Option<u8> {
        self.skip(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.skip(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message with two extensions: one of no interest, and the name.
    fn hello(name: &[u8]) -> Vec<u8> {
        let number = |number: usize| u16::try_from(number).unwrap().to_be_bytes();
        let names = [&[0][..], &number(name.len()), name].concat();
        let extension = [&number(names.len())[..], &names].concat();
        let extensions = [
            &[0, 10, 0, 1, 9, 0, 0][..],
            &number(extension.len()),
            &extension,
        ]
        .concat();
        let body = [
            &[3, 3][..],
            &[7; 32],
            &[2, 1, 1],
            &[0, 2, 0x13, 1],
            &[1, 0],
            &number(extensions.len()),
            &extensions,
        ]
        .concat();
        let message = [&[1, 0][..], &number(body.len()), &body].concat();
        [&[22, 3, 1][..], &number(message.len()), &message].concat()
    }

    #[test]
    fn names_that_rustls_refuses_are_told_from_those_that_it_takes() {
        for valid in [
            "a.test",
            "A.TEST.",
            "a_b.test",
            "_x.test",
            "xn--a",
            "192.0.2.1",
            "::1",
        ] {
            assert_eq!(invalid_name(&hello(valid.as_bytes())), None, "{valid}");
        }
        for invalid in [
            "a.test:443",
            "*.test",
            "",
            "a..test",
            "[::1]",
            "a.1",
            "-a",
            "caf\u{e9}",
            "a b",
        ] {
            let hello = hello(invalid.as_bytes());
            assert_eq!(invalid_name(&hello), Some(invalid.as_bytes()), "{invalid}");
            for end in 0..hello.len() {
                assert_eq!(invalid_name(&hello[..end]), None, "{invalid}: {end}");
            }
        }
    }

    proptest! {
        #![proptest_config(crate::testing::config())]

        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>, name: Vec<u8>, at in 0_usize..200, by: u8) {
            let _any = invalid_name(&bytes);
            let mut hello = hello(&name[..name.len().min(300)]);
            if let Some(byte) = hello.get_mut(at) {
                *byte = by;
            }
            let _any = invalid_name(&hello);
        }
    }
}

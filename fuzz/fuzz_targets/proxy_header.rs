//! Fuzzes the parser of PROXY protocol headers.
//!
//! The verdict must not change as more bytes arrive, and a header must end where it says.

#![no_main]

use gateway::http::downstream::{MAX_PROXY_HEADER, parse_proxy_header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = parse_proxy_header(bytes);
    match whole {
        Ok(None) => assert!(bytes.len() < MAX_PROXY_HEADER),
        Ok(Some((_, length))) => {
            assert!(length <= bytes.len() && length <= MAX_PROXY_HEADER);
            assert_eq!(parse_proxy_header(&bytes[..length]), whole);
            assert_eq!(parse_proxy_header(&bytes[..length - 1]), Ok(None));
        }
        Err(_) => {}
    }
    for end in 0..bytes.len().min(300) {
        let known = parse_proxy_header(&bytes[..end]);
        assert!(known == Ok(None) || known == whole);
    }
});

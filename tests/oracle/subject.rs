//! Reads bytes in pieces with drip.

use gateway::http::message::framing::{empty_lines, end_of_head};
use gateway::http::message::{
    BodyDecoder, BodyLength, FieldTable, Fields, RequestHead, ResponseHead, Trailers, Version,
};

use crate::oracle::reading::{FieldList, Head, Reading, by_name};

/// Next action of drip on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Waits for more bytes.
    Waits,
    /// Refuses the bytes.
    Refuses,
    /// Closes after a complete message.
    Closes,
}

/// Returns the requests that drip reads, as a connection of [`gateway::http::downstream`] does.
pub fn requests(pieces: &[Vec<u8>]) -> (Vec<Reading>, End) {
    let mut readings = Vec::new();
    let (mut kept, mut searched) = (Vec::new(), 0);
    let mut body: Option<(Reading, BodyDecoder)> = None;
    for piece in pieces {
        kept.extend_from_slice(piece);
        loop {
            if let Some((reading, decoder)) = &mut body {
                if !decode(reading, decoder, &mut kept) {
                    readings.extend(body.map(|(reading, _)| reading));
                    return (readings, End::Refuses);
                }
                if !decoder.is_over() {
                    break;
                }
                readings.extend(body.take().map(|(reading, _)| reading));
                if readings.last().is_some_and(|last| !last.keeps) {
                    return (readings, End::Closes);
                }
            }
            kept.drain(..empty_lines(&kept));
            let is_whole = searched == 0 || end_of_head(&kept, searched).is_some();
            match is_whole.then(|| RequestHead::parse(&kept)) {
                None | Some(Ok(None)) => {
                    searched = kept.len();
                    break;
                }
                // This test opens no tunnels.
                Some(Ok(Some((head, _)))) if head.method() == b"CONNECT" => {
                    return (readings, End::Refuses);
                }
                Some(Err(_)) => return (readings, End::Refuses),
                Some(Ok(Some((head, end)))) => {
                    kept.drain(..end);
                    searched = 0;
                    let reading = Reading {
                        target: Some(head.target().to_vec()),
                        head: of_request(&head),
                        keeps: head.keeps_alive(),
                        ..Reading::default()
                    };
                    body = Some((reading, BodyDecoder::new(head.length())));
                }
            }
        }
    }
    readings.extend(body.map(|(reading, _)| reading));
    (readings, End::Waits)
}

/// Decodes the buffered bytes. Returns false if they are malformed.
fn decode(reading: &mut Reading, decoder: &mut BodyDecoder, kept: &mut Vec<u8>) -> bool {
    let Ok((data, used)) = decoder.decode(kept) else {
        reading.data.extend(&kept[..decoder.salvaged()]);
        return false;
    };
    reading.data.extend(&kept[..data]);
    kept.drain(..used);
    if decoder.is_over() {
        reading.whole = true;
        reading.trailers = decoder.trailers().map(of_trailers).unwrap_or_default();
    }
    true
}

fn of_request(head: &RequestHead) -> Head {
    let path = text(head.path_and_query());
    // The form in which an empty path is forwarded.
    let path = match path.as_bytes() {
        [] | [b'?', ..] => format!("/{path}"),
        _ => path,
    };
    let authority = head.authority().map(text).unwrap_or_default();
    Head {
        line: [text(head.method()), authority, path],
        is_old: head.version() == Version::Http10,
        fields: of_fields(head.fields()),
        interim: Vec::new(),
    }
}

/// Returns the response that drip reads, as a connection of [`gateway::origin`] does.
pub fn answer(pieces: &[Vec<u8>], to_head: bool) -> (Option<Reading>, End) {
    let mut kept = Vec::new();
    let mut interim = Vec::new();
    let mut body: Option<(Reading, BodyDecoder)> = None;
    let mut pieces = pieces.iter();
    loop {
        if let Some((reading, decoder)) = &mut body {
            if !decoder.is_over() && !decode(reading, decoder, &mut kept) {
                return (body.map(|(reading, _)| reading), End::Refuses);
            }
            reading.whole = decoder.is_over();
            if reading.whole {
                break;
            }
        } else if !kept.is_empty() {
            match ResponseHead::parse(&kept, &mut FieldTable::new(), to_head) {
                Ok(None) => {}
                // No request asked for another protocol.
                Ok(Some((head, _))) if head.status == 101 => return (None, End::Refuses),
                Err(_) => return (None, End::Refuses),
                Ok(Some((head, end))) => {
                    if head.is_interim() {
                        interim.push((head.status, of_fields(head.fields())));
                    } else {
                        let reading = Reading {
                            head: of_response(&head, std::mem::take(&mut interim)),
                            keeps: head.keeps_alive(),
                            ..Reading::default()
                        };
                        body = Some((reading, BodyDecoder::new(head.length)));
                    }
                    kept.drain(..end);
                    continue;
                }
            }
        }
        match pieces.next() {
            Some(piece) => kept.extend_from_slice(piece),
            None => break,
        }
    }
    let Some((mut reading, mut decoder)) = body else {
        return (None, End::Waits);
    };
    if !decoder.is_over() {
        // The connection ends here.
        reading.whole = decoder.end_of_connection().is_ok();
        reading.keeps = false;
        return (Some(reading), End::Waits);
    }
    // Bytes without a request follow, or are still to come.
    reading.keeps &= kept.is_empty() && pieces.all(Vec::is_empty);
    (Some(reading), End::Closes)
}

fn of_response(head: &ResponseHead<'_>, interim: Vec<(u16, FieldList)>) -> Head {
    if head.length == BodyLength::None {
        assert!(matches!(head.status, 204 | 304) || head.length.is_empty());
    }
    Head {
        line: [head.status.to_string(), text(head.reason()), String::new()],
        is_old: head.version == Version::Http10,
        fields: of_fields(head.fields()),
        interim,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn of_fields(fields: Fields<'_>) -> FieldList {
    by_name(
        fields
            .iter()
            .map(|(_, name, value)| (text(name), value.to_vec())),
    )
}

/// Returns the forwarded trailers, sorted for comparison.
pub fn of_trailers(trailers: &Trailers) -> FieldList {
    by_name(
        trailers
            .iter()
            .map(|(name, value)| (text(name), value.to_vec())),
    )
}

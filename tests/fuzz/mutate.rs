//! Bytes bent out of shape.

use crate::source::Source;

/// What parsers trip over.
const TOKENS: [&[u8]; 28] = [
    b"\0",
    b"\r\n",
    b"\n",
    b"\t",
    b" ",
    b"\"",
    b"\\",
    b",",
    b".",
    b"-",
    b"+",
    b"e999999",
    b"0",
    b"18446744073709551616",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    "\u{b2}\u{661}\u{2026}".as_bytes(),
    b"[",
    b"{\"a\":",
    b"]",
    b"}",
    b"\\ud800",
    b"<!DOCTYPE html>",
    b"true",
    b"%00%zz",
];

/// Up to eight changes, each of any kind and anywhere.
pub(crate) fn mutate(source: &mut Source<'_>, bytes: &mut Vec<u8>) {
    for _ in 0..source.below(9) {
        let at = source.below(bytes.len() + 1);
        let end = (at + source.length(64)).min(bytes.len());
        match source.below(9) {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << source.below(8);
                }
            }
            1 => {
                let byte = source.byte();
                bytes.insert(at, byte);
            }
            2 => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at),
            4 => {
                let part = bytes[at..end].to_vec();
                let to = source.below(bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            5 => {
                let token = *source.pick(&TOKENS);
                bytes.splice(at..at, token.iter().copied());
            }
            6 => {
                let token = *source.pick(&TOKENS);
                bytes.splice(at..end, token.iter().copied());
            }
            7 => {
                let swapped = |byte: &mut u8| {
                    *byte =
                        if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
                };
                bytes[at..end].iter_mut().for_each(swapped);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = source.byte();
                }
            }
        }
    }
}

/// One of these, bent or as it is; now and then bytes of no meaning.
pub(crate) fn bent(source: &mut Source<'_>, from: &[&[u8]]) -> Vec<u8> {
    if source.one_in(12) {
        let count = source.length(200);
        return source.bytes(count);
    }
    let mut bytes = source.pick(from).to_vec();
    if !source.one_in(3) {
        mutate(source, &mut bytes);
    }
    bytes
}

/// The same as text; what is not UTF-8 is replaced.
#[allow(dead_code)] // not every target under fuzz/ needs text
pub(crate) fn bent_text(source: &mut Source<'_>, from: &[&str]) -> String {
    let from: Vec<&[u8]> = from.iter().map(|text| text.as_bytes()).collect();
    String::from_utf8_lossy(&bent(source, &from)).into_owned()
}

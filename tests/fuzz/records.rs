//! What stands in a journal, bent: it is read as it was written or refused,
//! and whatever is read is written back the same.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use oncekey::engine::{Advice, AttemptKind, Entry, KeyOrigin, MethodKind, Owner, Reach, Time, Verdict, Why};
use oncekey::journal::codec::{
    decode_answer, decode_entry, decode_request, encode_answer, encode_entry, encode_request,
};
use oncekey::journal::{Fingerprint, StoredAnswer, StoredBody, StoredRequest};

use crate::mutate::mutate;
use crate::source::Source;

fn entry(source: &mut Source<'_>) -> Entry {
    let at = Time::from_millis(source.number());
    let verdict = Verdict::new(
        Reach::Accepted { knows_key: source.one_in(2) },
        Advice::RetryAfter(std::time::Duration::new(source.number(), 999_999_999)),
        Why::InProgress,
    );
    match source.below(5) {
        0 => Entry::Created {
            at,
            key: KeyOrigin::Given { first_sent: Some(at) },
            method: MethodKind::Idempotent,
            gone_is_done: true,
        },
        1 => Entry::Resumed { owner: Owner::new(u128::from(source.number()) << 64), at },
        2 => Entry::Started { attempt: u32::MAX, kind: AttemptKind::Poll, timeout: std::time::Duration::MAX, at },
        3 => Entry::Resolved { effect: oncekey::Effect::Applied, by: "ana: \u{0}\"\\ é".into(), at },
        _ => Entry::Ended { attempt: 1, verdict, at, next_at: Some(at) },
    }
}

fn value(source: &mut Source<'_>) -> HeaderValue {
    let bytes: Vec<u8> = (0..source.length(20)).map(|_| source.byte()).collect();
    HeaderValue::from_bytes(&bytes).unwrap_or_else(|_| HeaderValue::from_static("a\"b\\"))
}

fn body(source: &mut Source<'_>) -> Vec<u8> {
    (0..source.length(60)).map(|_| source.byte()).collect()
}

pub(crate) fn check(source: &mut Source<'_>) {
    match source.below(3) {
        0 => {
            let entry = entry(source);
            let line = encode_entry(&entry);
            assert_eq!(decode_entry(&line).as_ref().ok(), Some(&entry), "{line}");
            let mut bytes = line.into_bytes();
            mutate(source, &mut bytes);
            if let Ok(read) = decode_entry(&String::from_utf8_lossy(&bytes)) {
                assert_eq!(decode_entry(&encode_entry(&read)).ok(), Some(read));
            }
        }
        1 => {
            let kept = match source.below(3) {
                0 => StoredBody::None,
                1 => StoredBody::LeftOut(Fingerprint::from_bytes([source.byte(); 32])),
                _ => StoredBody::Kept(body(source).into()),
            };
            let headers = vec![(HeaderName::from_static("x-a"), value(source)); source.below(3)];
            let url = "https://user@api.example:8443/%20?q=%C3%A9#f".parse().unwrap();
            let request = StoredRequest::new(Method::from_bytes(b"M-SEARCH").unwrap(), url, headers, kept);
            let mut bytes = encode_request(&request);
            assert_eq!(decode_request(&bytes).ok().as_ref(), Some(&request));
            mutate(source, &mut bytes);
            if let Ok(read) = decode_request(&bytes) {
                assert_eq!(decode_request(&encode_request(&read)).ok(), Some(read));
            }
        }
        _ => {
            let mut headers = HeaderMap::new();
            for _ in 0..source.below(3) {
                headers.append("x-a", value(source));
            }
            let answer = StoredAnswer::new(StatusCode::CREATED, headers, body(source));
            let mut bytes = encode_answer(&answer);
            assert_eq!(decode_answer(&bytes).ok().as_ref(), Some(&answer));
            mutate(source, &mut bytes);
            if let Ok(read) = decode_answer(&bytes) {
                assert_eq!(decode_answer(&encode_answer(&read)).ok(), Some(read));
            }
        }
    }
}

//! Keys: which strings are some, and what is printed of them.

use oncekey::profile::KeyFormat;
use oncekey::{IdempotencyKey, OperationId};

use crate::mutate::bent_text;
use crate::source::Source;

const KEYS: [&str; 10] = [
    "3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506",
    "3F2A91C4-5B6D-4E7F-8A90-B1C2D3E4F506",
    "00000000-0000-0000-0000-000000000000",
    "3f2a91c45b6d4e7f8a90b1c2d3e4f506",
    "order-7",
    "\"3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506\"",
    "k",
    " padded ",
    "cl\u{e9}-0xb7ef\u{2026}375a",
    "IdempotencyKey(3f2a91c4\u{2026})",
];

fn text(source: &mut Source<'_>) -> String {
    match source.below(8) {
        0 => "k".repeat(source.length(700)),
        1 => {
            let count = source.length(320);
            (0..count).map(|_| char::from(b'!' + u8::try_from(source.below(94)).unwrap())).collect()
        }
        _ => bent_text(source, &KEYS),
    }
}

/// A key, by the words of its documentation.
fn is_key(text: &str) -> bool {
    (1..=300).contains(&text.len()) && text.chars().all(|c| ('!'..='~').contains(&c) && c != '"' && c != '\\')
}

fn is_lower_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    groups == [8, 4, 4, 4, 12]
        && digits.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
        && !digits.chars().all(|c| c == '0')
        && !digits.chars().all(|c| c == 'f')
}

pub(crate) fn check(source: &mut Source<'_>) {
    let text = text(source);
    let operation = OperationId::from(text.as_str());
    assert_eq!(operation.as_str(), text);
    assert_eq!(KeyFormat::uuid().check(&text).is_ok(), is_lower_uuid(&text), "{text:?}");
    let (least, most) = (source.length(400), source.length(400));
    let fits = is_key(&text) && text.len() >= least && text.len() <= most;
    assert_eq!(KeyFormat::visible(least..=most).check(&text).is_ok(), fits, "{least}..={most}: {text:?}");
    assert_eq!(KeyFormat::visible(least..=most).quoted().check(&text).is_ok(), fits, "{least}..={most}: {text:?}");

    let key = match IdempotencyKey::parse(&text) {
        Ok(key) => key,
        Err(error) => {
            assert!(!is_key(&text), "{text:?}: {error}");
            let words = format!("{error} {error:?}");
            // The words themselves hold no digit.
            let telling = text.len() >= 8 && text.contains(|c: char| c.is_ascii_digit());
            assert!(!telling || !words.contains(&text), "{words}");
            return;
        }
    };
    assert!(is_key(&text), "{text:?} was taken");
    assert_eq!(key.as_str(), text);
    assert_eq!(IdempotencyKey::parse(key.as_str()).unwrap(), key);
    let shown = format!("{key:?}");
    let part = shown.strip_prefix("IdempotencyKey(").and_then(|rest| rest.strip_suffix("\u{2026})")).unwrap();
    assert!(text.starts_with(part) && part.len() <= 8 && part.len() <= text.len() / 2, "{shown}");
}

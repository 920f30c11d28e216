//! What is needed of JSON here: whether a body is what it says, and the codes in it.

use serde::de::IgnoredAny;
use serde_json::Value;

/// No error body is longer; one that is settles nothing, since its codes are not looked for.
pub(super) const LONGEST_PARSED: usize = 256 * 1024;

/// Some servers begin with a byte order mark, which JSON has no place for.
pub(crate) fn without_bom(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// The body as JSON, if it is some and not beyond reason.
pub(super) fn parse(body: &[u8]) -> Option<Value> {
    if body.len() > LONGEST_PARSED {
        return None;
    }
    serde_json::from_slice(without_bom(body)).ok()
}

/// Whether the whole body is one JSON value.
pub(super) fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(without_bom(body)).is_ok()
}

/// Whether its first and its last byte are those of one JSON value: enough
/// where the length was proved, at a cost that does not grow with the body.
pub(super) fn begins_and_ends_like_json(body: &[u8]) -> bool {
    let body = without_bom(body).trim_ascii();
    let (Some(first), Some(last)) = (body.first(), body.last()) else {
        return false;
    };
    match first {
        b'{' => *last == b'}' && body.len() > 1,
        b'[' => *last == b']' && body.len() > 1,
        b'"' => *last == b'"' && body.len() > 1,
        b't' | b'f' | b'n' => matches!(body, b"true" | b"false" | b"null"),
        b'-' | b'0'..=b'9' => last.is_ascii_digit(),
        _ => false,
    }
}

/// Whether an object was begun.
pub(super) fn begins_like_an_object(body: &[u8]) -> bool {
    without_bom(body).trim_ascii_start().starts_with(b"{")
}

/// Whether a page came, whatever its content type says.
pub(super) fn begins_like_html(body: &[u8]) -> bool {
    let body = without_bom(body).trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|start| body.len() >= start.len() && body[..start.len()].eq_ignore_ascii_case(start))
}

/// A place in a JSON body: names parted by dots, `[]` for every element of a
/// list, as in `errors[].code`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Each,
}

impl Path {
    pub(super) fn parse(path: &str) -> Option<Self> {
        let mut steps = Vec::new();
        for part in path.split('.') {
            let name = part.trim_end_matches("[]");
            if !name.is_empty() {
                steps.push(Step::Field(name.to_owned()));
            } else if !steps.is_empty() || name.len() == part.len() {
                return None;
            }
            if name.contains(['[', ']']) {
                return None;
            }
            steps.extend(std::iter::repeat_n(Step::Each, (part.len() - name.len()) / 2));
        }
        Some(Self(steps))
    }

    /// The strings and numbers there, in their order.
    pub(super) fn scalars(&self, value: &Value) -> Vec<Scalar> {
        let mut found = Vec::new();
        collect(value, &self.0, &mut found);
        found
    }
}

fn collect(value: &Value, steps: &[Step], found: &mut Vec<Scalar>) {
    match steps.split_first() {
        None => match value {
            Value::String(text) => found.push(Scalar::Text(text.clone())),
            Value::Number(number) => found.push(Scalar::Number(number.to_string())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
        },
        Some((Step::Field(name), rest)) => {
            if let Some(inner) = value.get(name.as_str()) {
                collect(inner, rest, found);
            }
        }
        Some((Step::Each, rest)) => {
            for inner in value.as_array().into_iter().flatten() {
                collect(inner, rest, found);
            }
        }
    }
}

/// A code as it stood in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Text(String),
    Number(String),
}

impl Scalar {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_reach_fields_and_every_element() {
        let body =
            parse(br#"{"code":"A","error":{"code":7},"errors":[{"code":"B"},{"code":"C"},{}],"l":["x"]}"#).unwrap();
        let at = |path: &str| -> Vec<String> {
            Path::parse(path).unwrap().scalars(&body).iter().map(|s| s.as_str().to_owned()).collect()
        };
        assert_eq!(at("code"), ["A"]);
        assert_eq!(at("error.code"), ["7"]);
        assert_eq!(at("errors[].code"), ["B", "C"]);
        assert_eq!(at("l[]"), ["x"]);
        assert_eq!(at("error"), Vec::<String>::new());
        assert_eq!(at("code.deeper"), Vec::<String>::new());
        for bad in ["", ".", "a..b", "a[", "a[0].b", "a.", ".a", "a.[]"] {
            assert_eq!(Path::parse(bad), None, "{bad}");
        }
        assert_eq!(
            Path::parse("[].code").unwrap().scalars(&parse(br#"[{"code":"D"}]"#).unwrap()),
            [Scalar::Text("D".into())]
        );
    }

    #[test]
    fn both_ends_tell_a_cut_body() {
        for whole in ["{}", "[1]", "\"a\"", "12", "-1.5", "true", "false", "null", " {\"a\":1}\n", "\u{feff}{}"] {
            assert!(begins_and_ends_like_json(whole.as_bytes()), "{whole}");
            assert!(is_json(whole.as_bytes()), "{whole}");
        }
        for cut in ["", " ", "{", "{\"id\":\"", "[1", "\"", "tru", "fals", "nul", "-", "<html>", "\u{feff}"] {
            assert!(!begins_and_ends_like_json(cut.as_bytes()), "{cut}");
            assert!(!is_json(cut.as_bytes()), "{cut}");
        }
    }

    #[test]
    fn deep_and_long_bodies_are_no_danger() {
        let deep = "[".repeat(200_000);
        assert_eq!(parse(deep.as_bytes()), None);
        assert!(!is_json(deep.as_bytes()));
        let long = format!("{{\"code\":\"{}\"}}", "x".repeat(LONGEST_PARSED));
        assert_eq!(parse(long.as_bytes()), None);
    }

    #[test]
    fn a_page_is_a_page_whatever_it_claims() {
        assert!(begins_like_html(b"\n <!DOCTYPE HTML><p>"));
        assert!(begins_like_html(b"<HTML>"));
        assert!(!begins_like_html(b"<htm"));
        assert!(!begins_like_html(b"<?xml version='1.0'?>"));
    }
}

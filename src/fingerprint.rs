use std::fmt;

use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::Method;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use sha2::Sha256;
use url::Url;

use crate::submission::is_credential;

/// What tells one request from another without holding it: HMAC-SHA-256 over
/// method, URL, content type, the caller's headers, account and body. A plain
/// hash of a card number could be guessed.
///
/// A JSON body counts in its canonical form: keys sorted, numbers as they were
/// written, no space between. Credentials do not count, nor do headers that
/// differ from call to call by their nature (`Date`, `Traceparent`,
/// `Tracestate`, `Baggage`, `X-Request-Id`, `X-Correlation-Id`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The one of these bytes, as a journal gave them back.
    ///
    /// ```
    /// use oncekey::journal::Fingerprint;
    ///
    /// let kept = Fingerprint::from_bytes([0xab; 32]); // from a column of 32 bytes
    /// assert_eq!(format!("{kept:?}"), "Fingerprint(abab…)");
    /// ```
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes, to be stored.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory};
    /// use oncekey::{Client, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let url = "http://127.0.0.1:1/payments";
    /// # let bodies = [r#"{"amount":450,"to":"ana"}"#, r#"{ "to": "ana", "amount": 450 }"#];
    /// # for (id, body) in ["order-7", "order-8"].into_iter().zip(bodies) {
    /// #     let _ = client.post(url).operation(id).header("content-type", "application/json").body(body).send().await;
    /// # }
    /// // Two operations, whose JSON says the same in another order.
    /// let one = journal.load(&"order-7".into()).await?.unwrap();
    /// let other = journal.load(&"order-8".into()).await?.unwrap();
    /// assert_eq!(one.identity().fingerprint().as_bytes(), other.identity().fingerprint().as_bytes());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The one of these bytes as they are.
    pub(crate) fn of_body(key: &[u8; 32], body: &[u8]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
        mac.update(b"oncekey body 1");
        mac.update(body);
        Self(mac.finalize().into_bytes().into())
    }

    pub(crate) fn of(key: &[u8; 32], request: &Fingerprinted<'_>) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
        let mut part = |bytes: &[u8]| {
            mac.update(&(bytes.len() as u64).to_le_bytes());
            mac.update(bytes);
        };
        part(b"oncekey request 1");
        part(request.method.as_str().as_bytes());
        part(request.url.as_str().as_bytes());
        part(request.account.as_bytes());
        let content_type = request.headers.iter().find(|(name, _)| *name == CONTENT_TYPE);
        part(&content_type.map(|(_, value)| value.as_bytes().to_ascii_lowercase()).unwrap_or_default());
        let mut counted: Vec<_> = request.headers.iter().filter(|(name, value)| counts(name, value)).collect();
        counted.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        part(&(counted.len() as u64).to_le_bytes());
        for (name, value) in counted {
            part(name.as_str().as_bytes());
            part(value.as_bytes());
        }
        let body = request.body.map_or(&[][..], |body| body);
        match canonical(body) {
            Some(canonical) => {
                part(b"json");
                part(&canonical);
            }
            None => {
                part(b"bytes");
                part(body);
            }
        }
        Self(mac.finalize().into_bytes().into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, ..] = self.0;
        write!(f, "Fingerprint({first:02x}{second:02x}…)")
    }
}

/// What a fingerprint is taken of.
#[derive(Clone, Copy)]
pub(crate) struct Fingerprinted<'a> {
    pub(crate) method: &'a Method,
    pub(crate) url: &'a Url,
    /// The caller's, without the key's.
    pub(crate) headers: &'a [(HeaderName, HeaderValue)],
    pub(crate) body: Option<&'a Bytes>,
    pub(crate) account: &'a str,
}

/// Headers that differ from call to call by their nature.
const PER_CALL: [&str; 6] = ["date", "traceparent", "tracestate", "baggage", "x-request-id", "x-correlation-id"];

fn counts(name: &HeaderName, value: &HeaderValue) -> bool {
    *name != CONTENT_TYPE
        && *name != CONTENT_LENGTH
        && !is_credential(name, value)
        && !PER_CALL.contains(&name.as_str())
}

/// Deeper than this a body counts byte for byte.
const DEEPEST: usize = 64;

/// The canonical form of a JSON body; `None` for anything else, and for an
/// object that names a key twice, whose meaning is the reader's.
fn canonical(body: &[u8]) -> Option<Vec<u8>> {
    let value: &RawValue = serde_json::from_slice(body).ok()?;
    let mut out = Vec::with_capacity(body.len());
    write(value, &mut out, DEEPEST)?;
    Some(out)
}

fn write(value: &RawValue, out: &mut Vec<u8>, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let text = value.get();
    match text.as_bytes().first()? {
        b'{' => {
            let Members(mut members) = serde_json::from_str(text).ok()?;
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return None;
            }
            out.push(b'{');
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                serde_json::to_writer(&mut *out, name).ok()?;
                out.push(b':');
                write(member, out, depth)?;
            }
            out.push(b'}');
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out, depth)?;
            }
            out.push(b']');
        }
        b'"' => {
            let string: String = serde_json::from_str(text).ok()?;
            serde_json::to_writer(&mut *out, &string).ok()?;
        }
        _ => out.extend_from_slice(text.as_bytes()),
    }
    Some(())
}

/// An object's members in their order, repeated names included.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Option<String> {
        canonical(json.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn json_counts_in_canonical_form() {
        assert_eq!(text(r#" {"b": [1.0, 1e2, 12345678901234567890123], "a":"\u0041"} "#).unwrap(), {
            r#"{"a":"A","b":[1.0,1e2,12345678901234567890123]}"#
        });
        assert_eq!(text(r#"{"a":{"d":null,"c":true}}"#).unwrap(), r#"{"a":{"c":true,"d":null}}"#);
        assert_eq!(text(r#"{"a":1,"a":2}"#), None, "a key twice");
        assert_eq!(text("amount=1"), None);
        assert_eq!(text(""), None);
        assert_eq!(text(&format!("{}{}", "[".repeat(100), "]".repeat(100))), None, "too deep");
        assert_eq!(text(&"[".repeat(100_000)), None);
    }

    #[test]
    fn what_tells_two_requests_apart() {
        let url = Url::parse("https://api.example/pay?x=1").unwrap();
        let other_url = Url::parse("https://api.example/pay?x=2").unwrap();
        let header =
            |name: &'static str, value: &'static str| (HeaderName::from_static(name), HeaderValue::from_static(value));
        let json = [header("content-type", "application/json")];
        let body = Bytes::from_static(br#"{"amount":1,"to":"a"}"#);
        let base = Fingerprinted { method: &Method::POST, url: &url, headers: &json, body: Some(&body), account: "" };
        let of = |request: &Fingerprinted<'_>| Fingerprint::of(&[7; 32], request);
        let print = of(&base);
        let reordered = Bytes::from_static(br#"{ "to": "a", "amount": 1 }"#);
        assert_eq!(of(&Fingerprinted { body: Some(&reordered), ..base }), print);
        let spoken =
            [header("content-type", "Application/JSON"), header("authorization", "Bearer a"), header("date", "x")];
        assert_eq!(of(&Fingerprinted { headers: &spoken, ..base }), print, "credentials and dates do not count");
        let dearer = Bytes::from_static(br#"{"amount":1.0,"to":"a"}"#);
        let tagged = [json[0].clone(), header("x-tenant", "b")];
        for (what, other) in [
            ("method", Fingerprinted { method: &Method::PUT, ..base }),
            ("url", Fingerprinted { url: &other_url, ..base }),
            ("type", Fingerprinted { headers: &[], ..base }),
            ("header", Fingerprinted { headers: &tagged, ..base }),
            ("account", Fingerprinted { account: "acct_1", ..base }),
            ("body", Fingerprinted { body: Some(&dearer), ..base }),
            ("no body", Fingerprinted { body: None, ..base }),
        ] {
            assert_ne!(of(&other), print, "{what}");
        }
        assert_ne!(Fingerprint::of(&[8; 32], &base), print, "each journal has its own key");
        assert_eq!(format!("{:?}", Fingerprint::from_bytes([0xab; 32])), "Fingerprint(abab…)");
    }
}

//! JSON in canonical form: keys sorted, numbers kept as the text they were sent as.
//!
//! `serde_json::Value` would read `1.0`, `1.00` and a long integer as the same `f64`, or not,
//! depending on a feature that another crate may turn on.

pub(super) enum Json {
    Object(Vec<(String, Self)>),
    Array(Vec<Self>),
    /// Canonical text of a string, number, boolean or null.
    Scalar(String),
}

impl Json {
    /// `None` for what is not JSON.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        // Checks the grammar, and limits the depth so that the reader below can't overflow the stack.
        serde_json::from_slice::<serde_json::Value>(bytes).ok()?;
        let rest = std::str::from_utf8(bytes).ok()?;
        Reader { rest }.value()
    }

    /// The first member of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(n, _)| n == name).map(|(_, v)| v),
            Self::Array(_) | Self::Scalar(_) => None,
        }
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Scalar(text) => text.parse().ok(),
            Self::Object(_) | Self::Array(_) => None,
        }
    }

    pub(super) fn canonical(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Object(members) => {
                let mut members = members.iter().collect::<Vec<_>>();
                members.sort_by(|(a, _), (b, _)| a.cmp(b));
                out.push('{');
                for (i, (name, value)) in members.into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(&quoted(name));
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
            Self::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Scalar(text) => out.push_str(text),
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Reads what was found to be JSON; `None` is never expected, and never a panic.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Option<Json> {
        match self.peek()? {
            b'{' => {
                let mut members = Vec::new();
                self.list(b'}', |reader| {
                    let name = reader.string()?;
                    reader.expect(b':')?;
                    members.push((name, reader.value()?));
                    Some(())
                })?;
                Some(Json::Object(members))
            }
            b'[' => {
                let mut items = Vec::new();
                self.list(b']', |reader| {
                    items.push(reader.value()?);
                    Some(())
                })?;
                Some(Json::Array(items))
            }
            b'"' => Some(Json::Scalar(quoted(&self.string()?))),
            _ => {
                let ends = [',', ']', '}', ' ', '\t', '\n', '\r'];
                let end = self.rest.find(ends).unwrap_or(self.rest.len());
                Some(Json::Scalar(self.take(end)?.to_owned()))
            }
        }
    }

    fn list(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(1)?;
        while self.peek()? != close {
            if self.peek()? == b',' {
                self.take(1)?;
            }
            self.peek()?;
            item(self)?;
        }
        self.expect(close)
    }

    fn string(&mut self) -> Option<String> {
        self.peek()?;
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        while *bytes.get(end)? != b'"' {
            end += if *bytes.get(end)? == b'\\' { 2 } else { 1 };
        }
        serde_json::from_str(self.take(end + 1)?).ok()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then_some(())?;
        self.take(1)?;
        Some(())
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.as_bytes().first().copied()
    }

    fn take(&mut self, len: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    fn canonical(text: &str) -> Option<String> {
        Json::parse(text.as_bytes()).map(|json| json.canonical())
    }

    #[test]
    fn keys_are_sorted_and_numbers_stay_text() {
        let text = r#" { "b" : [ 1.00 , 1e2, -0, [] , {} ], "a" : "x\u0041\"" , "\u0061b": null } "#;
        let expected = r#"{"a":"xA\"","ab":null,"b":[1.00,1e2,-0,[],{}]}"#;
        assert_eq!(canonical(text).as_deref(), Some(expected));
        assert_ne!(canonical("[1.0]"), canonical("[1.00]"));
        assert_eq!(canonical("[12345678901234567890123]").as_deref(), Some("[12345678901234567890123]"));
    }

    #[test]
    fn what_is_not_json_is_none() {
        let deep = "[".repeat(100_000);
        for text in ["", "{", "{]", "a=b", "\"\\ud800\"", "[1,]", "{\"a\" 1}", &deep] {
            assert_eq!(canonical(text), None, "{text:.20}");
        }
        assert!(Json::parse(b"\"\xff\"").is_none());
    }
}

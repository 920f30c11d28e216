use std::fmt;
use std::ops::RangeInclusive;

/// Which keys an API accepts, and how they are spelt on the wire.
///
/// A key that does not fit is refused before anything is sent, never changed:
/// the server may know another spelling of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFormat {
    min: usize,
    max: usize,
    alphabet: Alphabet,
    quoted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alphabet {
    Uuid,
    Word,
    Visible,
}

/// Longer than any key that a published API takes (Toss Payments: 300).
const LONGEST: usize = 300;

impl KeyFormat {
    /// A UUID in lower case, with hyphens, and neither all zeros nor all ones.
    ///
    /// ```
    /// use oncekey::profile::KeyFormat;
    ///
    /// let format = KeyFormat::uuid();
    /// assert!(format.check("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506").is_ok());
    /// assert!(format.check("3F2A91C4-5B6D-4E7F-8A90-B1C2D3E4F506").is_err()); // perhaps another key to the server
    /// assert!(format.check("00000000-0000-0000-0000-000000000000").is_err());
    /// ```
    pub const fn uuid() -> Self {
        Self { min: 36, max: 36, alphabet: Alphabet::Uuid, quoted: false }
    }

    /// ASCII letters, digits and hyphens, this many of them; never more than
    /// 300. Up to 36 of them fit wherever a UUID does.
    ///
    /// ```
    /// use oncekey::profile::KeyFormat;
    ///
    /// let format = KeyFormat::word(4..=36);
    /// assert!(format.check("order-7-payment").is_ok());
    /// assert!(format.check("order:7").is_err());
    /// assert_eq!(format.to_string(), "4 to 36 letters, digits and hyphens");
    /// ```
    pub const fn word(length: RangeInclusive<usize>) -> Self {
        Self { alphabet: Alphabet::Word, ..Self::visible(length) }
    }

    /// Visible ASCII characters (`!` to `~`) without `"` and `\`, this many of
    /// them; never more than 300.
    ///
    /// ```
    /// use oncekey::profile::KeyFormat;
    ///
    /// let format = KeyFormat::visible(0..=1000);
    /// assert!(format.check("order:7/payment").is_ok());
    /// assert!(format.check("order 7").is_err());
    /// assert_eq!(format.to_string(), "1 to 300 visible characters"); // as far as any API goes
    /// ```
    pub const fn visible(length: RangeInclusive<usize>) -> Self {
        let (start, end) = (*length.start(), *length.end());
        Self {
            min: if start == 0 { 1 } else { start },
            max: if end > LONGEST { LONGEST } else { end },
            alphabet: Alphabet::Visible,
            quoted: false,
        }
    }

    /// The same, sent between double quotes, as a structured-field string
    /// (RFC 9651, 3.3.3). Quotes are added here, never by the caller.
    ///
    /// ```
    /// use oncekey::profile::KeyFormat;
    ///
    /// let format = KeyFormat::visible(1..=64).quoted();
    /// assert!(format.check("order-7").is_ok()); // goes out as "order-7", in quotes
    /// assert!(format.check("\"order-7\"").is_err());
    /// assert_eq!(format.to_string(), "1 to 64 visible characters, in double quotes");
    /// ```
    #[must_use]
    pub const fn quoted(mut self) -> Self {
        self.quoted = true;
        self
    }

    pub(crate) const fn is_quoted(&self) -> bool {
        self.quoted
    }

    pub(super) fn is_possible(&self) -> Result<(), std::borrow::Cow<'static, str>> {
        if self.min > self.max {
            return Err("the key format's shortest key is longer than its longest".into());
        }
        Ok(())
    }

    pub(super) const fn takes_a_uuid(&self) -> bool {
        self.min <= 36 && self.max >= 36
    }

    /// What any API could take; a profile may ask for more.
    pub(crate) const fn any() -> Self {
        Self::visible(1..=LONGEST)
    }

    /// Checks a key.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// let format = Profile::adyen().key_format().clone(); // of up to 64 characters
    /// assert_eq!(format.check("order-7"), Ok(()));
    /// let error = format.check(&"order-7-".repeat(9)).unwrap_err();
    /// assert_eq!(error.to_string(), "the idempotency key is longer than this API takes");
    /// ```
    ///
    /// # Errors
    ///
    /// [`KeyError`], which says what is wrong with it and never repeats it.
    pub fn check(&self, key: &str) -> Result<(), KeyError> {
        if key.is_empty() {
            return Err(KeyError("the idempotency key is empty"));
        }
        if key.trim() != key {
            return Err(KeyError("the idempotency key has white space around it"));
        }
        if key.contains(['"', '\\']) {
            return Err(KeyError(
                "the idempotency key holds a quote or a backslash; give it bare, the profile adds quotes where they belong",
            ));
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError("the idempotency key holds a character that is not visible ASCII"));
        }
        if self.alphabet == Alphabet::Uuid {
            return check_uuid(key);
        }
        if self.alphabet == Alphabet::Word && !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(KeyError("the idempotency key holds more than letters, digits and hyphens"));
        }
        if key.len() > self.max {
            return Err(KeyError("the idempotency key is longer than this API takes"));
        }
        if key.len() < self.min {
            return Err(KeyError("the idempotency key is shorter than this API takes"));
        }
        Ok(())
    }
}

impl fmt::Display for KeyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { min, max, .. } = self;
        let what = match self.alphabet {
            Alphabet::Uuid => "UUID in lower case".to_owned(),
            Alphabet::Word => format!("{min} to {max} letters, digits and hyphens"),
            Alphabet::Visible if min == max => format!("{min} visible characters"),
            Alphabet::Visible => format!("{min} to {max} visible characters"),
        };
        f.write_str(&what)?;
        f.write_str(if self.quoted { ", in double quotes" } else { "" })
    }
}

fn check_uuid(key: &str) -> Result<(), KeyError> {
    let hyphen_at = |index| matches!(index, 8 | 13 | 18 | 23);
    let shaped = key.len() == 36
        && key.bytes().enumerate().all(|(i, b)| if hyphen_at(i) { b == b'-' } else { b.is_ascii_hexdigit() });
    if !shaped {
        return Err(KeyError("the idempotency key is not a UUID with hyphens (8-4-4-4-12), which this profile wants"));
    }
    if key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(KeyError(
            "the idempotency key is a UUID in upper case; it is not changed, since the server may know that spelling: give it in lower case",
        ));
    }
    let mut digits = key.bytes().filter(|byte| *byte != b'-');
    let first = digits.next().unwrap_or(b'0');
    if matches!(first, b'0' | b'f') && digits.all(|byte| byte == first) {
        return Err(KeyError("the idempotency key is the nil or the max UUID, which cannot be unique"));
    }
    Ok(())
}

/// Why a key was refused; the key itself is not repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(&'static str);

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506";

    #[track_caller]
    fn refused(format: &KeyFormat, key: &str, word: &str) {
        let error = format.check(key).unwrap_err().to_string();
        assert!(error.contains(word), "{key:?}: {error}");
        assert!(key.len() < 8 || !error.contains(key), "{error}");
    }

    #[test]
    fn a_uuid_is_lower_case_bare_and_unique() {
        let uuid = KeyFormat::uuid();
        uuid.check(GOOD).unwrap();
        refused(&uuid, "", "empty");
        refused(&uuid, " ", "white space");
        refused(&uuid, &format!("{GOOD} "), "white space");
        refused(&uuid, &format!("\"{GOOD}\""), "quote");
        refused(&uuid, "0xb7ef\u{2026}375a", "ASCII");
        refused(&uuid, "a\tb", "ASCII");
        refused(&uuid, "a\r\nX-Evil: 1", "ASCII");
        refused(&uuid, &"k".repeat(300), "UUID");
        refused(&uuid, &GOOD.to_uppercase(), "upper case");
        refused(&uuid, &GOOD.replace('-', ""), "UUID");
        refused(&uuid, "{3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f50}", "UUID");
        refused(&uuid, "00000000-0000-0000-0000-000000000000", "nil");
        refused(&uuid, "ffffffff-ffff-ffff-ffff-ffffffffffff", "max");
    }

    #[test]
    fn other_formats_bound_length_and_characters() {
        let format = KeyFormat::visible(4..=10);
        format.check("order:1").unwrap();
        refused(&format, "abc", "shorter");
        refused(&format, "abcdefghijk", "longer");
        refused(&format, "a b c d", "ASCII");
        refused(&format, "a\"bcd", "quote");
        KeyFormat::any().check(&"k".repeat(300)).unwrap();
        refused(&KeyFormat::visible(0..=usize::MAX), &"k".repeat(301), "longer");
        refused(&KeyFormat::visible(0..=5), "", "empty");
        let word = KeyFormat::word(16..=36);
        word.check(GOOD).unwrap();
        refused(&word, "order_0000000000001", "hyphens");
        refused(&word, "order-1", "shorter");
        assert_eq!(word.to_string(), "16 to 36 letters, digits and hyphens");
        assert_eq!(KeyFormat::uuid().quoted().to_string(), "UUID in lower case, in double quotes");
    }
}

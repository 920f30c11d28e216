//! What may be printed of a key, a path and a set of headers.

use http::HeaderMap;
use std::fmt;

/// The first eight characters of a key and `…`; of a short key, a quarter.
pub(super) struct Key<'a>(pub(super) &'a str);

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = if self.0.len() >= 16 { 8 } else { self.0.len() / 4 };
        let shown = self.0.chars().take(most).collect::<String>();
        f.write_str(&shown)?;
        f.write_str("…")
    }
}

/// A path without its query.
pub(super) struct Path<'a>(pub(super) &'a str);

impl fmt::Debug for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once('?') {
            Some((path, _)) => write!(f, "{path}?…"),
            None => f.write_str(self.0),
        }
    }
}

/// The names of headers.
pub(super) struct Names<'a>(pub(super) &'a HeaderMap);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys().map(http::HeaderName::as_str)).finish()
    }
}

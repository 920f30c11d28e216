//! Name and value pairs for a query or a form, from any serialisable type.
//!
//! By way of JSON text, which keeps the order of fields, instead of by another
//! crate and its own serialiser.

use std::fmt;

use serde::Serialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The pairs of a struct, a map, or a list of pairs. What is absent (`None`)
/// is left out; a value must be a string, a number or a boolean.
pub(crate) fn of<T: Serialize + ?Sized>(value: &T) -> Result<Vec<(String, String)>, &'static str> {
    let text = serde_json::to_string(value).map_err(|_| "it cannot be serialised")?;
    // The reader's own error would repeat the value.
    serde_json::Deserializer::from_str(&text)
        .deserialize_any(Pairs)
        .map_err(|_| "it must be a struct, a map or a list of pairs, of text, numbers and booleans")
}

/// Appends them to a URL's query, or makes a form's body of them.
pub(crate) fn encode<'a, T: url::form_urlencoded::Target>(
    target: &mut url::form_urlencoded::Serializer<'a, T>,
    pairs: &[(String, String)],
) {
    for (name, value) in pairs {
        target.append_pair(name, value);
    }
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a struct, a map or a list of pairs")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            pairs.extend(scalar(value)?.map(|value| (name, value)));
        }
        Ok(pairs)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some((name, value)) = list.next_element::<(Value, Value)>()? {
            let name = scalar(name)?.ok_or_else(|| de::Error::custom("a name is absent"))?;
            pairs.extend(scalar(value)?.map(|value| (name, value)));
        }
        Ok(pairs)
    }
}

fn scalar<E: de::Error>(value: Value) -> Result<Option<String>, E> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(yes) => Ok(Some(yes.to_string())),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::String(text) => Ok(Some(text)),
        Value::Array(_) | Value::Object(_) => Err(E::custom("a value is a list or a map, where text is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Filter<'a> {
        zone: &'a str,
        limit: Option<u32>,
        after: Option<&'a str>,
        exact: bool,
        rate: f64,
    }

    fn query<T: Serialize + ?Sized>(value: &T) -> String {
        let mut target = url::form_urlencoded::Serializer::new(String::new());
        encode(&mut target, &of(value).unwrap());
        target.finish()
    }

    #[test]
    fn structs_maps_and_lists_keep_their_order() {
        let filter = Filter { zone: "a&b ñ", limit: Some(10), after: None, exact: true, rate: 0.5 };
        assert_eq!(query(&filter), "zone=a%26b+%C3%B1&limit=10&exact=true&rate=0.5");
        assert_eq!(query(&[("b", "2"), ("a", "1"), ("b", "3")]), "b=2&a=1&b=3");
        assert_eq!(query(&vec![("n".to_owned(), 7_u64)]), "n=7");
        assert_eq!(query(&std::collections::BTreeMap::from([("k", "v")])), "k=v");
        assert_eq!(query(&()), "");
    }

    #[test]
    fn what_is_no_pair_is_an_error() {
        assert!(of("text").is_err());
        assert!(of(&7).is_err());
        assert!(of(&[("a", vec![1])]).is_err());
        assert!(of(&["alone"]).is_err());
    }
}

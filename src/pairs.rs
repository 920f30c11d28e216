//! Name and value pairs for a query or a form, from any serialisable type.
//!
//! Written out here since the crate that reqwest uses for it would add two to
//! the tree. Numbers are sent as they are, to the last digit.

use std::fmt;

use serde::ser::{self, Impossible, Serialize, Serializer};

type Pairs = Vec<(String, String)>;

/// The pairs of a struct, a map, or a list of pairs. What is absent (`None`)
/// is left out; a value must be text, a finite number or a boolean.
pub(crate) fn of<T: Serialize + ?Sized>(value: &T) -> Result<Pairs, NoPairs> {
    let mut pairs = Pairs::new();
    value.serialize(Outer(&mut pairs))?;
    Ok(pairs)
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

/// What cannot be written as names and values. It repeats no value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoPairs(&'static str);

impl fmt::Display for NoPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for NoPairs {}

impl ser::Error for NoPairs {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self("its own `Serialize` failed")
    }
}

const SHAPE: NoPairs = NoPairs("it must be a struct, a map or a list of pairs");
const VALUE: NoPairs = NoPairs("each value must be text, a number or a boolean");

/// Refuses these kinds of values.
macro_rules! refuse {
    ($error:expr; $($method:ident($($kind:ty),*))*) => {
        $(fn $method(self, $(_: $kind),*) -> Result<Self::Ok, Self::Error> { Err($error) })*
    };
}

macro_rules! refuse_compounds {
    ($error:expr; $($method:ident($($kind:ty),*) -> $compound:ident)*) => {
        $(fn $method(self, $(_: $kind),*) -> Result<Self::$compound, Self::Error> { Err($error) })*
    };
}

/// The outside: what has names and values in it.
struct Outer<'a>(&'a mut Pairs);

impl<'a> Serializer for Outer<'a> {
    type Ok = ();
    type Error = NoPairs;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Impossible<(), NoPairs>;
    type SerializeTupleVariant = Impossible<(), NoPairs>;
    type SerializeMap = Fields<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Impossible<(), NoPairs>;

    refuse! { SHAPE;
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_f32(f32)
        serialize_f64(f64) serialize_char(char) serialize_str(&str) serialize_bytes(&[u8])
        serialize_unit_variant(&'static str, u32, &'static str)
    }
    refuse_compounds! { SHAPE;
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant
    }

    fn serialize_none(self) -> Result<(), NoPairs> {
        Ok(())
    }
    fn serialize_unit(self) -> Result<(), NoPairs> {
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), NoPairs> {
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NoPairs> {
        value.serialize(self)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), NoPairs> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), NoPairs> {
        Err(SHAPE)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self, NoPairs> {
        Ok(self)
    }
    fn serialize_tuple(self, _: usize) -> Result<Self, NoPairs> {
        Ok(self)
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Fields<'a>, NoPairs> {
        Ok(Fields { pairs: self.0, name: None })
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields<'a>, NoPairs> {
        Ok(Fields { pairs: self.0, name: None })
    }
}

impl Outer<'_> {
    fn pair<T: Serialize + ?Sized>(&mut self, pair: &T) -> Result<(), NoPairs> {
        let mut two = Vec::with_capacity(2);
        pair.serialize(Two(&mut two))?;
        let mut two = two.into_iter();
        match (two.next(), two.next(), two.next()) {
            (Some(Some(name)), Some(value), None) => {
                self.0.extend(value.map(|value| (name, value)));
                Ok(())
            }
            _ => Err(SHAPE),
        }
    }
}

impl ser::SerializeSeq for Outer<'_> {
    type Ok = ();
    type Error = NoPairs;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, pair: &T) -> Result<(), NoPairs> {
        self.pair(pair)
    }
    fn end(self) -> Result<(), NoPairs> {
        Ok(())
    }
}

impl ser::SerializeTuple for Outer<'_> {
    type Ok = ();
    type Error = NoPairs;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, pair: &T) -> Result<(), NoPairs> {
        self.pair(pair)
    }
    fn end(self) -> Result<(), NoPairs> {
        Ok(())
    }
}

/// A struct's fields, or a map's entries.
struct Fields<'a> {
    pairs: &'a mut Pairs,
    name: Option<String>,
}

impl ser::SerializeMap for Fields<'_> {
    type Ok = ();
    type Error = NoPairs;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), NoPairs> {
        self.name = name.serialize(Scalar)?;
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoPairs> {
        let name = self.name.take().ok_or(SHAPE)?;
        self.pairs.extend(value.serialize(Scalar)?.map(|value| (name, value)));
        Ok(())
    }
    fn end(self) -> Result<(), NoPairs> {
        Ok(())
    }
}

impl ser::SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = NoPairs;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), NoPairs> {
        self.pairs.extend(value.serialize(Scalar)?.map(|value| (name.to_owned(), value)));
        Ok(())
    }
    fn end(self) -> Result<(), NoPairs> {
        Ok(())
    }
}

/// A pair: a tuple or a list of two.
struct Two<'a>(&'a mut Vec<Option<String>>);

macro_rules! elements {
    ($($of:ident)*) => {
        $(impl ser::$of for Two<'_> {
            type Ok = ();
            type Error = NoPairs;
            fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoPairs> {
                self.0.push(value.serialize(Scalar)?);
                Ok(())
            }
            fn end(self) -> Result<(), NoPairs> {
                Ok(())
            }
        })*
    };
}

elements! { SerializeSeq SerializeTuple }

impl Serializer for Two<'_> {
    type Ok = ();
    type Error = NoPairs;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Impossible<(), NoPairs>;
    type SerializeTupleVariant = Impossible<(), NoPairs>;
    type SerializeMap = Impossible<(), NoPairs>;
    type SerializeStruct = Impossible<(), NoPairs>;
    type SerializeStructVariant = Impossible<(), NoPairs>;

    refuse! { SHAPE;
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_f32(f32)
        serialize_f64(f64) serialize_char(char) serialize_str(&str) serialize_bytes(&[u8]) serialize_none()
        serialize_unit() serialize_unit_struct(&'static str) serialize_unit_variant(&'static str, u32, &'static str)
    }
    refuse_compounds! { SHAPE;
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant
        serialize_map(Option<usize>) -> SerializeMap
        serialize_struct(&'static str, usize) -> SerializeStruct
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NoPairs> {
        value.serialize(self)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), NoPairs> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), NoPairs> {
        Err(SHAPE)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self, NoPairs> {
        Ok(self)
    }
    fn serialize_tuple(self, _: usize) -> Result<Self, NoPairs> {
        Ok(self)
    }
}

/// One value as text; `None` where it is absent.
struct Scalar;

macro_rules! displayed {
    ($($method:ident($kind:ty))*) => {
        $(fn $method(self, value: $kind) -> Result<Option<String>, NoPairs> { Ok(Some(value.to_string())) })*
    };
}

impl Serializer for Scalar {
    type Ok = Option<String>;
    type Error = NoPairs;
    type SerializeSeq = Impossible<Self::Ok, NoPairs>;
    type SerializeTuple = Impossible<Self::Ok, NoPairs>;
    type SerializeTupleStruct = Impossible<Self::Ok, NoPairs>;
    type SerializeTupleVariant = Impossible<Self::Ok, NoPairs>;
    type SerializeMap = Impossible<Self::Ok, NoPairs>;
    type SerializeStruct = Impossible<Self::Ok, NoPairs>;
    type SerializeStructVariant = Impossible<Self::Ok, NoPairs>;

    displayed! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_i128(i128) serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
        serialize_u128(u128) serialize_char(char) serialize_str(&str)
    }
    refuse! { VALUE; serialize_bytes(&[u8]) }
    refuse_compounds! { VALUE;
        serialize_seq(Option<usize>) -> SerializeSeq
        serialize_tuple(usize) -> SerializeTuple
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant
        serialize_map(Option<usize>) -> SerializeMap
        serialize_struct(&'static str, usize) -> SerializeStruct
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant
    }

    fn serialize_f32(self, value: f32) -> Result<Option<String>, NoPairs> {
        finite(value.is_finite(), value)
    }
    fn serialize_f64(self, value: f64) -> Result<Option<String>, NoPairs> {
        finite(value.is_finite(), value)
    }
    fn serialize_none(self) -> Result<Option<String>, NoPairs> {
        Ok(None)
    }
    fn serialize_unit(self) -> Result<Option<String>, NoPairs> {
        Ok(None)
    }
    fn serialize_unit_struct(self, name: &'static str) -> Result<Option<String>, NoPairs> {
        Ok(Some(name.to_owned()))
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<Option<String>, NoPairs> {
        Ok(Some(name.to_owned()))
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Option<String>, NoPairs> {
        value.serialize(self)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Option<String>, NoPairs> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Option<String>, NoPairs> {
        Err(VALUE)
    }
}

/// A number that is none must not vanish or be sent as a word.
fn finite(is_finite: bool, value: impl fmt::Display) -> Result<Option<String>, NoPairs> {
    if is_finite { Ok(Some(value.to_string())) } else { Err(NoPairs("a number is not finite")) }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Serialize)]
    struct Filter<'a> {
        zone: &'a str,
        limit: Option<u32>,
        after: Option<&'a str>,
        exact: bool,
        rate: f64,
        kind: Kind,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Income,
    }

    fn query<T: Serialize + ?Sized>(value: &T) -> String {
        let mut target = url::form_urlencoded::Serializer::new(String::new());
        encode(&mut target, &of(value).unwrap());
        target.finish()
    }

    #[test]
    fn structs_maps_and_lists_keep_their_order() {
        let filter =
            Filter { zone: "a&b ñ", limit: Some(10), after: None, exact: true, rate: 0.5, kind: Kind::Income };
        assert_eq!(query(&filter), "zone=a%26b+%C3%B1&limit=10&exact=true&rate=0.5&kind=income");
        assert_eq!(query(&[("b", "2"), ("a", "1"), ("b", "3")]), "b=2&a=1&b=3");
        assert_eq!(query(&vec![("n".to_owned(), 7_u64)]), "n=7");
        assert_eq!(query(&[["a", "1"], ["b", "2"]]), "a=1&b=2");
        assert_eq!(query(&std::collections::BTreeMap::from([("k", "v")])), "k=v");
        assert_eq!(query(&Some([("a", "1")])), "a=1");
        assert_eq!(query(&()), "");
    }

    #[test]
    fn numbers_are_sent_to_the_last_digit() {
        assert_eq!(query(&[("a", 20_000_000_000_000_000_001_u128)]), "a=20000000000000000001");
        assert_eq!(query(&[("a", 15.026_223_516_593_511_f64)]), "a=15.026223516593511");
        assert_eq!(query(&[("a", 0.1_f32)]), "a=0.1");
        assert_eq!(query(&[("a", i128::MIN)]), format!("a={}", i128::MIN));
        assert_eq!(of(&[("a", f64::NAN)]), Err(NoPairs("a number is not finite")));
        assert_eq!(of(&[("a", f32::INFINITY)]), Err(NoPairs("a number is not finite")));
    }

    #[test]
    fn what_is_no_pair_is_an_error_that_repeats_nothing() {
        assert_eq!(of("text"), Err(SHAPE));
        assert_eq!(of(&7), Err(SHAPE));
        assert_eq!(of(&[("a", vec![1])]), Err(VALUE));
        assert_eq!(of(&["alone"]), Err(SHAPE));
        assert_eq!(of(&[("a", "b", "c")]), Err(SHAPE));
        assert_eq!(of(&[(None::<&str>, "b")]), Err(SHAPE));
    }
}

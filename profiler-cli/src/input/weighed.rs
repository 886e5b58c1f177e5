//! A deserializer that weighs what its values take in memory.
//!
//! A few bytes of JSON may become a thousand: every field that a row lacks has its default. So the elements of lists and maps
//! are weighed before there is memory for them, whatever they are elements of.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// What the allocator takes for a text beside its bytes, which the size of the file limits.
const TEXT_BYTES: usize = 32;

/// How many bytes are left.
#[derive(Debug)]
pub(super) struct Scales {
    left: Cell<usize>,
}

impl Scales {
    pub(super) const fn new(max_bytes: usize) -> Self {
        Self {
            left: Cell::new(max_bytes),
        }
    }

    /// Returns `true` if something was heavier than what was left.
    pub(super) fn are_tipped(&self) -> bool {
        self.left.get() == 0
    }

    fn weigh<E: Error>(&self, bytes: usize) -> Result<(), E> {
        self.left.set(self.left.get().saturating_sub(bytes));
        if self.are_tipped() {
            return Err(E::custom("too much memory"));
        }
        Ok(())
    }
}

/// A deserializer, or what a visitor gets from one, whose values are weighed.
#[derive(Clone, Copy)]
pub(super) struct Weighed<'s, T> {
    inner: T,
    scales: &'s Scales,
    /// These are the elements of a list or a map, and no fields of a struct, which are weighed with it.
    is_list: bool,
}

impl<'s, T> Weighed<'s, T> {
    pub(super) const fn new(inner: T, scales: &'s Scales) -> Self {
        Self {
            inner,
            scales,
            is_list: false,
        }
    }

    fn around<U>(&self, inner: U) -> Weighed<'s, U> {
        Weighed {
            inner,
            scales: self.scales,
            is_list: false,
        }
    }

    fn list(self) -> Self {
        Self {
            is_list: true,
            ..self
        }
    }

    fn weigh_element<V, E: Error>(&self) -> Result<(), E> {
        if self.is_list {
            self.scales.weigh(size_of::<V>().max(1))?;
        }
        Ok(())
    }
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*) $(as $list:ident)?;)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.around(visitor)$(.$list())?;
            self.inner.$method($($argument,)* visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Weighed<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any();
        deserialize_option();
        deserialize_str();
        deserialize_string();
        deserialize_seq() as list;
        deserialize_map() as list;
        deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
        deserialize_newtype_struct(name: &'static str);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes byte_buf unit unit_struct
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_identifier(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_ignored_any(visitor)
    }
}

macro_rules! visit {
    ($($method:ident($type:ty);)*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Weighed<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(bool);
        visit_i64(i64);
        visit_u64(u64);
        visit_f64(f64);
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.scales.weigh(TEXT_BYTES)?;
        self.inner.visit_str(text)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.scales.weigh(TEXT_BYTES)?;
        self.inner.visit_borrowed_str(text)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.around(inner);
        self.inner.visit_some(inner)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.around(inner);
        self.inner.visit_newtype_struct(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        let (scales, is_list) = (self.scales, self.is_list);
        self.inner.visit_seq(Weighed {
            inner: list,
            scales,
            is_list,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let (scales, is_list) = (self.scales, self.is_list);
        self.inner.visit_map(Weighed {
            inner: map,
            scales,
            is_list,
        })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        let data = self.around(data);
        self.inner.visit_enum(data)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Weighed<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.around(deserializer);
        self.inner.deserialize(deserializer)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Weighed<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.weigh_element::<S::Value, A::Error>()?;
        let seed = self.around(seed);
        self.inner.next_element_seed(seed)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Weighed<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.weigh_element::<S::Value, A::Error>()?;
        let seed = self.around(seed);
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.weigh_element::<S::Value, A::Error>()?;
        let seed = self.around(seed);
        self.inner.next_value_seed(seed)
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Weighed<'_, A> {
    type Error = A::Error;
    type Variant = A::Variant;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, A::Variant), A::Error> {
        self.inner.variant_seed(seed)
    }
}

//! Reasons of losses, as programs read them.

/// A reason for which something is missing, with its key in JSON.
pub(crate) trait Reason: Copy + 'static {
    /// All reasons, in the order in which the summary lists them.
    const ALL: &'static [Self];

    /// Returns the key of the reason in JSON.
    fn key(self) -> &'static str;
}

/// Numbers by reason as a map, for serde's `with`.
pub(crate) mod counts {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{Deserializer, MapAccess, Visitor};
    use serde::ser::Serializer;

    use super::Reason;

    pub(crate) fn serialize<R: Reason, S: Serializer>(
        counts: &[(R, u64)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(counts.iter().map(|(reason, count)| (reason.key(), count)))
    }

    /// Reads the reasons that this version knows. Newer versions may have others.
    pub(crate) fn deserialize<'de, R: Reason, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(R, u64)>, D::Error> {
        from.deserialize_map(Counts(PhantomData))
    }

    struct Counts<R>(PhantomData<R>);

    impl<'de, R: Reason> Visitor<'de> for Counts<R> {
        type Value = Vec<(R, u64)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("numbers by reason")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut counts = Vec::new();
            while let Some((key, count)) = map.next_entry::<String, u64>()? {
                let known = R::ALL.iter().find(|reason| reason.key() == key);
                counts.extend(known.map(|reason| (*reason, count)));
            }
            Ok(counts)
        }
    }
}

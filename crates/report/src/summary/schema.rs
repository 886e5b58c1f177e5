//! The version of a summary's JSON.

/// The version of the JSON that this version of the profiler writes, and the newest that it reads.
///
/// A new key does not change it: readers ignore keys that they do not know, and give missing ones their defaults. It
/// grows when a key changes its meaning or its unit.
pub(super) const VERSION: u64 = 1;

/// Stands in a summary for the version of its JSON, so that a newer version is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schema;

#[cfg(feature = "serde")]
mod with_serde {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    use super::{Schema, VERSION};

    impl Serialize for Schema {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.serialize_u64(VERSION)
        }
    }

    impl<'de> Deserialize<'de> for Schema {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let version = u64::deserialize(from)?;
            if version > VERSION {
                return Err(D::Error::custom(format!(
                    "the summary has schema version {version}, and this version of the profiler reads up to {VERSION}: \
                     use the version that wrote it, or a newer one"
                )));
            }
            Ok(Self)
        }
    }
}

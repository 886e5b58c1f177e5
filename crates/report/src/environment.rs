//! Where and how the times were measured.

use super::text::Field;
use super::text::json::{array, object, string};

/// Where and how the times were measured: what must agree before two summaries may be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Environment {
    /// The name of the program's file.
    pub program: String,
    /// The system's id of the process.
    pub process: u32,
    /// The rank of the process in its job, if a launcher set one.
    pub rank: Option<u64>,
    /// The name of the machine.
    pub host: String,
    /// The operating system and the processor's architecture, such as `linux x86_64`.
    pub system: String,
    /// The number of processors that the program may use.
    pub processors: u32,
    /// `true` if the profiler was compiled with debug assertions, as in a development build.
    pub debug_build: bool,
    /// The version of the profiler.
    pub profiler_version: String,
    /// The names of the CUDA devices, by ordinal; empty if CUDA is not used.
    pub devices: Vec<String>,
    /// The version of CUDA that the driver supports, such as `13.0`; `None` if CUDA is not used.
    pub driver: Option<String>,
    /// The `PROFILER_*` variables that were set, with their values, by name.
    #[cfg_attr(feature = "serde", serde(with = "variables"))]
    pub settings: Vec<(String, String)>,
    /// When the profiler was first used, in nanoseconds since the Unix epoch.
    pub start_unix_ns: i64,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

impl Environment {
    /// Returns the environment as a JSON object. The keys are the names of the fields.
    pub(super) fn to_json(&self) -> String {
        let settings = self.settings.iter();
        let settings: Vec<String> = settings
            .map(|(name, value)| format!("{}:{}", string(name), string(value)))
            .collect();
        object([
            Field::text("program", &self.program),
            Field::raw("process", self.process),
            Field::optional("rank", self.rank),
            Field::text("host", &self.host),
            Field::text("system", &self.system),
            Field::raw("processors", self.processors),
            Field::raw("debug_build", self.debug_build),
            Field::text("profiler_version", &self.profiler_version),
            Field::raw(
                "devices",
                array(self.devices.iter().map(|name| string(name))),
            ),
            Field::optional_text("driver", self.driver.as_deref()),
            Field::raw("settings", format!("{{{}}}", settings.join(","))),
            Field::raw("start_unix_ns", self.start_unix_ns),
        ])
    }
}

/// Variables with their values as a map, for serde's `with`.
#[cfg(feature = "serde")]
mod variables {
    use std::fmt;

    use serde::de::{Deserializer, MapAccess, Visitor};
    use serde::ser::Serializer;

    type Variables = Vec<(String, String)>;

    pub(super) fn serialize<S: Serializer>(
        variables: &[(String, String)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(variables.iter().map(|(name, value)| (name, value)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Variables, D::Error> {
        from.deserialize_map(InOrder)
    }

    struct InOrder;

    impl<'de> Visitor<'de> for InOrder {
        type Value = Variables;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the values of variables by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Variables, A::Error> {
            let mut variables = Vec::new();
            while let Some(variable) = map.next_entry()? {
                variables.push(variable);
            }
            Ok(variables)
        }
    }
}

//! Counters: what their names and keys say of units and devices.

use std::collections::{BTreeMap, BTreeSet};

use profiler_report::Counter;
use profiler_report::internal::InOrder as _;

use super::event::Id;
use super::tracks::Tracks;

/// The units that `profiler-runtime` writes as keys, as other programs may too.
const UNITS: [&str; 5] = ["bytes", "W", "%", "MHz", "°C"];

/// A counter: its name, what it counts, its device, its process and its id.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CounterKey {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) device: Option<u32>,
    /// Missing in files of our own, where processes do not tell counters apart.
    pub(super) process: Id,
    /// The `id` of its events, which tells counters of one name and process apart.
    pub(super) id: Id,
}

/// Returns a counter for each key. The name says the process and the id where several have the same name.
pub(super) fn tracks(
    counters: BTreeMap<CounterKey, Vec<(i64, f64)>>,
    tracks: &Tracks,
) -> Vec<Counter> {
    let mut alike: BTreeMap<_, (BTreeSet<Id>, BTreeSet<Id>)> = BTreeMap::new();
    let what = |key: &CounterKey| (key.name.clone(), key.unit.clone(), key.device);
    for key in counters.keys() {
        let (processes, ids) = alike.entry(what(key)).or_default();
        processes.insert(key.process.clone());
        ids.insert(key.id.clone());
    }
    let mut named = Vec::with_capacity(counters.len());
    for (key, mut samples) in counters {
        samples.order_by_key(|sample| sample.0);
        let (processes, ids) = alike
            .get(&what(&key))
            .map_or((0, 0), |(processes, ids)| (processes.len(), ids.len()));
        let mut counter = Counter {
            name: key.name,
            unit: key.unit,
            device: key.device,
            samples,
            ..Counter::default()
        };
        if ids > 1 {
            match &key.id {
                Id::Missing => {}
                Id::Number(id) => counter.name = format!("{}[{id}]", counter.name),
                Id::Text(id) => counter.name = format!("{}[{id}]", counter.name),
            }
        }
        if processes > 1 {
            let process = tracks.process_label(&key.process);
            counter.name = format!("{} of {process}", counter.name);
        }
        named.push(counter);
    }
    named
}

/// Returns the counter of a value. An event of the name `GPU 0 power (W)` with the key `W` is the power of device 0 in watts.
/// If `profiler-runtime` wrote the file, the unit is known.
pub(super) fn counter_key(event: &str, key: &str, is_own: bool) -> CounterKey {
    let named = without_unit(event, key);
    let is_unit = if is_own {
        // The key of a counter without a unit, whatever its name is.
        key != "value" && named.is_some()
    } else {
        UNITS.contains(&key)
    };
    let whole = named.filter(|_| is_unit).unwrap_or(event);
    let (device, name) =
        device_of(whole).map_or((None, whole), |(device, name)| (Some(device), name));
    let is_name = is_unit || matches!(key, "value" | "count") || key == event;
    let is_memory = || !is_own && event.to_ascii_lowercase().contains("memory");
    CounterKey {
        name: if is_name {
            name.to_owned()
        } else {
            format!("{name}: {key}")
        },
        // Tools that do not name the unit count bytes.
        unit: match key {
            _ if is_unit => key,
            _ if is_memory() => "bytes",
            _ => "",
        }
        .to_owned(),
        device,
        process: Id::Missing,
        id: Id::Missing,
    }
}

/// Returns a name without the unit in parentheses at its end; `None` if it does not end so.
fn without_unit<'n>(name: &'n str, unit: &str) -> Option<&'n str> {
    let name = name.strip_suffix(')')?.strip_suffix(unit)?;
    name.strip_suffix(" (")
}

/// Returns the ordinal and the rest of `GPU 0 power`. The number in `GPU 0 of nvidia-smi power` is no ordinal.
fn device_of(name: &str) -> Option<(u32, &str)> {
    let (ordinal, rest) = name.strip_prefix("GPU ")?.split_once(' ')?;
    let is_ordinal = !rest.is_empty() && !rest.starts_with("of nvidia-smi");
    Some((ordinal.parse().ok().filter(|_| is_ordinal)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_devices_are_read_from_names_and_keys() {
        for (event, key, (name, unit, device)) in [
            ("GPU 0 power (W)", "W", ("power", "W", Some(0))),
            (
                "GPU 12 memory clock (MHz)",
                "MHz",
                ("memory clock", "MHz", Some(12)),
            ),
            (
                "GPU 1 memory in use (bytes)",
                "bytes",
                ("memory in use", "bytes", Some(1)),
            ),
            (
                "GPU 1 clocks held back",
                "value",
                ("clocks held back", "", Some(1)),
            ),
            (
                "GPU 2 of nvidia-smi power (W)",
                "W",
                ("GPU 2 of nvidia-smi power", "W", None),
            ),
            (
                "GPU scopes in flight",
                "value",
                ("GPU scopes in flight", "", None),
            ),
            (
                "CUDA memory reserved (bytes)",
                "bytes",
                ("CUDA memory reserved", "bytes", None),
            ),
            ("queue", "count", ("queue", "", None)),
            ("memory", "heap", ("memory: heap", "bytes", None)),
            ("cpu", "user", ("cpu: user", "", None)),
            ("power", "W", ("power", "W", None)),
        ] {
            let found = counter_key(event, key, false);
            assert_eq!(
                (&*found.name, &*found.unit, found.device),
                (name, unit, device),
                "{event}"
            );
        }
        for (event, key, name, unit) in [
            ("queue (jobs)", "jobs", "queue", "jobs"),
            ("memory", "value", "memory", ""),
            ("batch (value)", "value", "batch (value)", ""),
        ] {
            let found = counter_key(event, key, true);
            assert_eq!((&*found.name, &*found.unit), (name, unit));
        }
    }
}

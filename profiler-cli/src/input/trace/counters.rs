//! Counters: what their names and keys say of units and devices.

/// The units that `profiler-runtime` writes as keys.
const UNITS: [&str; 5] = ["bytes", "W", "%", "MHz", "°C"];

/// A counter: its name, what it counts, and its device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CounterKey {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) device: Option<u32>,
    /// It comes from changes of memory, of which `profiler-runtime` also writes counters.
    pub(super) is_of_changes: bool,
}

/// Returns the counter of a value. An event of the name `GPU 0 power (W)` with the key `W` is the power of device 0 in watts.
pub(super) fn counter_key(event: &str, key: &str, is_own: bool) -> CounterKey {
    let unit = UNITS.into_iter().find(|unit| *unit == key);
    let whole = match unit {
        Some(unit) => without_unit(event, unit),
        None => event,
    };
    let (device, name) =
        device_of(whole).map_or((None, whole), |(device, name)| (Some(device), name));
    let is_name = unit.is_some() || matches!(key, "value" | "count") || key == event;
    let is_memory = || event.to_ascii_lowercase().contains("memory");
    CounterKey {
        name: if is_name {
            name.to_owned()
        } else if is_own {
            format!("{name} {key}")
        } else {
            format!("{name}: {key}")
        },
        // Tools that do not name the unit count bytes.
        unit: unit.unwrap_or(if is_memory() { "bytes" } else { "" }),
        device,
        is_of_changes: false,
    }
}

/// Returns a name without the unit in parentheses at its end.
fn without_unit<'n>(name: &'n str, unit: &str) -> &'n str {
    let before = name
        .strip_suffix(')')
        .and_then(|name| name.strip_suffix(unit));
    before
        .and_then(|name| name.strip_suffix(" ("))
        .unwrap_or(name)
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
        for (event, key, is_own, (name, unit, device)) in [
            ("GPU 0 power (W)", "W", true, ("power", "W", Some(0))),
            (
                "GPU 12 memory clock (MHz)",
                "MHz",
                true,
                ("memory clock", "MHz", Some(12)),
            ),
            (
                "GPU 1 memory in use (bytes)",
                "bytes",
                true,
                ("memory in use", "bytes", Some(1)),
            ),
            (
                "GPU 1 clocks held back",
                "value",
                true,
                ("clocks held back", "", Some(1)),
            ),
            (
                "GPU 2 of nvidia-smi power (W)",
                "W",
                true,
                ("GPU 2 of nvidia-smi power", "W", None),
            ),
            (
                "GPU",
                "scopes in flight",
                true,
                ("GPU scopes in flight", "", None),
            ),
            (
                "CUDA memory",
                "reserved",
                true,
                ("CUDA memory reserved", "bytes", None),
            ),
            ("host memory", "bytes", true, ("host memory", "bytes", None)),
            ("queue", "count", false, ("queue", "", None)),
            ("memory", "heap", false, ("memory: heap", "bytes", None)),
            ("cpu", "user", false, ("cpu: user", "", None)),
            ("power", "W", false, ("power", "W", None)),
        ] {
            let found = counter_key(event, key, is_own);
            assert_eq!(
                (&*found.name, found.unit, found.device),
                (name, unit, device),
                "{event}"
            );
        }
    }
}

//! Field values: many readings of a device by one call.

use std::ffi::c_ulong;

use super::Code;
use crate::declare::{c_struct, constants};

constants! {
    /// Energy since the driver was loaded, in millijoules.
    pub const ENERGY: u32 = NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION(83);
    /// Bytes sent over `NVLink`, in KiB.
    pub const NVLINK_SENT: u32 = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX(138);
    /// Bytes received over `NVLink`, in KiB.
    pub const NVLINK_RECEIVED: u32 = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX(139);
    /// Mean power in milliwatts.
    pub const POWER_AVERAGE: u32 = NVML_FI_DEV_POWER_AVERAGE(185);
    /// Power of the moment in milliwatts.
    pub const POWER_INSTANT: u32 = NVML_FI_DEV_POWER_INSTANT(186);
    /// Bytes sent over `PCIe`.
    pub const PCIE_SENT: u32 = NVML_FI_DEV_PCIE_COUNT_TX_BYTES(197);
    /// Bytes received over `PCIe`.
    pub const PCIE_RECEIVED: u32 = NVML_FI_DEV_PCIE_COUNT_RX_BYTES(198);
    const TYPE_DOUBLE: u32 = NVML_VALUE_TYPE_DOUBLE(0);
    const TYPE_UINT: u32 = NVML_VALUE_TYPE_UNSIGNED_INT(1);
    const TYPE_ULONG: u32 = NVML_VALUE_TYPE_UNSIGNED_LONG(2);
    const TYPE_ULONG_LONG: u32 = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG(3);
    const TYPE_LONG_LONG: u32 = NVML_VALUE_TYPE_SIGNED_LONG_LONG(4);
    const TYPE_INT: u32 = NVML_VALUE_TYPE_SIGNED_INT(5);
    const TYPE_USHORT: u32 = NVML_VALUE_TYPE_UNSIGNED_SHORT(6);
}
/// The scope that means all links.
const ALL_LINKS: u32 = u32::MAX;

c_struct! {
    /// `nvmlFieldValue_t`.
    #[derive(Clone, Copy, Debug)]
    pub struct FieldValue = nvmlFieldValue_t {
        field = fieldId: u32,
        scope = scopeId: u32,
        /// Microseconds since the Unix epoch.
        timestamp = timestamp: i64,
        latency = latencyUsec: i64,
        value_type = valueType: u32,
        code = nvmlReturn: Code,
        /// A union: the type says how many of its bytes have a meaning.
        value = value: [u8; 8],
    }
}

const _: () = assert!(size_of::<FieldValue>() == 40);

/// A value that was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The value.
    pub value: Value,
    /// When the device was read, in nanoseconds since the Unix epoch; `None` if the driver does not say.
    pub unix_ns: Option<i64>,
}

/// A value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// 32 bits: a counter begins again at 2³².
    Narrow(u32),
    /// 64 bits.
    Wide(u64),
    /// A floating point number.
    Real(f64),
}

impl Value {
    /// Returns the value, rounded to a floating point number.
    pub fn number(self) -> f64 {
        match self {
            Self::Narrow(value) => value.into(),
            Self::Wide(value) => value as f64,
            Self::Real(value) => value,
        }
    }

    /// Returns how far a counter has advanced since `before`; `None` if it went back.
    pub fn since(self, before: Self) -> Option<f64> {
        match (self, before) {
            (Self::Narrow(now), Self::Narrow(before)) => Some(now.wrapping_sub(before).into()),
            (Self::Wide(now), Self::Wide(before)) => Some(now.checked_sub(before)? as f64),
            _ => Some(self.number() - before.number()).filter(|since| *since >= 0.0),
        }
    }
}

impl FieldValue {
    /// Returns a request for a field.
    pub const fn of(field: u32) -> Self {
        let is_of_links = matches!(field, NVLINK_SENT | NVLINK_RECEIVED);
        Self {
            field,
            scope: if is_of_links { ALL_LINKS } else { 0 },
            timestamp: 0,
            latency: 0,
            value_type: 0,
            code: Code::NOT_SUPPORTED,
            value: [0; 8],
        }
    }

    /// Returns the answer, unless the device has none for this field.
    pub fn reading(&self) -> Option<Reading> {
        self.code.ok().ok()?;
        let wide = u64::from_ne_bytes(self.value);
        let [a, b, c, d, ..] = self.value;
        let narrow = u32::from_ne_bytes([a, b, c, d]);
        let value = match self.value_type {
            TYPE_DOUBLE => Value::Real(f64::from_bits(wide)).finite()?,
            TYPE_UINT => Value::Narrow(narrow),
            TYPE_ULONG if size_of::<c_ulong>() == 4 => Value::Narrow(narrow),
            TYPE_ULONG | TYPE_ULONG_LONG => Value::Wide(wide),
            TYPE_LONG_LONG => Value::Wide(u64::try_from(wide.cast_signed()).ok()?),
            TYPE_INT => Value::Wide(u64::try_from(narrow.cast_signed()).ok()?),
            TYPE_USHORT => Value::Wide(u16::from_ne_bytes([a, b]).into()),
            _ => return None,
        };
        let unix_ns = self.timestamp.checked_mul(1_000);
        Some(Reading {
            value,
            unix_ns: unix_ns.filter(|ns| *ns > 0),
        })
    }
}

impl Value {
    fn finite(self) -> Option<Self> {
        self.number().is_finite().then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(value_type: u32, value: u64, code: u32) -> Option<Reading> {
        let mut field = FieldValue::of(ENERGY);
        field.value_type = value_type;
        field.value = value.to_ne_bytes();
        field.code = Code(code);
        field.timestamp = 7;
        field.reading()
    }

    #[test]
    fn a_value_is_read_by_its_type() {
        let value = |kind, bits| answer(kind, bits, 0).map(|reading| reading.value);
        assert_eq!(value(0, 1.5_f64.to_bits()), Some(Value::Real(1.5)));
        assert_eq!(value(0, f64::NAN.to_bits()), None);
        assert_eq!(value(3, u64::MAX), Some(Value::Wide(u64::MAX)));
        assert_eq!(value(4, u64::MAX), None, "-1 is no counter");
        assert_eq!(value(9, 1), None, "an unknown type");
        assert_eq!(answer(3, 1, 3), None, "not supported");
        assert_eq!(
            answer(3, 1, 0).and_then(|reading| reading.unix_ns),
            Some(7_000)
        );
    }

    #[test]
    fn a_counter_of_32_bits_begins_again_and_a_wide_one_does_not() {
        assert_eq!(Value::Narrow(5).since(Value::Narrow(u32::MAX)), Some(6.0));
        assert_eq!(Value::Wide(5).since(Value::Wide(6)), None);
        assert_eq!(Value::Wide(9).since(Value::Wide(6)), Some(3.0));
    }
}

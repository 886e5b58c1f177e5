//! Calls of NVML's functions that read one value of a device.

use std::ffi::{CStr, c_int, c_uint};

use profiler_cuda_sys::nvml::field::{FieldValue, Reading};
use profiler_cuda_sys::nvml::{
    CHIP_SENSOR, Code, Handle, Memory, TEXT_LENGTH, Table, Temperature, Utilization,
};
use profiler_report::ThrottleReasons;

pub(crate) fn text(
    get: impl FnOnce(*mut std::ffi::c_char, c_uint) -> Code,
) -> Result<String, Code> {
    let mut buffer = [0_u8; TEXT_LENGTH];
    let length = c_uint::try_from(TEXT_LENGTH).unwrap_or(0);
    get(buffer.as_mut_ptr().cast(), length).ok()?;
    let text = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
    Ok(text.to_string_lossy().into_owned())
}

/// Calls a function that returns one number.
pub(crate) fn number<F>(
    get: Option<F>,
    call: impl FnOnce(F, *mut c_uint) -> Code,
) -> Result<Option<c_uint>, Code> {
    let mut value = 0;
    call(get.ok_or(Code::NOT_SUPPORTED)?, &raw mut value).ok()?;
    Ok(Some(value))
}

pub(crate) fn utilization(table: &Table, handle: Handle) -> Result<Option<Utilization>, Code> {
    let mut used = Utilization::default();
    let get = table.utilization.ok_or(Code::NOT_SUPPORTED)?;
    // SAFETY: writes one structure, which outlives the call.
    unsafe { get(handle, &raw mut used) }.ok()?;
    Ok(Some(used))
}

pub(crate) fn memory(table: &Table, handle: Handle) -> Result<Option<Memory>, Code> {
    let mut memory = Memory::default();
    let get = table.memory.ok_or(Code::NOT_SUPPORTED)?;
    // SAFETY: writes one structure, which outlives the call.
    unsafe { get(handle, &raw mut memory) }.ok()?;
    Ok(Some(memory))
}

pub(crate) fn temperature(table: &Table, handle: Handle) -> Result<Option<f64>, Code> {
    if let Some(get) = table.temperature {
        let mut celsius = 0;
        // SAFETY: writes one integer, which outlives the call.
        unsafe { get(handle, CHIP_SENSOR, &raw mut celsius) }.ok()?;
        return Ok(Some(celsius.into()));
    }
    let get = table.temperature_v.ok_or(Code::NOT_SUPPORTED)?;
    let size = c_uint::try_from(size_of::<Temperature>()).unwrap_or(0);
    let mut temperature = Temperature {
        version: size | 1 << 24,
        sensor: CHIP_SENSOR,
        celsius: 0,
    };
    // SAFETY: reads and writes one structure, which outlives the call and says its size.
    unsafe { get(handle, &raw mut temperature) }.ok()?;
    Ok(Some(temperature.celsius.into()))
}

pub(crate) fn reasons(table: &Table, handle: Handle) -> Result<Option<ThrottleReasons>, Code> {
    let get = table.event_reasons.or(table.throttle_reasons);
    let mut bits = 0;
    // SAFETY: writes one integer, which outlives the call.
    unsafe { get.ok_or(Code::NOT_SUPPORTED)?(handle, &raw mut bits) }.ok()?;
    Ok(Some(ThrottleReasons::from_bits(bits)))
}

pub(crate) fn fields<const N: usize>(
    table: &Table,
    handle: Handle,
    wanted: [u32; N],
) -> Result<Option<[Option<Reading>; N]>, Code> {
    let get = table.fields.ok_or(Code::NOT_SUPPORTED)?;
    let mut values = wanted.map(FieldValue::of);
    let count = c_int::try_from(N).unwrap_or(0);
    // SAFETY: reads and writes `count` structures of the layout that NVML documents.
    unsafe { get(handle, count, values.as_mut_ptr()) }.ok()?;
    Ok(Some(values.map(|value| value.reading())))
}

#[cfg(test)]
mod tests {
    use super::ThrottleReasons;
    use profiler_cuda_sys::nvml::reason;

    #[test]
    fn reasons_have_the_bits_of_nvml() {
        let expected = [
            (ThrottleReasons::IDLE, reason::IDLE),
            (
                ThrottleReasons::APPLICATION_CLOCKS,
                reason::APPLICATION_CLOCKS,
            ),
            (ThrottleReasons::POWER_CAP, reason::POWER_CAP),
            (
                ThrottleReasons::HARDWARE_SLOWDOWN,
                reason::HARDWARE_SLOWDOWN,
            ),
            (ThrottleReasons::SYNC_BOOST, reason::SYNC_BOOST),
            (ThrottleReasons::SOFTWARE_THERMAL, reason::SOFTWARE_THERMAL),
            (ThrottleReasons::HARDWARE_THERMAL, reason::HARDWARE_THERMAL),
            (ThrottleReasons::POWER_BRAKE, reason::POWER_BRAKE),
            (ThrottleReasons::DISPLAY_CLOCKS, reason::DISPLAY_CLOCKS),
            (ThrottleReasons::BOARD_LIMIT, reason::BOARD_LIMIT),
            (ThrottleReasons::RELIABILITY, reason::RELIABILITY),
        ];
        assert_eq!(
            expected.map(|(reason, _)| reason),
            ThrottleReasons::NAMED.map(|(reason, _)| reason)
        );
        for (reason, bits) in expected {
            assert_eq!(reason.bits(), bits, "{reason:?}");
        }
        let all = expected.iter().fold(0, |all, (_, bits)| all | bits);
        assert_eq!(all, reason::ALL);
    }
}

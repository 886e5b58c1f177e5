//! Reads the sensors of one device.

use std::ffi::c_uint;
use std::fmt;
use std::ptr;
use std::time::SystemTime;

use profiler_cuda_sys::nvml::field::{self, Reading, Value};
use profiler_cuda_sys::nvml::{Code, Handle, MEMORY_CLOCK, SM_CLOCK, Table};
use profiler_host::process::platform::{Instant, unix_ns};
use profiler_report::{GpuDevice, GpuQuantity, GpuReadings, ThrottleReasons};

use super::SensorError;
use super::call::{CALLS, Call, Observer};
use super::getters::{fields, memory, number, reasons, temperature, text, utilization};
use super::slow_calls::{IN_A_ROW, SLOW, SlowCalls};

/// A device and the state of its calls.
#[derive(Debug)]
pub struct Sensors {
    handle: Handle,
    /// The device.
    pub device: GpuDevice,
    /// How often each call was slow in a row; `None` if it is not made any more.
    slow: [Option<u32>; CALLS],
    /// The calls that were slow since they were taken.
    slow_calls: SlowCalls,
    counters: [Option<Value>; 4],
    /// `true` once the device is lost: no call is made any more.
    pub is_lost: bool,
    /// Reasons why readings are missing, until they are taken.
    pub notes: Vec<Note>,
}

/// Why readings are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The device is as it is.
    Known(String),
    /// The user should look at it.
    Warning(String),
}

/// The energy counter of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyReading {
    /// The counter.
    pub millijoules: Value,
    /// When the device was read, in nanoseconds since the Unix epoch; `None` if the driver does not say.
    pub unix_ns: Option<i64>,
}

/// The readings of one sample.
#[derive(Debug, Default)]
pub struct Sampled {
    /// The readings.
    pub readings: GpuReadings,
    /// Why the clocks are low.
    pub throttle: Option<ThrottleReasons>,
    /// The energy counter.
    pub energy: Option<EnergyReading>,
}

/// A device that cannot be opened: another process owns it, or it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its number in `nvidia-smi`.
    pub nvml_index: u32,
    /// What NVML says.
    pub code: Code,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nvml_index, code } = self;
        write!(
            f,
            "GPU {nvml_index} of nvidia-smi cannot be opened ({code})"
        )
    }
}

/// Returns all devices of the system: the devices that can be opened, and the others.
///
/// # Errors
///
/// Returns an error if none can be opened, or there is none.
pub fn devices(table: &Table) -> Result<(Vec<Sensors>, Vec<Refused>), SensorError> {
    let not_listed = |code: Code| SensorError::NotListed {
        reason: code.to_string(),
    };
    let mut count = 0;
    // SAFETY: writes one integer, which outlives the call.
    unsafe { (table.count)(&raw mut count) }
        .ok()
        .map_err(not_listed)?;
    let mut devices = Vec::new();
    let mut refused = Vec::new();
    for nvml_index in 0..count {
        match Sensors::open(table, nvml_index) {
            Ok(sensors) => devices.push(sensors),
            Err(code) => refused.push(Refused { nvml_index, code }),
        }
    }
    match refused.last() {
        _ if !devices.is_empty() => Ok((devices, refused)),
        Some(last) => Err(not_listed(last.code)),
        None => Err(SensorError::NoDevice),
    }
}

impl Sensors {
    fn open(table: &Table, index: u32) -> Result<Self, Code> {
        let mut handle = Handle(ptr::null_mut());
        // SAFETY: writes one handle, which outlives the call.
        unsafe { (table.handle)(index, &raw mut handle) }.ok()?;
        let uuid = text(|buffer, length| {
            // SAFETY: NVML has just returned the handle. Writes at most `length` bytes, which the buffer has.
            unsafe { (table.uuid)(handle, buffer, length) }
        })?;
        let number = |get: Option<unsafe extern "C" fn(Handle, *mut c_uint) -> Code>| {
            let mut value = 0;
            // SAFETY: writes one integer, which outlives the call.
            unsafe { get?(handle, &raw mut value) }.ok().ok()?;
            Some(value)
        };
        let max_clock = |clock| {
            let mut value = 0;
            // SAFETY: as above.
            unsafe { table.max_clock?(handle, clock, &raw mut value) }
                .ok()
                .ok()?;
            Some(value)
        };
        let (mut mig, mut pending) = (0, 0);
        let mig_mode = table.mig_mode.map(|get| {
            // SAFETY: writes two integers, which outlive the call.
            unsafe { get(handle, &raw mut mig, &raw mut pending) }
        });
        let device = GpuDevice {
            ordinal: None,
            nvml_index: index,
            uuid,
            name: table
                .name
                .and_then(|get| {
                    text(|buffer, length| {
                        // SAFETY: as for the UUID.
                        unsafe { get(handle, buffer, length) }
                    })
                    .ok()
                })
                .unwrap_or_default(),
            memory_bytes: memory(table, handle)
                .ok()
                .flatten()
                .map(|memory| memory.total),
            max_sm_clock_mhz: max_clock(SM_CLOCK),
            max_memory_clock_mhz: max_clock(MEMORY_CLOCK),
            power_limit_w: number(table.power_limit).map(|milliwatts| f64::from(milliwatts) / 1e3),
            is_mig: mig_mode.is_some_and(|code| code.ok().is_ok()) && mig == 1,
            compute_processes: None,
            non_exhaustive: (),
        };
        Ok(Self {
            handle,
            device,
            slow: [Some(0); CALLS],
            slow_calls: SlowCalls::default(),
            counters: [None; 4],
            is_lost: false,
            notes: Vec::new(),
        })
    }

    /// Counts the processes that compute on the device. The call takes milliseconds.
    pub fn count_processes(&mut self, table: &Table) {
        let Some(get) = table.processes.filter(|_| !self.is_lost) else {
            return;
        };
        let mut count: c_uint = 0;
        // SAFETY: with no room for processes, NVML writes their number only.
        let code = unsafe { get(self.handle, &raw mut count, ptr::null_mut()) };
        if code.ok().is_ok() || code == Code::INSUFFICIENT_SIZE {
            let known = self.device.compute_processes.unwrap_or(0);
            self.device.compute_processes = Some(known.max(count));
        }
    }

    /// Begins anew with the counters of links: the next reading is where growth begins.
    pub fn forget_counters(&mut self) {
        self.counters = [None; 4];
    }

    /// Reads all sensors. Returns the middle of the calls in nanoseconds since the Unix epoch too, and how far from it a sensor
    /// may have been read.
    pub(crate) fn read_at_a_time(
        &mut self,
        table: &Table,
        observer: &impl Observer,
    ) -> (Sampled, i64, u64) {
        let begun = unix_ns(SystemTime::now());
        let sampled = self.read(table, observer);
        let ended = unix_ns(SystemTime::now());
        (sampled, begun.midpoint(ended), ended.abs_diff(begun) / 2)
    }

    /// Reads all sensors.
    pub fn read(&mut self, table: &Table, observer: &impl Observer) -> Sampled {
        let mut sampled = Sampled::default();
        let readings = &mut sampled.readings;
        let handle = self.handle;
        let percent = |value: c_uint| Some(f64::from(value));
        let used = self.call(Call::Utilization, observer, || utilization(table, handle));
        readings.set(
            GpuQuantity::Utilization,
            used.and_then(|used| percent(used.gpu)),
        );
        readings.set(
            GpuQuantity::MemoryUtilization,
            used.and_then(|used| percent(used.memory)),
        );
        let memory = self.call(Call::Memory, observer, || memory(table, handle));
        readings.set(
            GpuQuantity::MemoryUsed,
            memory.map(|memory| memory.used as f64),
        );
        for (call, clock, quantity) in [
            (Call::SmClock, SM_CLOCK, GpuQuantity::SmClock),
            (Call::MemoryClock, MEMORY_CLOCK, GpuQuantity::MemoryClock),
        ] {
            let value = self.call(call, observer, || {
                // SAFETY: writes one integer, which outlives the call.
                number(table.clock, |get, value| unsafe {
                    get(handle, clock, value)
                })
            });
            readings.set(quantity, value.map(f64::from));
        }
        let temperature = self.call(Call::Temperature, observer, || temperature(table, handle));
        readings.set(GpuQuantity::Temperature, temperature);
        let state = self.call(Call::PerformanceState, observer, || {
            // SAFETY: as for the clocks.
            number(table.performance_state, |get, value| unsafe {
                get(handle, value)
            })
        });
        // 32 means that it is not known.
        let state = state.filter(|state| *state < 32);
        readings.set(GpuQuantity::PerformanceState, state.map(f64::from));
        sampled.throttle = self.call(Call::Reasons, observer, || reasons(table, handle));
        self.read_links(table, observer, readings);
        // Last, so that the energy is the newest reading: GPU times are read next.
        sampled.energy = self.read_power(table, observer, readings);
        sampled
    }

    fn read_power(
        &mut self,
        table: &Table,
        observer: &impl Observer,
        readings: &mut GpuReadings,
    ) -> Option<EnergyReading> {
        let handle = self.handle;
        let wanted = [field::POWER_AVERAGE, field::POWER_INSTANT, field::ENERGY];
        let fields = self.call(Call::PowerFields, observer, || {
            fields(table, handle, wanted)
        });
        let [average, instant, energy] = fields.unwrap_or([None; 3]);
        let watts = |reading: Reading| reading.value.number() / 1e3;
        readings.set(GpuQuantity::PowerInstant, instant.map(watts));
        let power = average.map(watts).or_else(|| {
            let milliwatts = self.call(Call::Power, observer, || {
                // SAFETY: writes one integer, which outlives the call.
                number(table.power, |get, value| unsafe { get(handle, value) })
            });
            milliwatts.map(|milliwatts| f64::from(milliwatts) / 1e3)
        });
        readings.set(GpuQuantity::Power, power);
        let energy = energy.map(|reading| EnergyReading {
            millijoules: reading.value,
            unix_ns: reading.unix_ns,
        });
        energy.or_else(|| {
            let millijoules = self.call(Call::Energy, observer, || {
                let mut value = 0_u64;
                let get = table.energy.ok_or(Code::NOT_SUPPORTED)?;
                // SAFETY: as above.
                unsafe { get(handle, &raw mut value) }.ok()?;
                Ok(Some(value))
            });
            millijoules.map(|millijoules| EnergyReading {
                millijoules: Value::Wide(millijoules),
                unix_ns: None,
            })
        })
    }

    fn read_links(&mut self, table: &Table, observer: &impl Observer, readings: &mut GpuReadings) {
        let handle = self.handle;
        let wanted = [
            field::PCIE_SENT,
            field::PCIE_RECEIVED,
            field::NVLINK_SENT,
            field::NVLINK_RECEIVED,
        ];
        let values = self.call(Call::LinkFields, observer, || fields(table, handle, wanted));
        let quantities = [
            (GpuQuantity::PcieSent, 1.0),
            (GpuQuantity::PcieReceived, 1.0),
            (GpuQuantity::NvlinkSent, 1024.0),
            (GpuQuantity::NvlinkReceived, 1024.0),
        ];
        let values = values.unwrap_or([None; 4]);
        for ((before, now), (quantity, unit)) in
            self.counters.iter_mut().zip(values).zip(quantities)
        {
            let now = now.map(|reading| reading.value);
            let grown = now.zip(*before).and_then(|(now, before)| now.since(before));
            readings.set(quantity, grown.map(|grown| grown * unit));
            *before = now;
        }
    }

    /// Takes the calls that were slow since this was asked last.
    pub fn take_slow_calls(&mut self) -> SlowCalls {
        std::mem::take(&mut self.slow_calls)
    }

    /// Makes a call, unless it was given up, and times it.
    fn call<T>(
        &mut self,
        call: Call,
        observer: &impl Observer,
        f: impl FnOnce() -> Result<Option<T>, Code>,
    ) -> Option<T> {
        let known = self.slow.get(call as usize).copied().flatten();
        let slow = known.filter(|_| !self.is_lost)?;
        if !observer.begins(call) {
            return None;
        }
        let began = Instant::now();
        let result = f();
        let took = began.elapsed();
        observer.ends();
        let slow = if took > SLOW { slow + 1 } else { 0 };
        let (function, reading) = call.names();
        let (index, name) = (self.device.nvml_index, &self.device.name);
        let mut next = Some(slow);
        if slow >= IN_A_ROW {
            self.slow_calls.add(call, took);
        }
        if let Err(code) = result {
            let device = format!("GPU {index} ({name}) of nvidia-smi");
            let note = if code == Code::GPU_LOST {
                self.is_lost = true;
                Note::Warning(format!("{device} has no samples any more ({code})"))
            } else if code.is_final() {
                next = None;
                Note::Known(format!("{device} has no reading of {reading} ({code})"))
            } else {
                Note::Warning(format!("{function} has failed on {device} ({code})"))
            };
            self.notes.push(note);
        }
        if let Some(state) = self.slow.get_mut(call as usize) {
            *state = next;
        }
        result.ok().flatten()
    }
}

//! Devices and contexts: primary contexts, which are reference-counted, and those that a program
//! creates.

use std::collections::BTreeMap;

use super::code::{
    CONTEXT_IS_DESTROYED, Code, CudaResult, INVALID_CONTEXT, INVALID_DEVICE, INVALID_VALUE,
    PRIMARY_CONTEXT_ACTIVE,
};
use super::settings::DeviceSettings;
use super::slab::Missing;
use super::state::DriverState;
use super::stream::{Stream, StreamKind};
use super::task::{Join, Point};
use super::thread;

/// The base of the handles of primary contexts. A device has one handle for all its successive
/// primary contexts: as with a real driver, the address alone does not distinguish them.
const PRIMARY_HANDLE: usize = 0x7d00_0000_0000;

/// A device, after `cuInit`.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) settings: DeviceSettings,
    /// The primary context, while it is retained.
    primary: Option<usize>,
    retained: u64,
    primary_flags: u32,
}

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    /// The number that `cuCtxGetId` returns.
    pub(crate) id: u64,
    pub(crate) device: usize,
    /// The handle that programs use.
    pub(crate) handle: usize,
    pub(crate) flags: u32,
    primary: bool,
    /// The legacy default stream.
    pub(crate) legacy: usize,
    /// The per-thread default streams, by thread number.
    pub(crate) per_thread: BTreeMap<u64, usize>,
    /// All streams.
    pub(crate) streams: Vec<usize>,
    /// The unfinished work of destroyed streams.
    pub(crate) orphaned_work: Join,
    /// The time from which on every call fails, and the code.
    failed: Option<(u64, Code)>,
    pub(crate) limits: BTreeMap<u32, usize>,
    pub(crate) cache: u32,
}

impl DriverState {
    /// Implements `cuInit`.
    pub(crate) fn initialise(&mut self) -> CudaResult {
        if self.settings.devices.is_empty() {
            return Err(super::code::NO_DEVICE);
        }
        if !self.initialised {
            let device = |settings: &DeviceSettings| Device {
                settings: settings.clone(),
                primary: None,
                retained: 0,
                primary_flags: 0,
            };
            self.devices = self.settings.devices.iter().map(device).collect();
            self.initialised = true;
        }
        Ok(())
    }

    pub(crate) fn device(&mut self, device: i32) -> CudaResult<&mut Device> {
        let ordinal = usize::try_from(device).map_err(|_| INVALID_DEVICE)?;
        self.devices.get_mut(ordinal).ok_or(INVALID_DEVICE)
    }

    fn create(&mut self, device: usize, flags: u32, primary: bool) -> usize {
        let id = self.next_id();
        let key = self.contexts.insert(Context {
            id,
            device,
            handle: 0,
            flags,
            primary,
            legacy: 0,
            per_thread: BTreeMap::new(),
            streams: Vec::new(),
            orphaned_work: Join::default(),
            failed: None,
            limits: BTreeMap::new(),
            cache: 0,
        });
        let legacy = self.add_stream(key, Stream::new(key, StreamKind::Legacy, 0));
        if let Ok(context) = self.contexts.get_mut(key) {
            context.handle = if primary {
                PRIMARY_HANDLE + (device << 4)
            } else {
                key
            };
            context.legacy = legacy;
        }
        key
    }

    /// Creates a context other than the primary one and makes it current. Returns its handle.
    pub(crate) fn create_context(&mut self, device: i32, flags: u32) -> CudaResult<usize> {
        self.device(device)?;
        let key = self.create(
            usize::try_from(device).map_err(|_| INVALID_DEVICE)?,
            flags,
            false,
        );
        thread::push(key)?;
        Ok(key)
    }

    pub(crate) fn destroy_context(&mut self, handle: usize) -> CudaResult {
        let key = self.context_key(handle)?;
        if self.contexts.get(key).is_ok_and(|context| context.primary) {
            self.misuse("a primary context is released, not destroyed", handle);
            return Err(INVALID_CONTEXT);
        }
        if thread::current() == handle {
            thread::pop()?;
        }
        self.end_context(key);
        Ok(())
    }

    pub(crate) fn retain_primary(&mut self, device: i32) -> CudaResult<usize> {
        let flags = self.device(device)?.primary_flags;
        let ordinal = usize::try_from(device).map_err(|_| INVALID_DEVICE)?;
        if self.devices[ordinal].primary.is_none() {
            let key = self.create(ordinal, flags, true);
            self.devices[ordinal].primary = Some(key);
        }
        self.devices[ordinal].retained += 1;
        Ok(PRIMARY_HANDLE + (ordinal << 4))
    }

    /// Returns the handle of this thread's current context, or 0 if it has none. With
    /// `current-context everywhere`, first makes that of device 0 current.
    pub(crate) fn current_or_given(&mut self) -> CudaResult<usize> {
        if thread::current() == 0 && self.settings.current_context_everywhere {
            let given = self.retain_primary(0)?;
            thread::set_current(given);
        }
        Ok(thread::current())
    }

    pub(crate) fn release_primary(&mut self, device: i32) -> CudaResult {
        let device = self.device(device)?;
        if device.retained == 0 {
            return Err(INVALID_CONTEXT);
        }
        device.retained -= 1;
        if device.retained == 0
            && let Some(key) = device.primary.take()
        {
            self.end_context(key);
        }
        Ok(())
    }

    /// Destroys the primary context regardless of its reference count. The next use creates a new
    /// one.
    pub(crate) fn reset_primary(&mut self, device: i32) -> CudaResult {
        let ordinal = usize::try_from(device).map_err(|_| INVALID_DEVICE)?;
        let device = self.device(device)?;
        let (flags, retained) = (device.primary_flags, device.retained);
        if let Some(key) = device.primary.take() {
            self.end_context(key);
            if retained > 0 {
                let fresh = self.create(ordinal, flags, true);
                self.devices[ordinal].primary = Some(fresh);
            }
        }
        Ok(())
    }

    pub(crate) fn primary_state(&mut self, device: i32) -> CudaResult<(u32, bool)> {
        let device = self.device(device)?;
        Ok((device.primary_flags, device.primary.is_some()))
    }

    pub(crate) fn set_primary_flags(&mut self, device: i32, flags: u32) -> CudaResult {
        let device = self.device(device)?;
        if device.primary.is_some() && device.primary_flags != flags {
            return Err(PRIMARY_CONTEXT_ACTIVE);
        }
        device.primary_flags = flags;
        Ok(())
    }

    fn end_context(&mut self, key: usize) {
        if let Ok(context) = self.contexts.remove(key, Missing::Destroyed) {
            for stream in context.streams {
                self.drop_from_capture(stream);
            }
        }
        self.streams
            .remove_with_context(|stream| stream.context == key);
        let events = self
            .events
            .remove_with_context(|event| event.context == key);
        self.log.events_lost_with_context += events;
        self.execs.remove_with_context(|exec| exec.context == key);
        self.functions
            .remove_with_context(|function| function.context == key);
        self.modules
            .remove_with_context(|module| module.context == key);
        self.memory.free_context(key);
    }

    /// Returns the context of a handle.
    pub(crate) fn context_key(&mut self, handle: usize) -> CudaResult<usize> {
        let device = handle.wrapping_sub(PRIMARY_HANDLE) >> 4;
        if let Some(device) = self.devices.get(device)
            && handle.trailing_zeros() >= 4
        {
            return device.primary.ok_or(CONTEXT_IS_DESTROYED);
        }
        match self.contexts.get(handle) {
            Ok(_) => Ok(handle),
            Err(Missing::Never) => Err(INVALID_CONTEXT),
            Err(missing) => {
                self.report_missing(missing, handle);
                Err(CONTEXT_IS_DESTROYED)
            }
        }
    }

    /// Returns the current context of this thread.
    pub(crate) fn current(&mut self) -> CudaResult<usize> {
        match thread::current() {
            0 => Err(INVALID_CONTEXT),
            handle => self.context_key(handle),
        }
    }

    /// Fails if calls with a stream or an event need a current context and there is none.
    pub(crate) fn require_current(&mut self) -> CudaResult {
        if self.settings.current_context_required {
            self.current()?;
        }
        Ok(())
    }

    /// Returns the current context of this thread, if it has not failed.
    pub(crate) fn usable_current(&mut self) -> CudaResult<usize> {
        let key = self.current()?;
        self.usable(key)?;
        Ok(key)
    }

    /// Returns the device of the current context.
    pub(crate) fn current_device(&mut self) -> CudaResult<usize> {
        let key = self.current()?;
        Ok(self.context(key)?.device)
    }

    pub(crate) fn context(&mut self, key: usize) -> CudaResult<&mut Context> {
        self.contexts.get_mut(key).map_err(|_| CONTEXT_IS_DESTROYED)
    }

    /// Fails if the context has failed.
    pub(crate) fn usable(&mut self, key: usize) -> CudaResult {
        if let Some(code) = thread::take_sticky() {
            let now = self.clock.now();
            self.fail_context(key, now, code);
        }
        self.context_failure(key).map_or(Ok(()), Err)
    }

    /// Returns the code of a failed context, which every call returns.
    pub(crate) fn context_failure(&self, key: usize) -> Option<Code> {
        let (at, code) = self.contexts.get(key).ok()?.failed?;
        (at <= self.clock.now()).then_some(code)
    }

    /// Makes a context fail from time `at` on.
    pub(crate) fn fail_context(&mut self, key: usize, at: u64, code: Code) {
        if let Ok(context) = self.contexts.get_mut(key)
            && context.failed.is_none_or(|(earlier, _)| at < earlier)
        {
            context.failed = Some((at, code));
        }
    }

    /// Makes the primary context of a device fail now.
    pub(crate) fn fail_primary(&mut self, device: i32, code: Code) -> CudaResult {
        let now = self.clock.now();
        let key = self.device(device)?.primary.ok_or(INVALID_VALUE)?;
        self.fail_context(key, now, code);
        Ok(())
    }

    /// Returns when all work of a context is finished.
    pub(crate) fn all_work(&mut self, key: usize) -> CudaResult<Join> {
        let context = self.contexts.get(key).map_err(|_| CONTEXT_IS_DESTROYED)?;
        let mut join = context.orphaned_work.clone();
        for stream in &context.streams {
            if let Ok(stream) = self.streams.get(*stream) {
                join.add(stream.tail);
            }
        }
        Ok(join)
    }

    /// Returns `true` if all of `join` is in the past.
    pub(crate) fn is_over(&self, join: &Join) -> bool {
        join.pending.is_empty() && join.at <= self.clock.now()
    }

    /// Returns `true` if `point` is in the past.
    pub(crate) fn is_past(&self, point: Point) -> bool {
        matches!(point, Point::At(at) if at <= self.clock.now())
    }
}

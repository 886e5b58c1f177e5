//! The exported functions of CUPTI.
#![allow(non_snake_case, reason = "the names are CUPTI's")]

use std::ffi::c_char;

use super::delivery::{self, Flush};
use super::entry::{cupti_functions, misuse};
use super::fault::CallbackFault;
use super::ids::{
    self, API_NOT_IMPLEMENTED, CuptiResult, INVALID_KIND, INVALID_PARAMETER, MAX_LIMIT_REACHED,
    MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, NOT_COMPATIBLE, PARAMETER_SIZE_NOT_SUFFICIENT, UNKNOWN,
    kind,
};
use super::layout;
use super::state::{self, Subscriber, real_time};
use crate::driver::clock::ClockMode;
use crate::driver::ffi::{
    self, BufferCompleted, BufferRequested, CuptiCallback, In, InOut, Out, TimestampCallback,
};
use crate::driver::state::LockedState;

/// `CUpti_SubscriberParams`.
#[derive(Clone, Copy)]
#[repr(C)]
struct SubscriberParams {
    size: usize,
    name: usize,
    old_name: usize,
    old_name_size: usize,
}

ffi::compared! {
    SubscriberParams = CUpti_SubscriberParams {
        size = structSize,
        name = subscriberName,
        old_name = oldSubscriberName,
        old_name_size = oldSubscriberSize,
    }
}

/// Returns the structures as they are declared here.
#[cfg(test)]
pub(crate) fn structures() -> Vec<header_check::Item> {
    [SubscriberParams::declared(), ffi::CallbackData::declared()].concat()
}

cupti_functions! {
    cuptiGetVersion(version: Out<u32>) since 18, IN_CALLBACK => {
        set(&version, state::lock().version)
    };
    cuptiGetResultString(code: u32, text: Out<*const c_char>) since 18, IN_CALLBACK => {
        let known = ids::describe(code);
        set(&text, known.unwrap_or(c"<unknown>").as_ptr())?;
        known.map(drop).ok_or(INVALID_PARAMETER)
    };
    cuptiGetCallbackName(domain: u32, callback: u32, name: Out<*const c_char>)
        since 18, IN_CALLBACK => {
        let known = if domain == ids::DRIVER_API { ids::name_of(callback) } else { None };
        set(&name, known.ok_or(INVALID_PARAMETER)?.as_ptr())
    };
    cuptiGetTimestamp(timestamp: Out<u64>) since 18, IN_CALLBACK => set(&timestamp, time_now());

    cuptiSubscribe(handle: Out<usize>, callback: Option<CuptiCallback>, user: usize) since 18 => {
        subscribe(&handle, callback, user, None)
    };
    cuptiSubscribe_v2(
        handle: Out<usize>,
        callback: Option<CuptiCallback>,
        user: usize,
        parameters: In<SubscriberParams>,
    ) since 130_001 => subscribe(&handle, callback, user, parameters.get().ok());
    cuptiUnsubscribe(handle: usize) since 18 => {
        let mut cupti = state::lock();
        match cupti.subscriber {
            Some(subscriber) if subscriber.handle == handle => {
                cupti.subscriber = None;
                cupti.callbacks.clear();
                if cupti.faults.callbacks == CallbackFault::AfterUnsubscribe {
                    cupti.faults.lingering = Some(subscriber);
                }
                cupti.update_activity();
                Ok(())
            }
            _ => {
                drop(cupti);
                misuse("cuptiUnsubscribe", "no such subscriber", handle);
                Err(INVALID_PARAMETER)
            }
        }
    };
    cuptiEnableCallback(enable: u32, handle: usize, domain: u32, callback: u32) since 18 => {
        enable_callback(enable != 0, handle, domain, callback)
    };

    cuptiActivityRegisterCallbacks(
        requested: Option<BufferRequested>,
        completed: Option<BufferCompleted>,
    ) since 18 => {
        let (Some(requested), Some(completed)) = (requested, completed) else {
            return Err(INVALID_PARAMETER);
        };
        let mut cupti = state::lock();
        cupti.requested = Some(requested);
        cupti.completed = Some(completed);
        Ok(())
    };
    cuptiActivityEnable(kind: u32) since 18 => enable_kind(kind);
    cuptiActivityDisable(kind: u32) since 18 => {
        check_kind(kind)?;
        let mut cupti = state::lock();
        cupti.kinds.remove(&kind);
        cupti.update_activity();
        Ok(())
    };
    cuptiActivityFlushAll(flag: u32) since 18 => {
        let is_forced = flag & 1 != 0;
        state::lock().report.forced_flushes += u64::from(is_forced);
        delivery::deliver(if is_forced { Flush::Forced } else { Flush::Complete });
        Ok(())
    };
    cuptiActivityGetNextRecord(buffer: usize, bytes: usize, record: InOut<usize>)
        since 18, IN_CALLBACK => next_record(buffer, bytes, &record);
    cuptiActivityGetNumDroppedRecords(_context: usize, _stream: u32, dropped: Out<usize>)
        since 18, IN_CALLBACK => {
        let count = std::mem::take(&mut state::lock().dropped);
        set(&dropped, count)
    };
    cuptiActivitySetAttribute(attribute: u32, size: InOut<usize>, value: usize) since 18 => {
        let mut cupti = state::lock();
        let room = size.get().map_err(|_| INVALID_PARAMETER)?;
        let default = default_of(attribute, cupti.version).ok_or(INVALID_PARAMETER)?;
        if room < default.len() {
            return Err(PARAMETER_SIZE_NOT_SUFFICIENT);
        }
        if value == 0 {
            return Err(INVALID_PARAMETER);
        }
        cupti.attributes.insert(attribute, ffi::keep(value, default.len()));
        Ok(())
    };
    cuptiActivityRegisterTimestampCallback(function: Option<TimestampCallback>) since 18 => {
        let function = function.ok_or(INVALID_PARAMETER)?;
        let mut cupti = state::lock();
        if cupti.faults.ignores_clock {
            return Ok(());
        }
        let before = cupti.timestamp.replace(function);
        drop(cupti);
        if before.is_some() {
            misuse(
                "cuptiActivityRegisterTimestampCallback",
                "registered again, which spoils records of later sessions",
                function as usize,
            );
        }
        relate_clocks();
        Ok(())
    };
    cuptiFinalize() since 18, IN_CALLBACK => {
        misuse("cuptiFinalize", "crashes if another thread is in the library", 0);
        Err(API_NOT_IMPLEMENTED)
    };
}

fn set<T>(place: &Out<T>, value: T) -> CuptiResult {
    place.set(value).map_err(|_| INVALID_PARAMETER)
}

fn subscribe(
    handle: &Out<usize>,
    callback: Option<CuptiCallback>,
    user: usize,
    parameters: Option<SubscriberParams>,
) -> CuptiResult {
    let mut cupti = state::lock();
    let holder = match (&cupti.faults.holder, cupti.subscriber) {
        (Some(name), _) => Some(name.clone()),
        (None, Some(_)) => Some(String::new()),
        (None, None) => None,
    };
    if let Some(name) = holder {
        if let Some(parameters) = parameters.filter(|parameters| parameters.old_name != 0) {
            let mut text = name.into_bytes();
            text.truncate(parameters.old_name_size.saturating_sub(1));
            text.push(0);
            if parameters.old_name_size > 0 {
                ffi::copy(parameters.old_name, text.as_ptr() as usize, text.len());
            }
        }
        return Err(MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    }
    let new = cupti.next_handle();
    set(handle, new)?;
    cupti.faults.lingering = None;
    cupti.subscriber = Some(Subscriber {
        handle: new,
        callback,
        user,
    });
    cupti.update_activity();
    Ok(())
}

fn enable_callback(enable: bool, handle: usize, domain: u32, callback: u32) -> CuptiResult {
    let mut cupti = state::lock();
    if cupti
        .subscriber
        .is_none_or(|subscriber| subscriber.handle != handle)
    {
        drop(cupti);
        misuse("cuptiEnableCallback", "no such subscriber", handle);
        return Err(INVALID_PARAMETER);
    }
    if domain == 0 || domain > ids::DOMAINS {
        return Err(INVALID_PARAMETER);
    }
    if enable {
        cupti.callbacks.insert((domain, callback));
    } else {
        cupti.callbacks.remove(&(domain, callback));
    }
    cupti.update_activity();
    Ok(())
}

fn check_kind(kind: u32) -> CuptiResult {
    if kind == 0 || kind > kind::LAST {
        return Err(INVALID_KIND);
    }
    Ok(())
}

fn enable_kind(kind: u32) -> CuptiResult {
    check_kind(kind)?;
    let other = match kind {
        kind::KERNEL => kind::CONCURRENT_KERNEL,
        kind::CONCURRENT_KERNEL => kind::KERNEL,
        _ => 0,
    };
    let is_first = {
        let cupti = state::lock();
        if cupti.kinds.contains(&other) {
            return Err(NOT_COMPATIBLE);
        }
        cupti.kinds.is_empty()
    };
    if is_first {
        relate_clocks();
    }
    let mut cupti = state::lock();
    cupti.kinds.insert(kind);
    cupti.update_activity();
    drop(cupti);
    delivery::wake();
    Ok(())
}

/// Relates the driver's clock to the client's, or to the time of day.
fn relate_clocks() {
    let clock = state::lock().timestamp;
    let read = || clock.map_or_else(real_time, |clock| clock());
    let before = read();
    let now = LockedState::new().clock.now();
    let there = before + read().saturating_sub(before) / 2;
    state::lock().set_offset(now, there);
}

/// Keeps the records of a clock that is not real from falling behind the client's clock: what is launched now does not
/// begin before now. The relation changes in this direction only, so work that follows other work stays behind it.
pub(super) fn follow_clock() {
    let driver = LockedState::new();
    if driver.clock.pace() == ClockMode::Real {
        return;
    }
    let now = driver.clock.now();
    drop(driver);
    let cupti = state::lock();
    let (clock, is_recording) = (cupti.timestamp, !cupti.kinds.is_empty());
    drop(cupti);
    if is_recording {
        let there = clock.map_or_else(real_time, |clock| clock());
        let mut cupti = state::lock();
        let behind = there.wrapping_sub(cupti.time(now)).cast_signed().max(0);
        cupti.offset = cupti.offset.wrapping_add_signed(behind);
    }
}

fn time_now() -> u64 {
    let clock = state::lock().timestamp;
    // No function of the client is called with a lock held.
    if let Some(time) = clock.map(|clock| clock()) {
        return state::lock().told(time);
    }
    let now = LockedState::new().clock.now();
    let cupti = state::lock();
    // Until the clocks have been related.
    let time = if cupti.offset == 0 {
        real_time()
    } else {
        cupti.time(now)
    };
    cupti.told(time)
}

/// Returns the value that an attribute has unless it is set.
fn default_of(attribute: u32, version: u32) -> Option<Vec<u8>> {
    let size = |value: usize| Some(value.to_ne_bytes().to_vec());
    match attribute {
        0 => size(3_200_000),
        1 => size(2 << 20),
        2 | 4 => size(250),
        3 => size(10),
        5 => Some(vec![0]),
        6 => size(3),
        7 => size(6),
        9 if version >= 22 => Some(vec![1]),
        _ => None,
    }
}

/// Moves `record` to the next record of a buffer, or to the first one if it is null. Like the real library, answers a kind
/// that it cannot read with an error, and so never reaches what follows; a record that does not fit is the end.
fn next_record(buffer: usize, bytes: usize, record: &InOut<usize>) -> CuptiResult {
    let at = record.get().map_err(|_| INVALID_PARAMETER)?;
    if buffer == 0 {
        return Err(INVALID_PARAMETER);
    }
    let size_at = |at: usize| {
        let kind = u32::try_from(ffi::word(at, 0) & 0xffff_ffff).unwrap_or(0);
        let cupti = state::lock();
        let unreadable = if cupti.version < layout::CUDA_12_4 {
            UNKNOWN
        } else {
            INVALID_KIND
        };
        layout::size(kind, cupti.version, cupti.is_11_8).ok_or(unreadable)
    };
    let next = if at == 0 { buffer } else { at + size_at(at)? };
    let end = buffer + bytes;
    if next >= end || next + size_at(next)? > end {
        return Err(MAX_LIMIT_REACHED);
    }
    record.set(next).map_err(|_| INVALID_PARAMETER)
}

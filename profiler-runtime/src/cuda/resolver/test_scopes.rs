//! Finished scopes for the unit tests of the resolver.

use std::num::NonZero;
use std::panic::Location;
use std::ptr;

use profiler_report::internal::{RawStream, StreamKey};

use crate::cuda::context::Context;
use crate::cuda::context::measurement::{CpuSpan, GpuMeasurement, Pair, ScopeRef};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::fake::FakeDriver;
use crate::local::callers::CountedCall;
use crate::name::{self, Name};

/// Returns a driver that lives as long as the process.
pub(super) fn driver() -> &'static FakeDriver {
    Box::leak(Box::new(FakeDriver::new()))
}

/// Returns a name that no other test uses.
#[track_caller]
pub(super) fn name(text: &'static str) -> &'static Name {
    name::declared(text, Location::caller())
}

/// Returns how many calls of a name have a GPU time, and how many should have one and have none.
pub(super) fn counts(name: &Name) -> (u64, u64) {
    let times = name.cuda.read();
    times.map_or((0, 0), |times| (times.calls, times.without))
}

/// A scope that has ended, as the resolver gets it.
pub(super) struct TestScope {
    pub(super) key: u64,
    /// The key of the scope around it; zero for none.
    pub(super) inside: u64,
    pub(super) stream: usize,
    /// When it ended on the CPU, in ticks.
    pub(super) end: u64,
    /// When the device passes its events, in milliseconds.
    pub(super) times: [f32; 2],
}

impl TestScope {
    /// Returns a scope of one millisecond, numbered `key`, on a stream of its context.
    pub(super) fn numbered(key: u64) -> Self {
        Self {
            key,
            inside: 0,
            stream: 0x10,
            end: key,
            times: [1.0, 2.0],
        }
    }

    /// Records the events of the scope.
    pub(super) fn measure(
        self,
        driver: &FakeDriver,
        context: &'static Context,
        name: &Name,
    ) -> Box<GpuMeasurement> {
        let stream = RawStream(ptr::without_provenance_mut(self.stream));
        let [begin, end] = self.times.map(|time| {
            driver.set_time(time);
            let event = driver.create_event().expect("the driver is not broken");
            let recorded = driver.record(event, stream);
            recorded.expect("the driver is not broken");
            event
        });
        let pair = Pair {
            is_graph: false,
            ..Pair::for_test(context, begin, end)
        };
        let mut measurement = GpuMeasurement::new(Some(pair));
        measurement.scope = ScopeRef {
            key: self.key,
            stream_key: StreamKey {
                stream,
                ..StreamKey::NOWHERE
            },
            name: name.id,
            has_begun: true,
        };
        measurement.parent = NonZero::new(self.inside);
        measurement.span = CpuSpan {
            end: self.end,
            elapsed: 0,
            outermost: true,
            call: CountedCall::NONE,
        };
        measurement
    }
}

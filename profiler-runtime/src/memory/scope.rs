//! The memory of one scope: the difference of the counts of its thread between its two ends.

use profiler_report::MemoryUse;

use super::counters::{ThreadCounts, total, with_counts};
use crate::cuda::{self, DeviceMemory};

/// The memory at both ends of a scope.
#[derive(Debug)]
pub(crate) struct ScopeMemory {
    /// The device memory before the scope opened.
    device: Option<DeviceMemory>,
    host: Option<Host>,
    /// The result, after the scope has ended.
    used: Option<MemoryUse>,
}

/// The counts of the thread when a scope opened.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    in_use: i64,
    allocated: u64,
    /// The peak of the enclosing scope so far.
    outer_peak: i64,
}

impl ScopeMemory {
    /// Queries the device memory before a scope opens, because the query may take long and must not be part of the scope.
    pub(crate) fn before_scope() -> Self {
        Self {
            device: cuda::device_memory(),
            host: None,
            used: None,
        }
    }

    /// Notes the counts when the scope opens.
    pub(crate) fn begin(&mut self) {
        let measure = |counts: &ThreadCounts| {
            let in_use = counts.in_use.get();
            Host {
                in_use,
                allocated: counts.allocated.get(),
                outer_peak: counts.peak.replace(in_use),
            }
        };
        self.host = with_counts(measure);
    }

    /// Computes the result when the scope ends. `younger` are the scopes that opened later and are still open, since
    /// guards may be dropped in any order.
    pub(crate) fn end<'m>(&mut self, younger: impl Iterator<Item = &'m mut Self>) {
        let Some(host) = self.host else { return };
        let mut younger_hosts = younger.filter_map(|scope| scope.host.as_mut());
        let measure = |counts: &ThreadCounts| {
            let mut peak = counts.peak.get();
            if let Some(first) = younger_hosts.next() {
                // `first.outer_peak` is the peak of this scope up to the opening of `first`. The scope around this one is
                // now the one around `first`, which therefore inherits the peak of both.
                peak = peak.max(first.outer_peak);
                first.outer_peak = first.outer_peak.max(host.outer_peak);
                peak = younger_hosts.fold(peak, |peak, other| peak.max(other.outer_peak));
            } else {
                counts.peak.set(peak.max(host.outer_peak));
            }
            MemoryUse {
                host_net: counts.in_use.get() - host.in_use,
                host_allocated: counts.allocated.get() - host.allocated,
                host_peak: u64::try_from(peak - host.in_use).unwrap_or_default(),
                host_total: total(),
                ..MemoryUse::default()
            }
        };
        self.used = with_counts(measure);
    }

    /// Returns the memory that a scope used, with the device memory after it; `None` unless both of its ends were recorded.
    pub(crate) fn after_scope(&self) -> Option<MemoryUse> {
        let used = self.used?;
        let device = cuda::device_memory();
        let net = |(before, after): (DeviceMemory, DeviceMemory)| {
            after.used.cast_signed() - before.used.cast_signed()
        };
        Some(MemoryUse {
            device_net: self.device.zip(device).map(net),
            device_total: device.map(|device| device.used),
            device_reserved: device.map(|device| device.reserved),
            ..used
        })
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::super::counters::add;
    use super::*;

    fn opened() -> ScopeMemory {
        let mut scope = ScopeMemory {
            device: None,
            host: None,
            used: None,
        };
        scope.begin();
        scope
    }

    /// Ends a scope and returns its net, allocated and peak bytes.
    fn ended<'m>(
        mut scope: ScopeMemory,
        younger: impl Iterator<Item = &'m mut ScopeMemory>,
    ) -> (i64, u64, u64) {
        scope.end(younger);
        let used = scope.used.expect("it was open");
        (used.host_net, used.host_allocated, used.host_peak)
    }

    #[test]
    fn a_scope_includes_the_memory_of_inner_scopes() {
        add(1000, 0);
        let outer = opened();
        add(10, 0);
        let inner = opened();
        add(100, 0);
        add(0, 100);
        assert_eq!(ended(inner, iter::empty()), (0, 100, 100));
        add(5, 0);
        assert_eq!(ended(outer, iter::empty()), (15, 115, 110));
    }

    #[test]
    fn a_peak_before_an_inner_scope_belongs_to_the_outer_one() {
        let outer = opened();
        add(500, 0);
        add(0, 500);
        let inner = opened();
        add(20, 0);
        assert_eq!(ended(inner, iter::empty()), (20, 20, 20));
        assert_eq!(ended(outer, iter::empty()), (20, 520, 500));
    }

    #[test]
    fn a_scope_may_end_before_a_younger_one() {
        let around = opened();
        let older = opened();
        add(300, 0);
        add(0, 300);
        let mut younger = opened();
        add(7, 0);
        assert_eq!(ended(older, iter::once(&mut younger)), (7, 307, 300));
        add(40, 0);
        assert_eq!(ended(younger, iter::empty()), (47, 47, 47));
        assert_eq!(ended(around, iter::empty()), (47, 347, 300));
    }
}

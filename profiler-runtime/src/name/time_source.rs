//! CPU or GPU: which time the loggers of a name get.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use profiler_report::TimeSource;

const fn from_u8(number: u8) -> TimeSource {
    match number {
        1 => TimeSource::Cpu,
        2 => TimeSource::Cuda,
        _ => TimeSource::Undecided,
    }
}

/// A [`TimeSource`] that is decided once. Relaxed ordering suffices: no other data depends on it.
#[derive(Debug)]
pub(super) struct AtomicTimeSource(AtomicU8);

impl AtomicTimeSource {
    pub(super) const fn undecided() -> Self {
        Self(AtomicU8::new(TimeSource::Undecided as u8))
    }

    pub(super) fn get(&self) -> TimeSource {
        from_u8(self.0.load(Relaxed))
    }

    /// Returns the source; decides on `first` if it is undecided.
    pub(super) fn get_or_decide(&self, first: TimeSource) -> TimeSource {
        let undecided = TimeSource::Undecided as u8;
        match self
            .0
            .compare_exchange(undecided, first as u8, Relaxed, Relaxed)
        {
            Ok(_) => first,
            Err(decided) => from_u8(decided),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decision_stays() {
        let source = AtomicTimeSource::undecided();
        assert_eq!(source.get(), TimeSource::Undecided);
        assert_eq!(source.get_or_decide(TimeSource::Cuda), TimeSource::Cuda);
        assert_eq!(source.get_or_decide(TimeSource::Cpu), TimeSource::Cuda);
        assert_eq!(source.get(), TimeSource::Cuda);
    }
}

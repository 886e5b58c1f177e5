//! The options of a session.

use std::borrow::Borrow;
use std::time::Duration;

use crate::config::KernelRecording;
use crate::cuda::Demand;

/// An activity that a session records, named as in `torch.profiler.ProfilerActivity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activity {
    /// CPU times of scopes.
    Cpu,
    /// GPU times of scopes, and the kernels, copies and fills inside of them, if CUPTI is used.
    Cuda,
}

/// Returns the activities of a list, which may be an array, a slice, a vector, or an iterator.
pub(super) fn copied(
    activities: impl IntoIterator<Item: Borrow<Activity>>,
) -> impl Iterator<Item = Activity> {
    activities.into_iter().map(|activity| *activity.borrow())
}

/// The options of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub(crate) struct SessionOptions {
    pub(crate) cpu: bool,
    pub(crate) cuda: bool,
    /// The program has named [`Activity::Cuda`], so it expects GPU times.
    pub(crate) expects_cuda: bool,
    pub(crate) record_shapes: bool,
    pub(crate) profile_memory: bool,
    pub(crate) with_stack: bool,
    pub(crate) native_stack: bool,
    /// How often the sensors of the devices are read while a window is open.
    pub(crate) gpu_samples: Option<Duration>,
    /// If kernels are recorded while GPU times are.
    pub(crate) kernels: KernelRecording,
}

impl SessionOptions {
    pub(crate) const DEFAULT: Self = Self {
        cpu: true,
        cuda: true,
        expects_cuda: false,
        record_shapes: false,
        profile_memory: false,
        with_stack: false,
        native_stack: false,
        gpu_samples: None,
        kernels: KernelRecording::IfPossible,
    };

    pub(crate) fn has(self, activity: Activity) -> bool {
        match activity {
            Activity::Cpu => self.cpu,
            Activity::Cuda => self.cuda,
        }
    }

    pub(crate) fn set(&mut self, activity: Activity, enable: bool) {
        match activity {
            Activity::Cpu => self.cpu = enable,
            Activity::Cuda => self.cuda = enable,
        }
    }

    /// Returns what a session that records wants of CUPTI.
    pub(super) fn demand(self) -> Demand {
        match self.kernels {
            _ if !self.cuda => Demand::Nothing,
            KernelRecording::Off => Demand::Nothing,
            KernelRecording::IfPossible => Demand::IfPossible,
            KernelRecording::Required => Demand::Required,
        }
    }

    /// Returns `true` if the windows have kernels, where that is possible.
    pub(super) fn has_kernels(self) -> bool {
        self.demand() != Demand::Nothing
    }

    /// Returns the details that scopes record, as bits of [`details`].
    pub(super) fn wants(self) -> u32 {
        let bits = [
            (self.record_shapes, details::SHAPES),
            (self.profile_memory, details::MEMORY),
            (self.with_stack, details::STACK),
            (self.native_stack, details::NATIVE),
        ];
        bits.iter()
            .filter(|(set, _)| *set)
            .fold(0, |all, (_, bit)| all | bit)
    }
}

/// The details that scopes record, as bits.
pub(crate) mod details {
    pub(crate) const SHAPES: u32 = 1;
    pub(crate) const MEMORY: u32 = 2;
    pub(crate) const STACK: u32 = 4;
    pub(crate) const NATIVE: u32 = 8;
}

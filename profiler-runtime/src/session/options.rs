//! What a session records.

/// What a session records; the names are those of `torch.profiler.ProfilerActivity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activity {
    /// CPU times of scopes.
    Cpu,
    /// GPU times of scopes.
    Cuda,
}

/// What a session was told to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub(crate) struct Options {
    pub(crate) cpu: bool,
    pub(crate) cuda: bool,
    pub(crate) record_shapes: bool,
    pub(crate) profile_memory: bool,
    pub(crate) with_stack: bool,
    pub(crate) native_stack: bool,
}

impl Options {
    pub(crate) const DEFAULT: Self = Self {
        cpu: true,
        cuda: true,
        record_shapes: false,
        profile_memory: false,
        with_stack: false,
        native_stack: false,
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

    /// What calls are to bring along.
    pub(super) fn wants(self) -> u32 {
        let bits = [
            (self.record_shapes, wants::SHAPES),
            (self.profile_memory, wants::MEMORY),
            (self.with_stack, wants::STACK),
            (self.native_stack, wants::NATIVE),
        ];
        bits.iter()
            .filter(|(set, _)| *set)
            .fold(0, |all, (_, bit)| all | bit)
    }
}

/// What calls are to bring along, as bits.
pub(crate) mod wants {
    pub(crate) const SHAPES: u32 = 1;
    pub(crate) const MEMORY: u32 = 2;
    pub(crate) const STACK: u32 = 4;
    pub(crate) const NATIVE: u32 = 8;
}

//! The numbers of the fields that the writer uses, by message, from `protos/perfetto/trace` of Perfetto.

pub(super) mod trace {
    pub(in super::super) const PACKET: u32 = 1;
}

pub(super) mod packet {
    pub(in super::super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(in super::super) const TIMESTAMP: u32 = 8;
    pub(in super::super) const SEQUENCE: u32 = 10;
    pub(in super::super) const TRACK_EVENT: u32 = 11;
    pub(in super::super) const INTERNED_DATA: u32 = 12;
    pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
    pub(in super::super) const DEFAULTS: u32 = 59;
    pub(in super::super) const TRACK_DESCRIPTOR: u32 = 60;
}

pub(super) mod clock_snapshot {
    pub(in super::super) const CLOCKS: u32 = 1;
}

pub(super) mod clock {
    pub(in super::super) const ID: u32 = 1;
    pub(in super::super) const TIMESTAMP: u32 = 2;
    pub(in super::super) const IS_INCREMENTAL: u32 = 3;
}

pub(super) mod defaults {
    pub(in super::super) const TIMESTAMP_CLOCK: u32 = 58;
}

pub(super) mod interned {
    pub(in super::super) const CATEGORIES: u32 = 1;
    pub(in super::super) const EVENT_NAMES: u32 = 2;
    pub(in super::super) const ANNOTATION_NAMES: u32 = 3;
    pub(in super::super) const SOURCE_LOCATIONS: u32 = 4;
    pub(in super::super) const ANNOTATION_TEXTS: u32 = 29;
}

/// `EventCategory`, `EventName`, `DebugAnnotationName` and `InternedString`.
pub(super) mod interned_text {
    pub(in super::super) const ID: u32 = 1;
    pub(in super::super) const TEXT: u32 = 2;
}

pub(super) mod source_location {
    pub(in super::super) const ID: u32 = 1;
    pub(in super::super) const FILE: u32 = 2;
    pub(in super::super) const FUNCTION: u32 = 3;
    pub(in super::super) const LINE: u32 = 4;
}

pub(super) mod track_descriptor {
    pub(in super::super) const UUID: u32 = 1;
    pub(in super::super) const NAME: u32 = 2;
    pub(in super::super) const PROCESS: u32 = 3;
    pub(in super::super) const THREAD: u32 = 4;
    pub(in super::super) const PARENT: u32 = 5;
    pub(in super::super) const COUNTER: u32 = 8;
    pub(in super::super) const CHILD_ORDERING: u32 = 11;
    pub(in super::super) const RANK: u32 = 12;
}

pub(super) mod process {
    pub(in super::super) const PID: u32 = 1;
    pub(in super::super) const NAME: u32 = 6;
    pub(in super::super) const LABELS: u32 = 8;
}

pub(super) mod thread {
    pub(in super::super) const PID: u32 = 1;
    pub(in super::super) const TID: u32 = 2;
    pub(in super::super) const NAME: u32 = 5;
}

pub(super) mod counter {
    pub(in super::super) const UNIT: u32 = 3;
    pub(in super::super) const UNIT_NAME: u32 = 6;
}

pub(super) mod event {
    pub(in super::super) const CATEGORY: u32 = 3;
    pub(in super::super) const ANNOTATIONS: u32 = 4;
    pub(in super::super) const KIND: u32 = 9;
    pub(in super::super) const NAME_ID: u32 = 10;
    pub(in super::super) const TRACK: u32 = 11;
    pub(in super::super) const NAME: u32 = 23;
    pub(in super::super) const SOURCE_LOCATION: u32 = 34;
    pub(in super::super) const VALUE: u32 = 44;
    pub(in super::super) const FLOWS: u32 = 47;
    pub(in super::super) const ENDING_FLOWS: u32 = 48;
}

pub(super) mod annotation {
    pub(in super::super) const NAME_ID: u32 = 1;
    pub(in super::super) const FLAG: u32 = 2;
    pub(in super::super) const INTEGER: u32 = 4;
    pub(in super::super) const NUMBER: u32 = 5;
    pub(in super::super) const TEXT: u32 = 6;
    pub(in super::super) const TEXT_ID: u32 = 17;
}

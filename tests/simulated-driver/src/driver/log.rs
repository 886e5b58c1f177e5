//! The log of what happened and the list of misuses. Both are bounded.

use crate::report::{Activity, Misuse};

const MAX_ACTIVITIES: usize = 4_000_000;
const MAX_MISUSES: usize = 1_000;

/// The events and counts of the driver.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) logging: bool,
    pub(crate) activities: Vec<Activity>,
    pub(crate) misuses: Vec<Misuse>,
    pub(crate) unread_records: u64,
    pub(crate) captures_invalidated: u64,
    pub(crate) host_function_calls: u64,
    pub(crate) blocked_calls: u64,
    pub(crate) events_lost_with_context: u64,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self {
            logging: true,
            activities: Vec::new(),
            misuses: Vec::new(),
            unread_records: 0,
            captures_invalidated: 0,
            host_function_calls: 0,
            blocked_calls: 0,
            events_lost_with_context: 0,
        }
    }

    pub(crate) fn push(&mut self, activity: impl FnOnce() -> Activity) {
        if self.logging && self.activities.len() < MAX_ACTIVITIES {
            self.activities.push(activity());
        }
    }

    pub(crate) fn misuse(&mut self, call: &str, what: &str, handle: usize) {
        if self.misuses.len() < MAX_MISUSES {
            self.misuses.push(Misuse {
                call: call.to_owned(),
                what: what.to_owned(),
                handle: handle as u64,
                thread: super::thread::id(),
            });
        }
    }
}

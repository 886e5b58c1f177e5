//! What is known of some scopes only.

use std::sync::Arc;

use profiler_report::{GroupBy, SliceDetails};

use super::own_memory::Used;
use super::{Builder, index_of};
use crate::session::{Event, Frame, RecordKind};

impl Builder<'_> {
    /// Adds what is known of some scopes only, and returns its index.
    pub(super) fn details(&mut self, event: Event<'_>, used: Used) -> Option<u32> {
        let trace = self.trace;
        let options = &trace.meta.options;
        // Tables show no native stacks: to print one takes milliseconds.
        let has_native_stack = self.for_tables.is_none();
        let has_stack = options.with_stack && self.for_tables.is_none_or(GroupBy::has_stack);
        let native_stack = has_native_stack.then(|| event.native_stack()).flatten();
        let details = SliceDetails {
            call_stack: has_stack.then(|| self.shared(call_stack(event))),
            native_stack: native_stack.map(|stack| self.shared(stack)),
            memory: event.memory(),
            own_host_net: used.host_net,
            no_gpu_time: no_gpu_time(event).map(|reason| self.shared(reason.to_owned())),
            is_untimed: !event.has_cpu(),
            polled_ns: self.for_tables.and_then(|_| match event.record().kind {
                RecordKind::Future { polled } => Some(self.times.of_length(polled)),
                _ => None,
            }),
            is_bound: event.is_bound(),
            non_exhaustive: (),
        };
        if details == SliceDetails::default() {
            return None;
        }
        self.timeline.details.push(details);
        Some(index_of(self.timeline.details.len() - 1))
    }

    fn shared(&mut self, text: String) -> Arc<str> {
        if let Some(known) = self.stacks.get(&*text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.into();
        self.stacks.insert(Arc::clone(&shared));
        shared
    }
}

fn no_gpu_time(event: Event<'_>) -> Option<&'static str> {
    match (event.gpu_loss(), event.gpu_record()) {
        (Some(loss), _) => Some(loss.as_str()),
        (None, None) if event.record().cuda != 0 => Some("not read in time"),
        _ => None,
    }
}

/// Innermost first: `src/model.rs(51): matmul;src/main.rs(10): main`.
fn call_stack(event: Event<'_>) -> String {
    let own = Frame {
        name: event.name(),
        location: event.location(),
    };
    let frames = std::iter::once(own).chain(event.stack());
    let texts: Vec<String> = frames
        .map(|frame| {
            let name = frame.name.replace(';', ",");
            match frame.location {
                Some(location) => {
                    format!(
                        "{}({}): {name}",
                        location.file_from_crate(),
                        location.line()
                    )
                }
                None => name,
            }
        })
        .collect();
    texts.join(";")
}

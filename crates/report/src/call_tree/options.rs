//! The options of call trees.

/// Options of call trees: whether threads, streams and steps divide the nodes too.
///
/// # Examples
///
/// ```
/// use profiler_report::{CallTreeOptions, Timeline};
///
/// let timeline = Timeline::default();
/// let tree = timeline.call_tree(CallTreeOptions::new().thread(true).step(true));
/// assert!(tree.nodes.is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until they are given to `call_tree`"]
pub struct CallTreeOptions {
    pub(super) thread: bool,
    pub(super) stream: bool,
    pub(super) step: bool,
}

impl CallTreeOptions {
    /// Divides the tree by functions only.
    pub const fn new() -> Self {
        Self {
            thread: false,
            stream: false,
            step: false,
        }
    }

    /// Divides the tree by threads too.
    pub const fn thread(self, thread: bool) -> Self {
        Self { thread, ..self }
    }

    /// Divides the tree by streams too. A function that was measured on a stream has the label of that stream.
    pub const fn stream(self, stream: bool) -> Self {
        Self { stream, ..self }
    }

    /// Divides the tree by steps too. A call belongs to the step in which it began, and work on the GPU to the step in
    /// which it was launched.
    pub const fn step(self, step: bool) -> Self {
        Self { step, ..self }
    }
}

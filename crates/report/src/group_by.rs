//! The options of grouping.

/// The properties besides the name that calls of a row have in common.
///
/// # Examples
///
/// ```no_run
/// use profiler_report::{GroupBy, SortKey, TableOptions, Timeline};
///
/// fn print(timeline: &Timeline) {
///     let by = GroupBy::new().group_by_input_shape(true).group_by_stack(5);
///     let options = TableOptions::new().sort_by(SortKey::SelfCudaTimeTotal).row_limit(10);
///     println!("{}", timeline.key_averages_by(by).table(&options));
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "grouping does nothing until it is given to `key_averages_by`"]
pub struct GroupBy {
    #[doc(hidden)]
    pub shapes: bool,
    /// How many enclosing scopes; zero for none.
    #[doc(hidden)]
    pub stack: usize,
}

impl GroupBy {
    /// Groups by name only, as `Trace::key_averages` does.
    pub const fn new() -> Self {
        Self {
            shapes: false,
            stack: 0,
        }
    }

    /// Groups by input shapes too, where they were recorded
    /// (`record_shapes`).
    pub const fn group_by_input_shape(self, shapes: bool) -> Self {
        Self { shapes, ..self }
    }

    /// Groups by this many enclosing scopes too, counted from the innermost; 0 for none.
    pub const fn group_by_stack(self, scopes: usize) -> Self {
        Self {
            stack: scopes,
            ..self
        }
    }

    /// An alias of [`group_by_stack`](Self::group_by_stack), under the name that torch uses.
    pub const fn group_by_stack_n(self, scopes: usize) -> Self {
        self.group_by_stack(scopes)
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn has_stack(self) -> bool {
        self.stack > 0
    }

    pub(crate) const fn has_shapes(self) -> bool {
        self.shapes
    }
}

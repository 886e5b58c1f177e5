//! Values that belong to the running process only.

/// A value of a report that is neither compared nor written to files: only reports of the running process have it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unsaved<T>(pub(super) T);

impl<T> PartialEq for Unsaved<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Unsaved<T> {}

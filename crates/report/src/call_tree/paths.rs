//! The bounds of call trees.

/// The longest path that a tree has. The files of most viewers hold whole paths, so their size grows with the square of the
/// depth.
pub(super) const MAX_DEPTH: u32 = 512;
/// The most paths, ...
pub(super) const MAX_PATHS: usize = 1 << 17;
/// ... and the most bytes that the names on all of them have.
const MAX_BYTES: usize = 128 << 20;

/// The paths that a tree has.
#[derive(Debug, Default)]
pub(super) struct Paths {
    count: usize,
    bytes: usize,
}

impl Paths {
    /// Adds a path of so many names, which have so many bytes. Returns `false` if there is no room for it: then its calls are
    /// counted by caller and callee, below [`OTHER_CALLERS`](crate::callers::OTHER_CALLERS).
    pub(super) fn admit(&mut self, depth: u32, bytes: usize) -> bool {
        let all = self.bytes.saturating_add(bytes);
        let has_room = depth <= MAX_DEPTH && self.count < MAX_PATHS && all <= MAX_BYTES;
        if has_room {
            self.count += 1;
            self.bytes = all;
        }
        has_room
    }
}

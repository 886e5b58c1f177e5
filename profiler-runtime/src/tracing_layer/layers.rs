//! The numbers of the layers of this process, and which layers there still are.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use profiler_host::sync::{Lock, ReentrancyGuard};

/// The layers that have not been dropped; `None` in a forked child that cannot know them. It then keeps the entries of all.
static ALIVE: Lock<Option<Vec<u64>>> = Lock::new(Some(Vec::new()));

/// Returns the number of a new layer. It tells the layers apart, as each registry has ids of its own.
pub(super) fn new() -> u64 {
    static LAYERS: AtomicU32 = AtomicU32::new(0);
    let layer = LAYERS.fetch_add(1, Relaxed).into();
    let _reentrancy = ReentrancyGuard::try_enter();
    let mut alive = ALIVE.lock();
    if let Some(layers) = &mut *alive {
        layers.push(layer);
    }
    layer
}

/// Notes that a layer is dropped.
pub(super) fn end(layer: u64) {
    let _reentrancy = ReentrancyGuard::try_enter();
    if let Some(layers) = &mut *ALIVE.lock() {
        layers.retain(|alive| *alive != layer);
    }
}

/// Returns `true` if the layer may still be in use.
pub(super) fn is_alive(layer: u64) -> bool {
    let alive = ALIVE.lock();
    alive.as_ref().is_none_or(|layers| layers.contains(&layer))
}

//! Which call on the CPU launched which work on the GPU.

use std::collections::HashMap;

use super::nesting::{NONE, Place, innermost};
use super::raw::{Raw, RawKind};
use super::tracks::Tracks;

/// The calls on the CPU of spans on the GPU.
pub(super) struct Callers {
    /// The function of each span; [`NONE`] for spans on the CPU.
    pub(super) functions: Vec<u32>,
    /// The CUDA call that launched each span; [`NONE`] if it is not in the file.
    pub(super) launches: Vec<u32>,
}

/// Returns the calls of each span on the GPU.
///
/// Work belongs to the function around the CUDA call that has its correlation, or else to the function that has its
/// external id. A range belongs to the range on the CPU that has its external id.
pub(super) fn callers(raws: &[Raw], places: &[Place], tracks: &Tracks) -> Callers {
    let mut callers = Callers {
        functions: vec![NONE; raws.len()],
        launches: vec![NONE; raws.len()],
    };
    if !raws.iter().any(|raw| raw.kind.is_on_gpu()) {
        return callers;
    }
    // Each rank of a merged file counts its ids from the beginning.
    let key = |raw: &Raw, id: u64| (tracks.merged(raw.track), id);
    let mut launches: HashMap<(u32, u64), u32> = HashMap::new();
    let mut functions: HashMap<(u32, u64), u32> = HashMap::new();
    for (index, raw) in (0..).zip(raws).filter(|(_, raw)| !raw.kind.is_on_gpu()) {
        if raw.kind == RawKind::Launch {
            if raw.correlation != 0 {
                launches.entry(key(raw, raw.correlation)).or_insert(index);
            }
        } else if raw.external_id != 0 {
            functions.entry(key(raw, raw.external_id)).or_insert(index);
        }
    }
    // The function around a launch, or the outermost launch if no function is around it. A call of the runtime may be inside
    // one of the driver.
    let around = innermost(places, |index| {
        raws[index as usize].kind != RawKind::Launch || places[index as usize].parent == NONE
    });
    for (index, raw) in raws.iter().enumerate() {
        let by_id = || functions.get(&key(raw, raw.external_id)).copied();
        callers.functions[index] = match raw.kind {
            RawKind::GpuWork => {
                let launch = launches.get(&key(raw, raw.correlation)).copied();
                callers.launches[index] = launch.unwrap_or(NONE);
                let function = launch.map(|launch| match around[launch as usize] {
                    NONE => launch,
                    function => function,
                });
                function.or_else(by_id)
            }
            RawKind::GpuScope | RawKind::GpuRange => by_id(),
            _ => None,
        }
        .unwrap_or(NONE);
    }
    callers
}

//! What the names that well-known programs give say: which are steps, and which make processes wait for each other.

/// How PyTorch begins the name of the range around a step. Tools treat every name that contains it as a step.
pub const STEP: &str = "ProfilerStep";

/// The name of the ranges of all steps together.
pub const STEPS: &str = "ProfilerStep*";

/// How [`STEP`] is written in the names of what is no step.
pub const NO_STEP: &str = "Profiler Step";

/// The libraries by which processes exchange data, as their kernels and the annotations of PyTorch begin.
const LIBRARIES: [&str; 6] = ["nccl", "rccl", "hccl", "gloo:", "oneccl", "mscclpp"];

/// Collectives, as a part of the last part of a name.
const COLLECTIVES: [&str; 6] = [
    "allreduce",
    "allgather",
    "reducescatter",
    "alltoall",
    // The all-reduce of vLLM and SGLang.
    "crossdevicereduce",
    "synchronizeranks",
];

/// Collectives whose names are also parts of names of other work: `aten::broadcast_to` copies nothing between processes.
const WHOLE: [&str; 2] = ["broadcast", "barrier"];

/// Returns `true` for the range that PyTorch draws around a step, which is no function: `ProfilerStep#5`, and `ProfilerStep*` for
/// all of them.
pub(crate) fn is_step_range(name: &str) -> bool {
    name == STEPS || step_number(name).is_some()
}

/// Returns the number in `ProfilerStep#5`.
pub fn step_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(STEP)?.strip_prefix('#')?;
    number.parse().ok()
}

/// Returns `true` if the calls of a function are the steps of a program: the range around a step, or a function whose last part has
/// the word `step`, such as `train_step` and `Optimizer::step`.
pub fn is_step(name: &str) -> bool {
    let last = name.rsplit([':', '.', '/']).next().unwrap_or(name);
    let mut words = last.split(|char: char| !char.is_alphanumeric());
    is_step_range(name) || words.any(|word| word.eq_ignore_ascii_case("step"))
}

/// Returns `true` for a kernel or an operator in which processes exchange data, and so wait for each other.
pub fn is_collective(name: &str) -> bool {
    // A frame of Python, such as `all_reduce.py(73): forward`, also takes the time of what it computes.
    if name.contains(".py(") {
        return false;
    }
    let name = name.trim_start_matches("void ");
    let name = name.replace("(anonymous namespace)", "").to_lowercase();
    let whole = name.split(['(', '<']).next().unwrap_or_default();
    let whole: String = whole.chars().filter(|c| !matches!(c, '_' | '-')).collect();
    let last = whole.rsplit(':').next().unwrap_or_default().trim();
    LIBRARIES.iter().any(|library| whole.starts_with(library))
        || COLLECTIVES.iter().any(|known| last.contains(known))
        || WHOLE.contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_ranges_of_pytorch_or_functions_of_that_word() {
        assert!(is_step_range("ProfilerStep#5") && is_step_range("ProfilerStep*"));
        for other in [
            "ProfilerStep",
            "ProfilerStep#x",
            "ProfilerStepper",
            "train_step",
        ] {
            assert!(!is_step_range(other), "{other}");
        }
        for step in [
            "ProfilerStep#5",
            "app::train_step",
            "Optimizer.step",
            "Step",
        ] {
            assert!(is_step(step), "{step}");
        }
        assert!(!is_step("footstep") && !is_step("step::load"));
    }

    #[test]
    fn collectives_are_known_by_library_or_operation() {
        for collective in [
            "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "void ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
            "rcclGenericKernel<1, false>(rcclArgs)",
            "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(unsigned long)",
            "void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)",
            "c10d::_reduce_scatter_base_",
            "c10d::broadcast_",
            "nccl:broadcast",
            "gloo:barrier",
            "all-reduce.1",
            "All_Reduce",
            "## alltoall_fwd_single ##",
        ] {
            assert!(is_collective(collective), "{collective}");
        }
        for other in [
            "aten::broadcast_tensors",
            "numpy/lib/stride_tricks.py(367): broadcast_to",
            "vllm/distributed/custom_all_reduce.py(233): should_custom_ar",
            "loop_broadcast_fusion",
            "void at::native::elementwise_kernel<128, broadcast_t>(int)",
            "void gemm<allreduce_tag>()",
            "void cub::DeviceReduceByKeyKernel<long>()",
        ] {
            assert!(!is_collective(other), "{other}");
        }
    }
}

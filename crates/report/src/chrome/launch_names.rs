//! The names of calls that launch work, as the tools know them.

/// The version of CUDA that a call came with, which CUPTI appends to the names of the runtime: `_v7000`.
const LEAST_VERSION_DIGITS: usize = 4;

/// Returns the name under which the tools know a call.
///
/// HTA's statistics of launches know only the calls of CUDA's runtime, so a call of the driver gets the name of the one that
/// does its work.
pub(super) fn known_name(call: &str) -> &str {
    let call = without_version(call);
    let call = call
        .strip_suffix("_ptsz")
        .or_else(|| call.strip_suffix("_ptds"))
        .unwrap_or(call);
    let is_async = call.contains("Async");
    match call {
        "__cudaLaunchKernel" => "cudaLaunchKernel",
        _ if call.starts_with("cuda") => call,
        _ if call.starts_with("cuLaunchKernelEx") => "cudaLaunchKernelExC",
        _ if call.starts_with("cuLaunchKernel") => "cudaLaunchKernel",
        _ if call.starts_with("cuLaunchCooperativeKernel") => "cudaLaunchCooperativeKernel",
        _ if call.starts_with("cuGraphLaunch") => "cudaGraphLaunch",
        _ if call.starts_with("cuMemcpy") && is_async => "cudaMemcpyAsync",
        _ if call.starts_with("cuMemcpy") => "cudaMemcpy",
        _ if call.starts_with("cuMemset") && is_async => "cudaMemsetAsync",
        _ if call.starts_with("cuMemset") => "cudaMemset",
        "cuStreamSynchronize" => "cudaStreamSynchronize",
        "cuEventSynchronize" => "cudaEventSynchronize",
        "cuCtxSynchronize" => "cudaDeviceSynchronize",
        "cuStreamWaitEvent" => "cudaStreamWaitEvent",
        _ => call,
    }
}

fn without_version(call: &str) -> &str {
    match call.rsplit_once("_v") {
        Some((name, version))
            if version.len() >= LEAST_VERSION_DIGITS
                && version.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            name
        }
        _ => call,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_driver_have_the_names_of_the_runtime() {
        for (call, known) in [
            ("cuLaunchKernel", "cudaLaunchKernel"),
            ("cuLaunchKernel_ptsz", "cudaLaunchKernel"),
            ("cuLaunchKernelEx_ptsz", "cudaLaunchKernelExC"),
            ("cuMemcpyHtoDAsync_v2", "cudaMemcpyAsync"),
            ("cuMemcpyDtoH_v2_ptds", "cudaMemcpy"),
            ("cuMemsetD8Async", "cudaMemsetAsync"),
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
            ("__cudaLaunchKernel_v13000", "cudaLaunchKernel"),
            ("cuGraphLaunch", "cudaGraphLaunch"),
            ("cuLaunchHostFunc", "cuLaunchHostFunc"),
        ] {
            assert_eq!(known_name(call), known, "{call}");
        }
    }
}

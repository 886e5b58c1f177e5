//! What is declared in this crate is what NVIDIA's headers say, in each release that is at hand.

use std::fs;
use std::path::Path;

use header_check::{Headers, Item, Kind, Release, Stated, VARIABLE, check, check_all};

use crate::cupti::{self, calls, record};
use crate::declare::transparent;
use crate::{driver, nvml, nvtx};

transparent! {
    driver::Code: "u32";
    driver::Event: "*?";
    driver::RawContext: "*?";
    driver::RawStream: "*?";
    nvml::Code: "u32";
    nvml::Handle: "*?";
    cupti::Code: "u32";
    cupti::Subscriber: "*?";
}

/// What not all releases have, or have otherwise. A release here is the first one of those that `.ci/steps.sh` names.
const STATED: &[Stated] = &[
    Stated::Since(Release(12, 0), &["cuCtxGetId"]),
    Stated::Since(
        Release(12, 4),
        &[
            "CUPTI_DRIVER_TRACE_CBID_cuMemPrefetchAsync_v2",
            "CUPTI_DRIVER_TRACE_CBID_cuMemPrefetchAsync_v2_ptsz",
            "nvmlDeviceGetCurrentClocksEventReasons",
            "NVML_FI_DEV_POWER_AVERAGE",
            "NVML_FI_DEV_POWER_INSTANT",
            "NVML_VALUE_TYPE_SIGNED_INT",
        ],
    ),
    Stated::Since(
        Release(12, 8),
        &[
            "cuEventElapsedTime_v2",
            "CUDA_ERROR_CONTAINED",
            "CUDA_ERROR_TENSOR_MEMORY_LEAK",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync_ptsz",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DBatchAsync",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DBatchAsync_ptsz",
            "nvmlDeviceGetTemperatureV",
            "nvmlTemperature_v1_t",
            "NVML_FI_DEV_PCIE_COUNT_TX_BYTES",
            "NVML_FI_DEV_PCIE_COUNT_RX_BYTES",
            "NVML_VALUE_TYPE_UNSIGNED_SHORT",
        ],
    ),
    Stated::Since(
        Release(13, 0),
        &[
            "cuptiSubscribe_v2",
            "CUpti_SubscriberParams",
            "CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize_v2",
            "CUPTI_DRIVER_TRACE_CBID_cuMemPrefetchBatchAsync",
            "CUPTI_DRIVER_TRACE_CBID_cuMemPrefetchBatchAsync_ptsz",
            "CUPTI_DRIVER_TRACE_CBID_cuMemDiscardAndPrefetchBatchAsync",
            "CUPTI_DRIVER_TRACE_CBID_cuMemDiscardAndPrefetchBatchAsync_ptsz",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync_v2",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync_v2_ptsz",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DBatchAsync_v2",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DBatchAsync_v2_ptsz",
            "CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000",
            "CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000",
        ],
    ),
    Stated::Since(
        Release(13, 5),
        &[
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpyWithAttributesAsync",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpyWithAttributesAsync_ptsz",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DWithAttributesAsync",
            "CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DWithAttributesAsync_ptsz",
            "nvmlClocksEventReasonBoardLimit",
            "NVTX_INJECTION_INITIALIZER_CORE",
            "nvmlClocksEventReasonReliability",
        ],
    ),
    // Without the last two.
    Stated::Is(Release(11, 8), "nvmlClocksThrottleReasonAll", "511"),
    // Its first field states its size, and so which fields it has.
    Stated::Is(Release(13, 5), "size of CUpti_SubscriberParams", "40"),
    Stated::Is(
        Release(13, 5),
        "cuptiSubscribe_v2",
        "fn(**?,*fn(*void,u32,u32,*void)->void,*void,*s40)->u32",
    ),
];

/// Returns everything that is declared.
fn declared(headers: &Headers, newest: &Headers) -> Vec<Item> {
    [
        driver::Table::declared(),
        driver::Code::constants(),
        driver::Code::faults(),
        driver::CaptureStatus::constants(),
        driver::CaptureMode::constants(),
        driver::PoolCounter::constants(),
        driver::constants(),
        driver::DeviceProperties::attributes(),
        cupti::declared(),
        cupti::kind::constants(),
        record::declared(headers),
        record::constants(),
        calls::declared(headers, newest),
        nvml::Table::declared(),
        nvml::Code::constants(),
        nvml::constants(),
        nvml::Utilization::declared(),
        nvml::Memory::declared(),
        nvml::Temperature::declared(),
        nvml::field::FieldValue::declared(),
        nvml::field::constants(),
        nvml::reason::constants(),
        nvtx::declared(),
    ]
    .concat()
}

#[test]
fn declarations_agree_with_the_headers_of_all_releases_and_a_mistake_among_them_is_found() {
    let Some(all) = Headers::of_environment() else {
        eprintln!("skipped: {VARIABLE} names no headers");
        return;
    };
    let newest = all.last().expect("a release");
    check_all(&all, &Kind::ALL, STATED, |headers| {
        declared(headers, newest)
    });

    let mut items = declared(newest, newest);
    for kind in Kind::ALL {
        let of_kind = items.iter_mut().find(|item| item.kind() == kind);
        of_kind.expect("an item of each kind").plant();
    }
    let differences = check(newest, &items, STATED).expect_err("five mistakes");
    assert_eq!(differences.len(), Kind::ALL.len(), "{differences:?}");
}

#[test]
fn every_structure_and_number_is_declared_beside_its_name_in_the_headers() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut plain = Vec::new();
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("declare.rs") && !path.ends_with("headers.rs") {
                files += 1;
                let text = fs::read_to_string(&path).expect("a file");
                let text = text.split("mod tests {").next().unwrap_or_default();
                let found = text.lines().map(str::trim).filter(|line| is_plain(line));
                plain.extend(found.map(ToOwned::to_owned));
            }
        }
    }
    assert!(files >= 15, "{files} files");
    plain.sort();
    // The first release of CUPTI that is supported, the scope that means all links, the sizes of the headers of ELF, and three
    // numbers of the crate's own.
    let expected = [
        "const ALL_LINKS: u32 = u32::MAX;",
        "const HEADER: usize = 64;",
        "const LENGTH: u16 = 256;",
        "const NONE: u8 = u8::MAX;",
        "const NO_BITS: u32 = 8;",
        "const NUMBERS: usize = 1024;",
        "const SECTION: usize = 64;",
        "const SEGMENT: usize = 56;",
        "pub const MIN_VERSION: u32 = 18;",
    ];
    assert_eq!(
        plain, expected,
        "declare them by the macros of `declare.rs`"
    );
}

/// Returns `true` for a line that declares a structure of C, or a number, without its name in a header.
fn is_plain(line: &str) -> bool {
    let value = line
        .strip_suffix(';')
        .filter(|line| line.contains("const "))
        .and_then(|line| line.split_once(" = "))
        .map(|(_, value)| value.trim_start_matches("Self("));
    let is_number = value.is_some_and(|value| {
        value.starts_with(|first: char| first.is_ascii_digit()) || value.ends_with("::MAX")
    });
    line == "#[repr(C)]" || is_number
}

//! The functions, numbers and sizes are what NVIDIA's headers say, in each release that is at hand.

use std::collections::BTreeMap;

use header_check::{Headers, Item, Kind, Release, Stated, VARIABLE, check_all};

use super::{code, cupti, exports, nvml};

/// What not all releases have, or have otherwise, beside the functions, which say since when they are there.
const STATED: [Stated; 6] = [
    Stated::Since(Release(12, 4), &["nvmlDeviceGetCurrentClocksEventReasons"]),
    Stated::Since(Release(12, 8), &["CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED"]),
    Stated::Since(
        Release(12, 8),
        &["CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync"],
    ),
    Stated::Since(Release(13, 0), &["CUpti_SubscriberParams"]),
    // Its first field states its size. The library is that of 13.0 here.
    Stated::Is(Release(13, 5), "size of CUpti_SubscriberParams", "40"),
    Stated::Is(
        Release(13, 5),
        "cuptiSubscribe_v2",
        "fn(**?,*fn(*void,u32,u32,*void)->void,*void,*s40)->u32",
    ),
];

/// Returns the release of CUDA that is meant by the version of a function.
fn release(since: i32) -> Release {
    let number = |part: i32| u32::try_from(part).expect("a version");
    match since {
        // The versions of CUPTI.
        18 => Release(11, 8),
        130_001 => Release(13, 0),
        _ => Release(number(since / 1_000), number(since % 1_000 / 10)),
    }
}

#[test]
fn the_simulated_libraries_have_the_types_and_numbers_of_the_headers() {
    let Some(all) = Headers::of_environment() else {
        eprintln!("skipped: {VARIABLE} names no headers");
        return;
    };
    let mut names: BTreeMap<Release, Vec<&'static str>> = BTreeMap::new();
    for entry in exports::all().chain(exports::tools()) {
        names
            .entry(release(entry.since))
            .or_default()
            .push(entry.name);
    }
    let oldest = all[0].release();
    names.retain(|since, _| *since > oldest);
    let mut stated: Vec<Stated> = names
        .into_iter()
        .map(|(since, names)| Stated::Since(since, names.leak()))
        .collect();
    stated.extend(STATED);
    check_all(&all, &Kind::ALL, &stated, declared);
}

fn declared(headers: &Headers) -> Vec<Item> {
    [
        exports::declared(),
        code::declared(),
        cupti::numbers(),
        cupti::records(headers),
        cupti::structures(),
        nvml::structures(),
    ]
    .concat()
}

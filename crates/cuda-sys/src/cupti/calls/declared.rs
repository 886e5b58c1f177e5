//! The calls as they are declared, to be compared with NVIDIA's headers.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::c_void;

use header_check::{Headers, Item};

use super::{Call, Extent, StreamPlace, all};
use crate::cupti::Domain;

/// The beginning of the names of the numbers.
fn beginning(domain: Domain) -> &'static str {
    match domain {
        Domain::Driver => "CUPTI_DRIVER_TRACE_CBID_",
        Domain::Runtime => "CUPTI_RUNTIME_TRACE_CBID_",
    }
}

/// Takes the name of a function apart: without the suffixes of its version and of its second form, whether it is that form,
/// and its version.
fn parts(symbol: &str) -> (&str, bool, u32) {
    let (mut name, mut is_second, mut version) = (symbol.trim_start_matches('_'), false, 1);
    while let Some((before, suffix)) = name.rsplit_once('_') {
        match (suffix, suffix.strip_prefix('v').map(str::parse)) {
            ("ptds" | "ptsz", _) => is_second = true,
            (_, Some(Ok(number))) => version = number,
            _ => break,
        }
        name = before;
    }
    (name, is_second, version)
}

/// Returns the names of the sizes of a call, in the order of their places.
fn sizes(name: &str) -> &'static [&'static str] {
    match name {
        _ if name.starts_with("cuMemsetD2D") => &["Width", "Height"],
        _ if name.starts_with("cuMemset") => &["N"],
        _ if name.starts_with("cuMemcpy2D") => &["WidthInBytes", "Height"],
        _ if name.starts_with("cuMemcpy3D") => &["WidthInBytes", "Height", "Depth"],
        _ if name.starts_with("cuda") || name == "cuMemPrefetchAsync" => &["count"],
        "cuMemcpyWithAttributesAsync" => &["size"],
        _ => &["ByteCount"],
    }
}

/// Returns the structure that the first parameter of a call points to.
fn pointed(name: &str) -> &'static str {
    match name {
        "cuLaunchKernelEx" => "CUlaunchConfig",
        "cuMemcpy3DPeer" | "cuMemcpy3DPeerAsync" => "CUDA_MEMCPY3D_PEER",
        _ if name.starts_with("cuMemcpy2D") => "CUDA_MEMCPY2D_v2",
        _ => "CUDA_MEMCPY3D_v2",
    }
}

/// Returns the number of a call, and the places in its parameters that are read. Headers that do not have the call miss the
/// name that it has in the newest ones.
fn items_of(call: &Call, headers: &Headers, newest: &Headers) -> Vec<Item> {
    let beginning = beginning(call.domain);
    let symbol_in = |headers: &Headers| {
        let symbol = headers.named(beginning, call.number.into())?;
        let (name, is_second, _) = parts(symbol);
        (name == call.name && is_second == call.is_per_thread).then(|| symbol.to_owned())
    };
    let Some(symbol) = symbol_in(headers) else {
        // If the number is of another call in all of them, this name is missed, or has another number.
        let symbol = symbol_in(newest).unwrap_or_else(|| call.name.to_owned());
        let name = format!("{beginning}{symbol}");
        return vec![Item::callback(&name, call.number)];
    };
    let mut items = vec![Item::callback(&format!("{beginning}{symbol}"), call.number)];
    let parameters = format!("{symbol}_params");
    let mut pointer = |record: &str, name: &str, offset: usize| {
        items.push(Item::field::<*mut c_void>(record, name, offset));
    };
    match call.place {
        StreamPlace::At(offset) => pointer(&parameters, "hStream", offset),
        StreamPlace::Inside(offset) => pointer(pointed(call.name), "hStream", offset),
        StreamPlace::Context(offset) => pointer(&parameters, "ctx", offset),
        StreamPlace::Unknown | StreamPlace::Default => {}
    }
    let (record, places) = match call.extent {
        Extent::Unknown => return items,
        Extent::Given(places) => (parameters.as_str(), places),
        Extent::Pointed(places) => (pointed(call.name), places),
    };
    let names = sizes(call.name);
    assert_eq!(names.len(), places.len(), "{call:?}");
    let places = names.iter().zip(places);
    items.extend(places.map(|(name, place)| Item::field::<usize>(record, name, *place)));
    items
}

/// Returns the calls, and the newest version of each function that is watched: a program that is compiled today calls it.
pub(crate) fn declared(headers: &Headers, newest: &Headers) -> Vec<Item> {
    let calls: Vec<Call> = all().collect();
    let items = calls
        .iter()
        .flat_map(|call| items_of(call, headers, newest));
    let mut items: Vec<Item> = items.collect();
    for domain in [Domain::Driver, Domain::Runtime] {
        let beginning = beginning(domain);
        // Some numbers of the driver are of functions that it has never had.
        let is_there = |symbol: &str| {
            let symbol = symbol.trim_end_matches("_ptds").trim_end_matches("_ptsz");
            domain == Domain::Runtime || headers.has(symbol)
        };
        let mut all: Vec<(&str, i64)> = headers.numbers(beginning).collect();
        all.retain(|(symbol, _)| is_there(symbol));
        all.sort_by_key(|(symbol, _)| Reverse(parts(symbol).2));
        let mut seen = BTreeSet::new();
        for (symbol, number) in all {
            let (name, is_second, _) = parts(symbol);
            let mut forms = calls.iter().filter(|call| {
                (call.domain, call.name, call.is_per_thread) == (domain, name, is_second)
            });
            if seen.insert((name, is_second))
                && let Some(other) = forms.clone().next()
                && forms.all(|call| i64::from(call.number) != number)
            {
                let name = format!("{beginning}{symbol}");
                items.push(Item::callback(&name, other.number));
            }
        }
    }
    items
}

#[test]
fn the_name_of_a_function_has_a_version_and_a_form() {
    for (symbol, expected) in [
        ("cuLaunchKernel", ("cuLaunchKernel", false, 1)),
        ("cuMemcpyHtoD_v2_ptds", ("cuMemcpyHtoD", true, 2)),
        (
            "cudaLaunchKernel_ptsz_v7000",
            ("cudaLaunchKernel", true, 7_000),
        ),
        (
            "__cudaLaunchKernel_v13000",
            ("cudaLaunchKernel", false, 13_000),
        ),
    ] {
        assert_eq!(parts(symbol), expected);
    }
}

//! What the suite declares of NVIDIA's libraries is what their headers say, in each release that is at hand.

use header_check::{Headers, Item, Kind, Release, Stated, VARIABLE, check_all};

use crate::checks::launches;
use crate::cupti;
use crate::driver::Driver;
use crate::nvml::Nvml;

const STATED: [Stated; 1] = [Stated::Since(Release(12, 8), &["cuEventElapsedTime_v2"])];

#[test]
fn the_suite_declares_what_the_headers_say() {
    let Some(all) = Headers::of_environment() else {
        eprintln!("skipped: {VARIABLE} names no headers");
        return;
    };
    let kinds = [Kind::Signature, Kind::Field, Kind::Constant, Kind::Callback];
    check_all(&all, &kinds, &STATED, declared);
}

fn declared(headers: &Headers) -> Vec<Item> {
    [
        Driver::declared(),
        Nvml::declared(),
        cupti::declared(headers),
        launches::declared(),
    ]
    .concat()
}

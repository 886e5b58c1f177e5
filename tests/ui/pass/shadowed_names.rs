//! Names of the language and the library that mean something else where the attribute is used.
#![deny(warnings)]
#![allow(dead_code, non_camel_case_types, unused_macros)]

mod std {}
mod core {}
mod alloc {}
mod profiler_runtime {}
mod __private {}
struct Option;
struct Result;
struct Box;
struct String;
struct Here;
struct CallSite;
struct ScopeBuilder;
struct bool;
struct u32;
struct u64;
struct f64;
struct str;
static SITE: u8 = 1;
const NAME: &::core::primitive::str = "constant";
fn drop() {}
macro_rules! compile_error {
    () => {};
}
macro_rules! panic {
    () => {};
}

use ::profiler_runtime::{measure_execution_time, measure_execution_time_context, scope};

#[measure_execution_time]
fn plain(_scope: u8) -> u8 {
    SITE + _scope
}

#[measure_execution_time(
    name = NAME,
    bypass = SITE == 2,
    global_step = SITE,
    log = |_tag, _milliseconds, _step| ()
)]
fn full(entry: u8, site: u8, name: u8, bypassed: u8) -> u8 {
    let scope = entry + site;
    scope + name + bypassed
}

#[measure_execution_time(bypass = SITE == 2)]
async fn later(entry: u8) -> u8 {
    entry
}

#[measure_execution_time]
fn future(future: u8) -> impl Future<Output = u8> {
    async move { future }
}

#[measure_execution_time(per_instance)]
fn each<Here, const SITE: usize>(_: Here) -> usize {
    SITE
}

fn main() {
    let entry = 1_u8;
    let _scope = scope!("outer", global_step = entry);
    assert_eq!(plain(1), 2);
    assert_eq!(full(1, 2, 3, 4), 10);
    assert_eq!(each::<Here, 2>(Here), 2);
    let name = "built";
    let value = measure_execution_time_context!(name, bypass = SITE == entry, { SITE + entry });
    assert_eq!(value, 2);
    let _ = (later(1), future(1));
}

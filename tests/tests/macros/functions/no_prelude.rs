//! A module without the prelude, where every name of the language and the library means something
//! else, and no unsafe code may be.
#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![allow(
    dead_code,
    non_camel_case_types,
    missing_docs,
    clippy::manual_async_fn,
    clippy::unused_async,
    clippy::used_underscore_binding,
    unused_macros
)]

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
const NAME: &::core::primitive::str = "no_prelude full";
fn drop() {}
macro_rules! compile_error {
    () => {};
}
macro_rules! panic {
    () => {};
}

use ::profiler_runtime::{measure_execution_time, measure_execution_time_context, scope};
use ::std::future::Future;

#[measure_execution_time]
pub(crate) fn plain(_scope: u8) -> u8 {
    SITE + _scope
}

#[measure_execution_time(
    name = NAME,
    bypass = SITE == 2,
    global_step = SITE,
    log = |_tag, _milliseconds, _step| (),
    log_every = 2
)]
pub(crate) fn full(entry: u8, site: u8, name: u8, bypassed: u8) -> u8 {
    let scope = entry + site;
    scope + name + bypassed
}

#[measure_execution_time(bypass = SITE == 2)]
pub(crate) async fn later(entry: u8) -> u8 {
    entry
}

#[measure_execution_time]
pub(crate) fn future(future: u8) -> impl Future<Output = u8> {
    async move { future }
}

#[measure_execution_time(per_instance)]
pub(crate) fn each<Here, const SITE: usize>(_: Here) -> usize {
    SITE
}

pub(crate) fn sections() -> u8 {
    let entry = 1_u8;
    let _scope = scope!("no_prelude guard", global_step = entry);
    let name = "no_prelude block";
    measure_execution_time_context!(name, bypass = SITE == 2, { SITE + entry })
}

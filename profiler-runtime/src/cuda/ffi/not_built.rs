//! Stands in for [`dynamic`](super::dynamic) in builds that load no driver: without the feature `cuda`, and on WebAssembly.

use std::convert::Infallible;
use std::ffi::{CStr, c_void};
use std::path::Path;

use crate::cuda::status::Status;

/// Returns [`Status::NotBuilt`].
pub(crate) fn open(_path: Option<&Path>, _load: bool) -> Result<Infallible, Status> {
    Err(Status::NotBuilt)
}

/// Never called: there is no library.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "a library is no `Copy`")]
pub(crate) fn symbol(library: &Infallible, _name: &CStr) -> Option<*mut c_void> {
    match *library {}
}

//! The linker: it joins texts of PTX to an image that can be loaded.

use super::code::{CudaResult, INVALID_HANDLE, INVALID_PTX, INVALID_VALUE, NOT_SUPPORTED};
use super::kernel::parse;
use super::slab::Missing;
use super::state::DriverState;

/// The kind of input that is PTX, `CU_JIT_INPUT_PTX`. The linker reads no other.
const PTX: u32 = 1;

/// A pending or completed action of the linker.
#[derive(Debug, Default)]
pub(crate) struct Link {
    ptx: String,
    /// The joined text and a zero byte. It does not move or change, since the program has its address.
    image: Option<Box<[u8]>>,
}

impl DriverState {
    pub(crate) fn create_link(&mut self) -> CudaResult<usize> {
        self.usable_current()?;
        Ok(self.links.insert(Link::default()))
    }

    /// Adds an input. Inputs cannot be added to a completed action.
    pub(crate) fn add_to_link(&mut self, handle: usize, kind: u32, data: &[u8]) -> CudaResult {
        let link = match self.links.get_mut(handle) {
            Ok(link) => link,
            Err(missing) => return Err(self.report_missing(missing, handle)),
        };
        if kind != PTX {
            return Err(NOT_SUPPORTED);
        }
        if link.image.is_some() {
            return Err(INVALID_VALUE);
        }
        // The text may end with a zero byte, which counts.
        let data = data.split(|byte| *byte == 0).next().unwrap_or_default();
        let ptx = str::from_utf8(data).map_err(|_| INVALID_PTX)?;
        parse(ptx)?;
        link.ptx.push_str(ptx);
        link.ptx.push('\n');
        Ok(())
    }

    /// Returns the image, which lives until the action is destroyed.
    pub(crate) fn complete_link(&mut self, handle: usize) -> CudaResult<&[u8]> {
        if let Err(missing) = self.links.get(handle) {
            return Err(self.report_missing(missing, handle));
        }
        let link = self.links.get_mut(handle).map_err(|_| INVALID_HANDLE)?;
        if link.ptx.is_empty() {
            return Err(INVALID_VALUE);
        }
        let image = || [link.ptx.as_bytes(), b"\0"].concat().into();
        Ok(link.image.get_or_insert_with(image))
    }

    pub(crate) fn destroy_link(&mut self, handle: usize) -> CudaResult {
        let removed = self.links.remove(handle, Missing::Destroyed);
        removed.map_err(|missing| self.report_missing(missing, handle))?;
        Ok(())
    }
}

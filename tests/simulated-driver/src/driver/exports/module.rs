//! Modules, and the linker that makes them of PTX.

use crate::driver::code::{FILE_NOT_FOUND, INVALID_PTX, NOT_FOUND};
use crate::driver::entry::entry_points;
use crate::driver::ffi::{self, Image, Out, Text};

entry_points! {
    cuModuleLoad(module: Out<usize>, path: Text) since 2_000, UNSAFE_IN_CAPTURE => |m| {
        let image = std::fs::read(path.get()?).map_err(|_| FILE_NOT_FOUND)?;
        let ptx = if image.starts_with(b"\x7fELF") {
            None
        } else {
            Some(std::str::from_utf8(&image).map_err(|_| INVALID_PTX)?)
        };
        module.set(m.load_module(ptx)?)
    };
    cuModuleLoadData(module: Out<usize>, image: Image) since 2_000, UNSAFE_IN_CAPTURE => |m| {
        module.set(m.load_module(image.ptx()?)?)
    };
    cuModuleLoadDataEx(
        module: Out<usize>,
        image: Image,
        _count: u32,
        _options: usize,
        _values: usize,
    ) since 2_010, UNSAFE_IN_CAPTURE => |m| module.set(m.load_module(image.ptx()?)?);
    cuModuleUnload(module: usize) since 2_000, WAITS, UNSAFE_IN_CAPTURE => |m| {
        m.unload_module(module)
    };
    cuModuleGetFunction(function: Out<usize>, module: usize, name: Text) since 2_000 => |m| {
        function.set(m.find_function(module, name.get()?)?)
    };
    cuModuleGetGlobal_v2(_address: Out<usize>, _bytes: Out<usize>, _module: usize, _name: Text)
        since 3_020 => |_| Err(NOT_FOUND);
    cuLinkCreate_v2(_count: u32, _options: usize, _values: usize, link: Out<usize>) since 6_050 => |m| {
        link.set(m.create_link()?)
    };
    cuLinkAddData_v2(
        link: usize,
        kind: u32,
        data: usize,
        bytes: usize,
        _name: Text,
        _count: u32,
        _options: usize,
        _values: usize,
    ) since 6_050 => |m| m.add_to_link(link, kind, &ffi::keep(data, bytes));
    cuLinkComplete(link: usize, image: Out<usize>, bytes: Out<usize>) since 5_050 => |m| {
        let linked = m.complete_link(link)?;
        image.set(linked.as_ptr().addr())?;
        bytes.set(linked.len())
    };
    cuLinkDestroy(link: usize) since 5_050 => |m| m.destroy_link(link);
}

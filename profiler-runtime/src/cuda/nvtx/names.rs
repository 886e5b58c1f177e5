//! The names that are registered with the tool, by their ids.

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

use profiler_cuda_sys::nvtx::{StringHandle, core2};
use profiler_host::sync::Lock;

use super::Category;
use super::attach::tool;
use crate::name::{MAX_NAMES, Name, Origin};

/// A name in the tool. Never freed, as names are not.
#[derive(Debug)]
pub(super) struct RegisteredName {
    /// Null if the tool registers no strings.
    pub(super) handle: StringHandle,
    pub(super) text: Box<CStr>,
    /// Alpha, red, green and blue.
    pub(super) colour: u32,
    /// The category of scopes with this name.
    pub(super) category: Category,
}

/// The names of one page of ids; null for those that are not registered.
type Page = [AtomicPtr<RegisteredName>; PAGE];
const PAGE: usize = 256;

/// All pages; null for those without names. A pointer in it is stored with `Release` once what it points to is complete,
/// and loaded with `Acquire`. It changes once, under the lock [`REGISTERING`].
static PAGES: [AtomicPtr<Page>; MAX_NAMES / PAGE] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_NAMES / PAGE];

/// Held while a name is registered, so that the tool gets each one once.
static REGISTERING: Lock<()> = Lock::new(());

/// Returns the name with this id, if it is registered.
pub(super) fn get(id: u32) -> Option<&'static RegisteredName> {
    let page = PAGES.get(id as usize / PAGE)?.load(Acquire);
    // SAFETY: null, or a page that is never freed.
    let page = unsafe { page.as_ref() }?;
    let name = page.get(id as usize % PAGE)?.load(Acquire);
    // SAFETY: null, or a name that is never freed.
    unsafe { name.as_ref() }
}

/// Registers a name with the tool, unless that was done before.
pub(crate) fn register(name: &Name) {
    let Some(tool) = tool() else { return };
    let _registering = REGISTERING.lock();
    if get(name.id).is_some() {
        return;
    }
    let text = c_string(&name.text);
    let handle = core2::register_string().map_or(ptr::null_mut(), |register| {
        // SAFETY: the tool has filled the entry in with a function of this type. It copies the text.
        unsafe { register(tool.domain, text.as_ptr()) }
    });
    store(
        name.id,
        RegisteredName {
            handle,
            text: text.into_boxed_c_str(),
            colour: colour(group(name)),
            category: match name.origin {
                Origin::Function => Category::Function,
                Origin::Given => Category::Section,
            },
        },
    );
}

fn store(id: u32, name: RegisteredName) {
    let Some(slot) = PAGES.get(id as usize / PAGE) else {
        return;
    };
    let mut page = slot.load(Acquire);
    if page.is_null() {
        page = Box::into_raw(Box::new([const { AtomicPtr::new(ptr::null_mut()) }; PAGE]));
        slot.store(page, Release);
    }
    // SAFETY: the page is never freed.
    if let Some(slot) = unsafe { page.as_ref() }.and_then(|page| page.get(id as usize % PAGE)) {
        slot.store(Box::into_raw(Box::new(name)), Release);
    }
}

/// Returns a text for C, with other characters for those that would end it.
pub(super) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Returns the part of the program that a name belongs to: the module or type of a function, else the source file.
fn group(name: &Name) -> &str {
    match (name.origin, name.text.rsplit_once("::")) {
        (Origin::Function, Some((path, _))) => path,
        _ => name.location.file_from_crate(),
    }
}

/// Returns the colour of a part of the program, which is the same in each run: neither too dark nor too light for text.
fn colour(group: &str) -> u32 {
    // FNV-1a. The standard hasher may change with the version of Rust.
    let hash = group.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    0xff40_4040 + (hash >> 1 & 0x007f_7f7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_for_c_keeps_what_follows_a_zero() {
        assert_eq!(c_string("a\0b").to_str(), Ok("a\u{fffd}b"));
        assert_eq!(c_string("app::Modèle").to_str(), Ok("app::Modèle"));
    }

    #[test]
    fn parts_of_a_program_have_opaque_colours_of_medium_brightness() {
        let colours = ["app::Model", "app::Loader", "src/main.rs", ""].map(colour);
        for colour in colours {
            let [alpha, channels @ ..] = colour.to_be_bytes();
            assert_eq!(alpha, 0xff);
            assert!(
                channels
                    .iter()
                    .all(|channel| (0x40..=0xbf).contains(channel))
            );
        }
        assert_eq!(colours[0], super::colour("app::Model"));
        assert!(colours[0] != colours[1] && colours[1] != colours[2]);
    }

    #[test]
    fn the_methods_of_a_type_are_one_group() {
        let at = std::panic::Location::caller();
        let [forward, backward] = ["forward", "backward"].map(|function| {
            crate::name::of_function(&format!("nvtx_names::Model::{function}::Here"), at)
        });
        assert_eq!(group(forward), "nvtx_names::Model");
        assert_eq!(group(backward), group(forward));
        let section = crate::name::declared("nvtx names: section", at);
        assert_eq!(group(section), at.file());
    }

    #[test]
    fn a_name_is_found_by_its_id_once_it_is_stored() {
        let id = u32::try_from(MAX_NAMES - 1).unwrap();
        assert!(get(id).is_none());
        store(
            id,
            RegisteredName {
                handle: ptr::null_mut(),
                text: c_string("last").into_boxed_c_str(),
                colour: 7,
                category: Category::Section,
            },
        );
        assert_eq!(get(id).map(|name| name.colour), Some(7));
        assert!(get(id - 1).is_none() && get(id + 1).is_none());
    }
}

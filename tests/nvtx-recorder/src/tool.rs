//! The tool: what a program that uses NVTX loads.

use std::cell::Cell;
use std::env;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

static OUT: Mutex<Option<File>> = Mutex::new(None);
static STRINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static OPEN: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static PROCESS: AtomicU32 = AtomicU32::new(0);
static THREADS: AtomicU32 = AtomicU32::new(0);
static RANGES: AtomicU64 = AtomicU64::new(0);
static PUSHES: AtomicU64 = AtomicU64::new(0);

/// The handle of the domain.
const DOMAIN: usize = 0x11;

thread_local! {
    static THREAD: Cell<Option<u32>> = const { Cell::new(None) };
    static DEPTH: Cell<c_int> = const { Cell::new(0) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn thread() -> u32 {
    THREAD.get().unwrap_or_else(|| {
        let number = THREADS.fetch_add(1, Relaxed);
        THREAD.set(Some(number));
        number
    })
}

/// Writes a line: one `write`, so that lines of two processes do not mix.
fn record(fields: &[&dyn Display]) {
    let is_child = std::process::id() != PROCESS.load(Relaxed);
    let mut line = format!("{}\t{}", u32::from(is_child), thread());
    for field in fields {
        line.push('\t');
        line.push_str(&field.to_string().replace(['\t', '\n'], " "));
    }
    line.push('\n');
    if let Some(out) = &mut *lock(&OUT) {
        let _ = out.write_all(line.as_bytes());
    }
}

fn wrong(what: &str) {
    record(&[&"wrong", &what]);
}

fn check_domain(domain: *mut c_void) {
    let is_expected = domain.addr() == DOMAIN || domain.is_null() && lacks("function=5.12");
    if !is_expected {
        wrong("a domain that the tool has not created");
    }
}

/// # Safety
///
/// The pointer must be null or point to a text that ends with a zero.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        wrong("no text");
        return String::new();
    }
    // SAFETY: the caller promises it.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// `nvtxEventAttributes_t`.
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    colour_type: i32,
    colour: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

/// Writes down a call with a range.
///
/// # Safety
///
/// The pointer must point to attributes as NVTX 3 has them.
unsafe fn record_range(call: &[&dyn Display], attributes: *const Attributes) {
    // SAFETY: the caller promises it.
    let Some(attributes) = (unsafe { attributes.as_ref() }) else {
        return wrong("no attributes");
    };
    if attributes.version != 3 || usize::from(attributes.size) != size_of::<Attributes>() {
        wrong("attributes of another version");
    }
    if attributes.colour_type != 1 || attributes.reserved != 0 {
        wrong("a colour of another type");
    }
    let (kind, name) = match attributes.message_type {
        // SAFETY: the type says that it is a text.
        1 => ("text", unsafe { text(attributes.message.cast()) }),
        3 => {
            let index = attributes.message.addr().wrapping_sub(1);
            let known = lock(&STRINGS).get(index).cloned();
            ("registered", known.unwrap_or_default())
        }
        _ => ("none", String::new()),
    };
    let payload = match attributes.payload_type {
        0 => "none".to_owned(),
        1 => attributes.payload.to_string(),
        other => format!("of type {other}"),
    };
    let range: [&dyn Display; 5] = [
        &kind,
        &attributes.category,
        &attributes.colour,
        &payload,
        &name,
    ];
    record(&[call, &range].concat());
}

unsafe extern "system" fn domain_create(name: *const c_char) -> *mut c_void {
    // SAFETY: the program passes a text.
    record(&[&"domain", &unsafe { text(name) }]);
    std::ptr::without_provenance_mut(DOMAIN)
}

unsafe extern "system" fn name_category(domain: *mut c_void, number: u32, name: *const c_char) {
    check_domain(domain);
    // SAFETY: the program passes a text.
    record(&[&"category", &number, &unsafe { text(name) }]);
}

unsafe extern "system" fn register_string(domain: *mut c_void, name: *const c_char) -> *mut c_void {
    check_domain(domain);
    // SAFETY: the program passes a text.
    let name = unsafe { text(name) };
    record(&[&"register", &name]);
    let mut strings = lock(&STRINGS);
    strings.push(name);
    std::ptr::without_provenance_mut(strings.len())
}

unsafe extern "system" fn push(domain: *mut c_void, attributes: *const Attributes) -> c_int {
    check_domain(domain);
    let number = PUSHES.fetch_add(1, Relaxed) + 1;
    if !lacks(&format!("push={number}")) {
        // SAFETY: the program passes attributes.
        unsafe { record_range(&[&"push"], attributes) };
    }
    DEPTH.replace(DEPTH.get() + 1)
}

unsafe extern "system" fn pop(domain: *mut c_void) -> c_int {
    check_domain(domain);
    if DEPTH.get() == 0 {
        wrong("a pop without a range");
        return -1;
    }
    record(&[&"pop"]);
    DEPTH.set(DEPTH.get() - 1);
    DEPTH.get()
}

unsafe extern "system" fn start(domain: *mut c_void, attributes: *const Attributes) -> u64 {
    check_domain(domain);
    let id = RANGES.fetch_add(1, Relaxed) + 1;
    lock(&OPEN).push(id);
    // SAFETY: the program passes attributes.
    unsafe { record_range(&[&"start", &id], attributes) };
    id
}

unsafe extern "system" fn end(domain: *mut c_void, id: u64) {
    check_domain(domain);
    let mut open = lock(&OPEN);
    let place = open.iter().position(|open| *open == id);
    match place.map(|place| open.remove(place)) {
        Some(id) => record(&[&"end", &id]),
        None => wrong("the end of a range that is not open"),
    }
}

unsafe extern "system" fn name_os_thread(id: u32, name: *const c_char) {
    // SAFETY: the program passes a text.
    record(&[&"thread", &id, &unsafe { text(name) }]);
}

unsafe extern "system" fn name_stream(stream: *mut c_void, name: *const c_char) {
    // SAFETY: the program passes a text.
    record(&[&"stream", &stream.addr(), &unsafe { text(name) }]);
}

fn lacks(fault: &str) -> bool {
    env::var(crate::FAULTS).is_ok_and(|faults| faults.split(' ').any(|known| known == fault))
}

type ModuleTable = unsafe extern "system" fn(u32, *mut *mut *mut *mut c_void, *mut u32) -> c_int;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    struct_size: usize,
    module_table: ModuleTable,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    struct_size: usize,
    version: u32,
    reserved: u32,
    set_injection_version: unsafe extern "system" fn(u32),
}

/// Stores the tool's functions of a module, and returns `false` if the program does not have the module.
///
/// # Safety
///
/// `module_table` must be that of an NVTX client, and the functions must have the types of the entries.
unsafe fn fill_in(
    module_table: ModuleTable,
    module: u32,
    functions: &[(u32, *mut c_void)],
) -> bool {
    let (mut table, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: both pointers are valid for writes.
    if unsafe { module_table(module, &raw mut table, &raw mut size) } == 0 {
        return false;
    }
    for (index, function) in functions {
        if *index < size && !lacks(&format!("function={module}.{index}")) {
            // SAFETY: the table has `size` pointers to entries, and all but the first are not null.
            unsafe { **table.add(*index as usize) = *function };
        }
    }
    true
}

/// Gives the function that initializes the tool, as a driver does in which a tool waits. Returns 0 if there is one.
///
/// # Safety
///
/// `initializer` must be valid for a write.
#[unsafe(no_mangle)]
#[allow(
    non_snake_case,
    unreachable_pub,
    reason = "programs find it by this name"
)]
pub unsafe extern "system" fn cuNvtxGetInjectionInitializer(
    kind: u32,
    initializer: *mut *const c_void,
) -> c_int {
    const CORE: u32 = 1;
    if kind != CORE || lacks("driver") {
        return 1;
    }
    // SAFETY: the program passes a place for one function.
    unsafe { initializer.write(InitializeInjectionNvtx2 as *const c_void) };
    0
}

/// Initializes the tool: the function that programs look for. Returns 0 if the tool refuses the program.
///
/// # Safety
///
/// `export_table` must be that of an NVTX client.
#[unsafe(no_mangle)]
#[allow(
    non_snake_case,
    unreachable_pub,
    reason = "programs find it by this name"
)]
pub unsafe extern "system" fn InitializeInjectionNvtx2(
    export_table: unsafe extern "system" fn(u32) -> *const c_void,
) -> c_int {
    PROCESS.store(std::process::id(), Relaxed);
    let open = |path| OpenOptions::new().create(true).append(true).open(path).ok();
    *lock(&OUT) = env::var_os(crate::FILE).and_then(open);
    // SAFETY: the program returns null or one of the two structures.
    let (callbacks, version) = unsafe {
        (
            export_table(1).cast::<Callbacks>().as_ref(),
            export_table(3).cast::<VersionInfo>().as_ref(),
        )
    };
    let Some(callbacks) = callbacks.filter(|table| table.struct_size >= size_of::<Callbacks>())
    else {
        wrong("no callbacks");
        return 0;
    };
    match version {
        Some(info) if info.version == 3 && info.struct_size >= size_of::<VersionInfo>() => {
            // SAFETY: the program filled the structure in.
            unsafe { (info.set_injection_version)(3) };
        }
        _ => wrong("no version"),
    }
    if lacks("refuse") {
        return 0;
    }
    let modules: [(u32, &[(u32, *mut c_void)]); 3] = [
        (1, &[(14, name_os_thread as *mut c_void)]),
        (2, &[(5, name_stream as *mut c_void)]),
        (
            5,
            &[
                (2, start as *mut c_void),
                (3, end as *mut c_void),
                (4, push as *mut c_void),
                (5, pop as *mut c_void),
                (8, name_category as *mut c_void),
                (10, register_string as *mut c_void),
                (12, domain_create as *mut c_void),
            ],
        ),
    ];
    for (module, functions) in modules {
        let is_filled = lacks(&format!("module={module}"))
            // SAFETY: the functions have the types of NVTX 3.
            || unsafe { fill_in(callbacks.module_table, module, functions) };
        if !is_filled {
            wrong("a module is missing");
        }
    }
    1
}

//! A declaration that a header contradicts is found, whatever it is of; so is a statement that is not true.
//!
//! Without a compiler of C++, the tests return at once.

use std::ffi::c_void;
use std::process::Command;

use header_check::{Headers, Item, Kind, Release, Stated, check, check_all};

const HEADER: &str = "
typedef enum { LIB_OK = 0, LIB_GONE = 7 } Result;
enum Call { LIB_CBID_launch = 307, LIB_CBID_launch_ptsz = 442 };
#define LIB_FLAG 2
#define libCount libCount_v2
#define libRenamed libRenamed_v2
typedef struct Device_st *Device;
typedef struct {
    unsigned kind;
    union { unsigned long long wide; char bytes[8]; } value;
    Device device;
} Record;
typedef unsigned long long (*Clock)(void);
extern \"C\" Result libCount_v2(Device device, unsigned *count);
extern \"C\" Result libRead(Device device, int how, Record *record, Clock clock);
extern \"C\" Result libCount(Device device);
";

type Read = unsafe extern "C" fn(*mut c_void, i32, *mut [u64; 3], extern "C" fn() -> u64) -> u32;

/// Returns the header as that of a release; `None` without a compiler.
fn headers(release: Release, text: &str) -> Option<Headers> {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("skipped: there is no compiler of C++");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // The functions that are declared under a name which is a macro too.
    let text = text.replace(
        "extern \"C\" Result libCount(",
        "#undef libCount\nextern \"C\" Result libCount(",
    );
    std::fs::write(folder.path().join("lib.h"), text).expect("it can be written");
    let folders = vec![folder.path().to_owned()];
    let headers = Headers::new(release, folders, &["lib.h"]);
    // Kept for the compiler, which reads the header once more.
    let _ = folder.keep();
    Some(headers)
}

fn right() -> Vec<Item> {
    vec![
        Item::function::<Read>("libRead"),
        Item::function::<unsafe extern "C" fn(*mut c_void) -> u32>("libCount"),
        Item::function_type::<extern "C" fn() -> u64>("Clock"),
        Item::field::<u32>("Record", "kind", 0),
        Item::field::<u64>("Record", "value.wide", 8),
        Item::field::<[u8; 8]>("Record", "value", 8),
        Item::field::<*mut c_void>("Record", "device", 16),
        Item::size("Record", 24),
        Item::constant("LIB_GONE", &7_u32),
        Item::constant("LIB_FLAG", &2_i32),
        Item::callback("LIB_CBID_launch", 307),
    ]
}

#[test]
fn what_is_declared_as_in_the_header_agrees() {
    let Some(headers) = headers(Release(1, 0), HEADER) else {
        return;
    };
    let counts = check(&headers, &right(), &[]).expect("no difference");
    let of = |kind| counts.of(kind);
    let all = Kind::ALL.map(of);
    assert_eq!(all, [3, 4, 1, 2, 1]);
    assert_eq!(headers.named("LIB_CBID_", 442), Some("launch_ptsz"));
    assert_eq!(headers.named("LIB_CBID_", 443), None);
}

type Short = unsafe extern "C" fn(*mut c_void, i32, *mut [u64; 3]) -> u32;
type Wide = unsafe extern "C" fn(*mut c_void, i64, *mut [u64; 3], extern "C" fn() -> u64) -> u32;
type Small = unsafe extern "C" fn(*mut c_void, i32, *mut [u64; 2], extern "C" fn() -> u64) -> u32;
type Clock = unsafe extern "C" fn(*mut c_void, i32, *mut [u64; 3], extern "C" fn() -> u32) -> u32;
type Result64 =
    unsafe extern "C" fn(*mut c_void, i32, *mut [u64; 3], extern "C" fn() -> u64) -> u64;

#[test]
fn a_planted_mistake_of_each_kind_is_found() {
    let Some(headers) = headers(Release(1, 0), HEADER) else {
        return;
    };
    let wrong = [
        Item::function::<Short>("libRead"),
        Item::function::<Wide>("libRead"),
        Item::function::<Small>("libRead"),
        Item::function::<Clock>("libRead"),
        Item::function::<Result64>("libRead"),
        Item::function::<unsafe extern "C" fn(*mut c_void, *mut u32) -> u32>("libCount"),
        Item::function_type::<extern "C" fn() -> u32>("Clock"),
        Item::field::<u64>("Record", "value.wide", 4),
        Item::field::<u32>("Record", "value.wide", 8),
        Item::size("Record", 16),
        Item::constant("LIB_GONE", &8_u32),
        Item::constant("LIB_FLAG", &1_i32),
        Item::callback("LIB_CBID_launch", 308),
    ];
    let items = [&right()[..], &wrong].concat();
    let differences = check(&headers, &items, &[]).expect_err("differences");
    assert_eq!(differences.len(), wrong.len(), "{differences:?}");
    for (planted, found) in wrong.iter().zip(&differences) {
        assert!(found.starts_with(&format!("{planted}: ")), "{found}");
    }
}

#[test]
fn a_name_that_the_header_lacks_is_found_unless_that_is_stated() {
    let Some(headers) = headers(Release(1, 0), HEADER) else {
        return;
    };
    let gone = [
        Item::function::<extern "C" fn() -> u32>("libGone"),
        // A macro is no function: the symbol of this name has another type, or is not there.
        Item::function::<extern "C" fn() -> u32>("libRenamed"),
        Item::field::<u32>("Gone", "kind", 0),
        Item::constant("LIB_GONE_TOO", &1_u32),
    ];
    for gone in gone {
        let items = [gone];
        let differences = check(&headers, &items, &[]).expect_err("a difference");
        assert!(
            differences[0].ends_with("1.0 does not have it"),
            "{differences:?}"
        );
        let name: &'static str = items[0].name().to_owned().leak();
        let names: &'static [&'static str] = vec![name].leak();
        for known in [
            Stated::Since(Release(1, 1), names),
            Stated::Until(Release(1, 0), names),
        ] {
            check(&headers, &items, &[known]).expect("it is stated");
        }
        for untrue in [
            Stated::Since(Release(1, 0), names),
            Stated::Until(Release(1, 1), names),
        ] {
            check(&headers, &items, &[untrue]).expect_err("it is said to be there");
        }
    }
    let untrue = Stated::Since(Release(2, 0), &["libRead"]);
    let differences = check(&headers, &right(), &[untrue]).expect_err("it is there");
    assert!(
        differences[0].contains("said to lack it"),
        "{differences:?}"
    );
}

#[test]
fn a_stated_size_is_the_only_other_one_that_passes() {
    let Some(headers) = headers(Release(1, 5), HEADER) else {
        return;
    };
    let items = [Item::size("Record", 16)];
    let check = |stated| check(&headers, &items, &[stated]);
    check(Stated::Is(Release(1, 5), "size of Record", "24")).expect("it is stated");
    check(Stated::Is(Release(1, 5), "size of Record", "32")).expect_err("another size");
    check(Stated::Is(Release(1, 6), "size of Record", "24")).expect_err("a later release");
}

#[test]
fn all_releases_together_must_have_each_name_and_bear_out_each_statement() {
    let newer = format!("{HEADER}\nextern \"C\" Result libNew(void);\n");
    let (Some(old), Some(new)) = (
        headers(Release(1, 0), HEADER),
        headers(Release(2, 0), &newer),
    ) else {
        return;
    };
    let all = [old, new];
    let said = |items: Vec<Item>, stated: &[Stated]| {
        let check = || check_all(&all, &Kind::ALL, stated, |_| items.clone());
        let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).err();
        said.map(|said| *said.downcast::<String>().expect("a message"))
    };
    let items = || {
        let mut items = right();
        items.push(Item::function::<unsafe extern "C" fn() -> u32>("libNew"));
        items
    };
    let since = Stated::Since(Release(2, 0), &["libNew"]);
    assert_eq!(said(items(), &[since]), None);
    let mut gone = items();
    gone.push(Item::constant("LIB_NEVER", &1_u32));
    let mut few = items();
    few.retain(|item| item.kind() != Kind::Size);
    let nowhere = Stated::Since(Release(9, 0), &["LIB_NEVER"]);
    let always = Stated::Until(Release(3, 0), &["libRead"]);
    let same = Stated::Is(Release(1, 0), "size of Record", "24");
    let wide = Stated::Is(Release(1, 0), "Record.kind", "0 u64");
    for (items, stated, expected) in [
        (
            items(),
            vec![since, wide],
            "Record.kind: what is stated is nowhere so",
        ),
        (items(), vec![], "libNew: 1.0 does not have it"),
        (gone, vec![since, nowhere], "LIB_NEVER: no release has it"),
        (
            items(),
            vec![since, always],
            "libRead: what is stated is nowhere so",
        ),
        (
            items(),
            vec![since, same],
            "size of Record: what is stated is nowhere so",
        ),
        (few, vec![since], "no sizes compared"),
    ] {
        let said = said(items, &stated).expect("a difference");
        assert!(said.contains(expected), "{said}");
    }
    let none = std::panic::catch_unwind(|| check_all(&[], &[], &[], |_| vec![]));
    assert!(none.is_err(), "without headers, nothing is compared");
}

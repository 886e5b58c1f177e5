//! Compares how this crate splits blocks into items with how `syn` does.

use std::collections::VecDeque;
#[cfg(not(feature = "strip"))]
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{File, ImplItem, Item, TraitItem};

use super::text;
use crate::args::Args;
use crate::errors::Errors;
use crate::split::{self, Part};

/// Items that are valid both in an `impl` and in a module.
const EVERYWHERE: &[&str] = &[
    "const A: u32 = 1 << 3;",
    "const B: bool = 1 < 2;",
    "const C: bool = X <= Y && Y >= X;",
    "pub(crate) const D: [u8; 1 << 3] = [0; 1 << 3];",
    "const E: fn(u8) -> u8 = |x| { x << 1 };",
    "const F: Point = Point { x: 1, y: 2 };",
    "const G: u32 = { let x = 1; x << 2 };",
    "const H: u32 = if A < B { 1 } else { 2 };",
    "const I: u32 = match A { 0 => 1, _ => 2 >> 1 };",
    "const J: usize = Vec::<u8>::LIMIT - 1 as usize;",
    "const K: bool = (A as usize) < B;",
    "const L: u32 = unsafe { read() } << 1;",
    "const _: () = assert!(1 < 2, \"<\");",
    "const M: char = '<';",
    "const N: W<{ 1 << 3 }> = W::<{ 1 << 3 }>;",
    "const safe: bool = 1 < 2;",
    "const gen: fn() -> ! = stop;",
    "type O<T> = W<{ 1 << 3 }, T>;",
    "type P = fn(u8) -> [u8; { 1 << 3 }];",
    "made! { fn not_a_function() {} }",
    "made!(1 < 2);",
    "crate::made::with![1 << 2];",
    "::std::made! { < }",
    "#[doc = \"<\"] #[cfg(any())] made!();",
    "fn f() -> [u8; { 1 << 3 }] { [0; 8] }",
    "fn g<const X: usize>() -> W<{ X }> where [(); { X }]: Sized { W }",
    "fn h<F: Fn() -> u8, T: Into<Vec<u8>>>(f: F) -> impl Fn(T) -> Vec<Vec<T>> where T: Copy { }",
    "fn i() -> ! { stop() }",
    "fn j(x: made!{ < }) -> made! { u8 } { 1 }",
    "pub const fn k() -> u32 { 1 << 3 }",
    "async unsafe extern \"C\" fn l<'a, T: 'a>(x: &'a T) -> &'a T { x }",
    "fn m<T: ?Sized + Iterator<Item = <T as Trait<-1>>::Out>>(x: <T as Trait>::Out) { 1 < 2 }",
    "#[inline] pub(in crate::x) extern fn n(x: u8) { x < 1; }",
    "fn o<const X: bool>() where W<{ 1 < 2 }>: Sized, T: for<'a> Fn(&'a u8) -> W<true> { }",
    "const unsafe fn p() {}",
    "fn r#match(r#type: u8) -> u8 { r#type << 1 }",
];

/// Items that are only valid in a module.
const IN_MODULES: &[&str] = &[
    "static A: u32 = 1 << 3;",
    "static mut B: bool = 1 < 2;",
    "use a::{b, c as d, e::*};",
    "pub use self::x::Y;",
    "extern crate alloc as other;",
    "struct C;",
    "struct D<const X: usize = { 1 << 3 }>(pub [u8; X]) where [u8; X]: Sized;",
    "pub struct E<T: Fn() -> u8> where T: Copy { pub x: T }",
    "enum F { A = 1 << 3, B { x: u8 }, C(u8) }",
    "union G { a: u8, b: i8 }",
    "macro_rules! h { ($x:expr) => { fn hidden() {} } }",
    "macro_rules! i ( () => { 1 < 2 } );",
    "mod j;",
    "mod k { const A: u32 = 1 << 3; fn a() {} }",
    "extern \"C\" { fn a(x: u8); static B: u8; }",
    "unsafe extern \"C\" { safe fn a(x: u8) -> u8; }",
    "trait L<T>: Into<Vec<T>> where T: Copy { const A: u32 = 1 << 3; fn a(&self) {} fn b(); }",
    "unsafe trait M {}",
    "impl !Send for X {}",
    "unsafe impl<T> Send for X<T> where T: Fn() -> u8 {}",
    "impl<const X: usize> Trait<{ X }> for W<{ 1 << 3 }> { const A: bool = 1 < 2; fn a() {} }",
    "impl Trait for made! { u8 } { fn a() {} }",
    "impl Trait for ! { fn a() {} }",
    "impl<T> Trait for fn(T) -> Vec<T> { fn a() {} }",
    "impl<T> Trait for dyn Fn(T) -> Vec<T> { fn a() {} }",
];

/// Returns the items of a block as text, and `true` if all of the block could be split.
fn split_items(body: TokenStream) -> (Vec<String>, bool) {
    let trees: Vec<TokenTree> = body.into_iter().collect();
    let (mut rest, mut found) = (trees.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (length, is_item) = match split::first(rest) {
            Part::InnerAttribute(length) => (length, false),
            Part::Item(length) => (length, true),
            Part::Unfinished | Part::Unclear => return (found, false),
        };
        if is_item {
            found.push(text(&rest[..length].iter().cloned().collect()));
        }
        rest = &rest[length..];
    }
    (found, true)
}

/// Returns the body of each block in a file, and the items that `syn` finds in it.
fn blocks(file: &File) -> Vec<(TokenStream, Vec<String>)> {
    let mut found = Vec::new();
    let mut waiting = VecDeque::from([file.items.as_slice()]);
    while let Some(items) = waiting.pop_front() {
        found.push(listed(items));
        for item in items {
            match item {
                Item::Mod(module) => waiting.extend(module.content.as_ref().map(|it| &*it.1)),
                Item::Impl(block) => found.push(listed::<ImplItem>(&block.items)),
                Item::Trait(block) => found.push(listed::<TraitItem>(&block.items)),
                _ => {}
            }
        }
    }
    found
}

fn listed<T: ToTokens>(items: &[T]) -> (TokenStream, Vec<String>) {
    let each: Vec<TokenStream> = items.iter().map(ToTokens::to_token_stream).collect();
    let texts = each.iter().map(text).collect();
    (each.into_iter().collect(), texts)
}

/// Checks that all blocks of a file are split as `syn` splits them. Returns the number of items.
fn check_split(file: &File, place: &str) -> usize {
    let mut items = 0;
    for (body, expected) in blocks(file) {
        items += expected.len();
        let (found, whole) = split_items(body);
        let differs = found
            .iter()
            .zip(&expected)
            .position(|(one, other)| one != other);
        let from = differs.unwrap_or_else(|| found.len().min(expected.len()));
        assert!(
            whole && found == expected,
            "{place}: item {from}\nfound: {:?}\nsyn: {:?}",
            found.get(from),
            expected.get(from)
        );
    }
    items
}

#[cfg(not(feature = "strip"))]
/// Joins items, with `after` behind each.
fn sequence(items: &[&str], after: &str) -> String {
    let each = |item: &&str| [*item, after].join("\n");
    items.iter().map(each).collect::<Vec<_>>().join("\n")
}

#[test]
fn items_are_split_as_syn_splits_them() {
    let module: Vec<&str> = EVERYWHERE.iter().chain(IN_MODULES).copied().collect();
    for (items, open) in [(EVERYWHERE, "impl X"), (&module, "mod x")] {
        for first in items {
            for second in items {
                let source = format!("{open} {{ {first} {second} fn last() {{}} }}");
                let file = syn::parse_file(&source);
                let file = file.unwrap_or_else(|error| panic!("{error} in {source}"));
                check_split(&file, &source);
            }
        }
    }
}

#[cfg(not(feature = "strip"))]
/// Returns a pseudorandom number generator with a fixed seed.
fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap_or(0) % below
    }
}

#[cfg(not(feature = "strip"))]
#[test]
fn every_function_of_a_random_block_is_measured() {
    let module: Vec<&str> = EVERYWHERE.iter().chain(IN_MODULES).copied().collect();
    for seed in 0..500 {
        let mut next = numbers(seed);
        let (items, open) = if seed % 2 == 0 {
            (EVERYWHERE, "impl X")
        } else {
            (&*module, "mod x")
        };
        let chosen: Vec<&str> = (0..=next(12)).map(|_| items[next(items.len())]).collect();
        let body = sequence(&chosen, "fn counted() {}");
        let block: TokenStream = format!("{open} {{ {body} }}").parse().expect("it is code");
        let expanded = super::expand(quote!(), block);
        let each = expanded.matches("fncounted(){let").count();
        assert_eq!(each, chosen.len(), "{open} {{ {body} }}\n{expanded}");
    }
}

#[test]
fn macro_fragments_are_split_as_other_items() {
    let fragment = |tokens| TokenTree::from(Group::new(Delimiter::None, tokens));
    let public = fragment(quote!(
        pub fn one() {}
    ));
    let constant = fragment(quote!(
        pub const TWO: u32 = 1 << 3;
    ));
    let visibility = fragment(quote!(pub(crate)));
    let nothing = fragment(quote!());
    let (items, whole) = split_items(quote! {
        #public #[inline] #public #constant #visibility fn three() {} #nothing fn four() {}
    });
    assert!(whole);
    let expected = [
        "pubfnone(){}",
        "#[inline]pubfnone(){}",
        "pubconstTWO:u32=1<<3;",
    ];
    assert_eq!(items[..3], expected);
    assert_eq!(items[3..], ["pub(crate)fnthree(){}", "fnfour(){}"]);
}

#[test]
fn an_item_in_an_unknown_syntax_is_an_error() {
    for (block, is_reported) in [
        ("impl X { fn a() {} reuse x::b { self.0 } fn c() {} }", true),
        ("mod x { 1 + 1; fn c() {} }", true),
        ("impl X { fn a<T(x: T) {} fn c() {} }", true),
        // The compiler reports these itself.
        ("impl X { fn a() {} pub fn half }", false),
        ("impl X { fn a() {} pub }", false),
        ("impl X { ; fn a() {} }", false),
    ] {
        let tokens: TokenStream = block.parse().expect("brackets match");
        let mut errors = Errors::default();
        crate::expand(tokens, &Args::default(), &mut errors);
        assert_eq!(!errors.is_empty(), is_reported, "{block}");
    }
}

#[test]
fn an_attribute_that_has_no_effect_inside_a_block_is_an_error() {
    for (member, is_reported) in [
        (
            "#[measure_execution_time(name = \"all\")] trait T { fn a() {} }",
            true,
        ),
        (
            "#[measure_execution_time(log_every = 2)] trait T { fn a() {} }",
            false,
        ),
        ("#[measure_execution_time] mod elsewhere;", true),
        ("mod elsewhere;", false),
    ] {
        let tokens: TokenStream = format!("mod x {{ {member} }}").parse().expect("it is code");
        let mut errors = Errors::default();
        crate::expand(tokens, &Args::default(), &mut errors);
        assert_eq!(!errors.is_empty(), is_reported, "{member}");
    }
}

/// Counts the functions in these items that the attribute can measure.
#[cfg(not(feature = "strip"))]
fn functions(items: &[Item]) -> usize {
    let is_naked = |attribute: &syn::Attribute| {
        let text = text(&attribute.to_token_stream());
        text.starts_with("#[naked") || text.starts_with("#[unsafe(naked")
    };
    let counts = |signature: &syn::Signature, attributes: &[syn::Attribute]| {
        usize::from(signature.constness.is_none() && !attributes.iter().any(is_naked))
    };
    let of_impl = |item: &ImplItem| match item {
        ImplItem::Fn(function) => counts(&function.sig, &function.attrs),
        _ => 0,
    };
    let of_trait = |item: &TraitItem| match item {
        TraitItem::Fn(function) if function.default.is_some() => {
            counts(&function.sig, &function.attrs)
        }
        _ => 0,
    };
    let of = |item: &Item| match item {
        Item::Fn(function) => counts(&function.sig, &function.attrs),
        Item::Impl(block) => block.items.iter().map(of_impl).sum(),
        Item::Trait(block) => block.items.iter().map(of_trait).sum(),
        Item::Mod(module) => module.content.as_ref().map_or(0, |it| functions(&it.1)),
        _ => 0,
    };
    items.iter().map(of).sum()
}

/// Measures a whole file as one block, and checks that each function that can be measured is. Returns
/// their number.
#[cfg(not(feature = "strip"))]
fn measured(file: &File, tokens: &TokenStream, place: &str) -> usize {
    let sites = |tokens: &TokenStream| text(tokens).matches("{enumHere{}staticSITE").count();
    let before = sites(tokens);
    let mut errors = Errors::default();
    let block = quote!(mod all { #tokens });
    let expanded = crate::expand(block, &Args::default(), &mut errors);
    // The file uses the attribute where it is an error. Only this project's tests do so.
    if !errors.is_empty() {
        println!("{place}: {}", errors.into_tokens());
        return 0;
    }
    let found = sites(&expanded) - before;
    assert_eq!(found, functions(&file.items), "{place}");
    found
}

/// Finds the Rust source files below a folder.
#[cfg(not(feature = "strip"))]
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Reads the sources of this crate, or of the folder that `PROFILER_TEST_SOURCES` names.
#[cfg(not(feature = "strip"))]
#[test]
fn published_code_is_split_as_syn_splits_it() {
    let folder = std::env::var_os("PROFILER_TEST_SOURCES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        PathBuf::from,
    );
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let (mut read, mut items, mut counted) = (0, 0, 0);
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let (Ok(file), Ok(tokens)) = (syn::parse_file(&text), text.parse()) else {
            continue;
        };
        let place = path.display().to_string();
        read += 1;
        items += check_split(&file, &place);
        counted += measured(&file, &tokens, &place);
    }
    println!("{items} items and {counted} measured functions in {read} files");
    assert!(counted > 100, "{} has too little code", folder.display());
}

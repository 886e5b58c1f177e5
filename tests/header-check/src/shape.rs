//! Types as the caller of a function sees them: how many bytes, and whether they are an integer, a number or a pointer.
//!
//! A shape is written as text, and `probe.hpp` writes the types of a header in the same way: `i32` and `u64` are integers,
//! `f32` is a number, `s40` is a structure, a union or an array of 40 bytes, `?` a structure without a definition, `*` a
//! pointer, and `fn(u32,*void)->u32` a function.

use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;

/// A type that C has too.
pub trait Shape {
    /// Returns the shape of the type.
    fn shape() -> String;
}

macro_rules! plain {
    ($($type:ty: $text:literal;)*) => {
        $(impl Shape for $type {
            fn shape() -> String {
                $text.to_owned()
            }
        })*
    };
}

plain! {
    (): "void";
    c_void: "void";
    u8: "u8";
    i8: "i8";
    u16: "u16";
    u32: "u32";
    i32: "i32";
    u64: "u64";
    i64: "i64";
    f32: "f32";
    f64: "f64";
    // A size, or a handle that is only passed on.
    usize: "word";
}

impl<T: Shape> Shape for *mut T {
    fn shape() -> String {
        format!("*{}", T::shape())
    }
}

impl<T: Shape> Shape for *const T {
    fn shape() -> String {
        format!("*{}", T::shape())
    }
}

impl<T: Shape> Shape for AtomicPtr<T> {
    fn shape() -> String {
        format!("*{}", T::shape())
    }
}

impl<T: Shape> Shape for Option<T> {
    fn shape() -> String {
        T::shape()
    }
}

impl<T, const N: usize> Shape for [T; N] {
    fn shape() -> String {
        format!("s{}", size_of::<Self>())
    }
}

macro_rules! functions {
    ($($argument:ident)*) => {
        functions! { @of unsafe extern "C" fn($($argument),*) }
        functions! { @of unsafe extern "system" fn($($argument),*) }
        functions! { @of extern "C" fn($($argument),*) }
        functions! { @next $($argument)* }
    };
    (@of $($function:tt)*) => { functions! { @with $($function)* } };
    (@with unsafe extern $abi:literal fn($($argument:ident),*)) => {
        functions! { @impl (unsafe extern $abi fn($($argument),*) -> R) $($argument)* }
    };
    (@with extern $abi:literal fn($($argument:ident),*)) => {
        functions! { @impl (extern $abi fn($($argument),*) -> R) $($argument)* }
    };
    (@impl ($function:ty) $($argument:ident)*) => {
        impl<R: Shape, $($argument: Shape),*> Shape for $function {
            fn shape() -> String {
                let arguments: &[String] = &[$($argument::shape()),*];
                format!("*fn({})->{}", arguments.join(","), R::shape())
            }
        }
    };
    (@next $first:ident $($rest:ident)*) => { functions! { $($rest)* } };
    (@next) => {};
}

functions! { A B C D E F G H I J K L }

/// Returns `true` if a caller that knows the one shape may call, read or write the other.
pub(crate) fn agree(ours: &str, theirs: &str) -> bool {
    let mut pair = (ours, theirs);
    type_agrees(&mut pair) && pair == ("", "")
}

/// Compares one type at the beginning of both texts, and removes it from them.
fn type_agrees<'a>(pair: &mut (&'a str, &'a str)) -> bool {
    let (ours, theirs) = *pair;
    if let (Some(our_target), Some(their_target)) =
        (ours.strip_prefix('*'), theirs.strip_prefix('*'))
    {
        *pair = (our_target, their_target);
        // One of the two does not say what the pointer points to.
        if our_target.starts_with("void") || their_target.starts_with("void") {
            return [&mut pair.0, &mut pair.1].into_iter().all(skip_type);
        }
        return type_agrees(pair);
    }
    if let (Some(our_list), Some(their_list)) =
        (ours.strip_prefix("fn("), theirs.strip_prefix("fn("))
    {
        *pair = (our_list, their_list);
        return list_agrees(pair) && type_agrees(pair);
    }
    if ours.starts_with("word") && (theirs.starts_with("u64") || theirs.starts_with('*')) {
        return [&mut pair.0, &mut pair.1].into_iter().all(skip_type);
    }
    let (ours, theirs) = (take_word(&mut pair.0), take_word(&mut pair.1));
    !ours.is_empty() && ours == theirs
}

/// Compares the arguments of two functions.
fn list_agrees<'a>(pair: &mut (&'a str, &'a str)) -> bool {
    loop {
        match [pair.0, pair.1].map(|text| text.strip_prefix(")->")) {
            [Some(ours), Some(theirs)] => {
                *pair = (ours, theirs);
                return true;
            }
            [None, None] => {
                *pair = [pair.0, pair.1]
                    .map(|text| text.strip_prefix(',').unwrap_or(text))
                    .into();
                if !type_agrees(pair) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Removes a type from the beginning of a text; returns `false` if there is none.
fn skip_type(text: &mut &str) -> bool {
    while let Some(target) = text.strip_prefix('*') {
        *text = target;
    }
    let Some(mut list) = text.strip_prefix("fn(") else {
        return !take_word(text).is_empty();
    };
    loop {
        if let Some(result) = list.strip_prefix(")->") {
            *text = result;
            return skip_type(text);
        }
        list = list.strip_prefix(',').unwrap_or(list);
        if !skip_type(&mut list) {
            return false;
        }
    }
}

fn take_word<'a>(text: &mut &'a str) -> &'a str {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '?');
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    *text = rest;
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_as_c_sees_them() {
        type Nested = unsafe extern "C" fn(*mut *mut u8, extern "C" fn() -> u64) -> u32;
        let shapes = [
            <*const c_void>::shape(),
            <[u32; 4]>::shape(),
            <Option<unsafe extern "system" fn(usize)>>::shape(),
            Nested::shape(),
        ];
        let expected = [
            "*void",
            "s16",
            "*fn(word)->void",
            "*fn(**u8,*fn()->u64)->u32",
        ];
        assert_eq!(shapes, expected);
    }

    #[test]
    fn only_types_of_one_size_and_kind_agree() {
        for (ours, theirs, same) in [
            ("u32", "u32", true),
            ("u32", "i32", false),
            ("u32", "u64", false),
            ("f32", "u32", false),
            ("*u32", "u64", false),
            ("*u32", "*u64", false),
            ("*u32", "**u32", false),
            ("*void", "*s40", true),
            ("*s40", "*void", true),
            ("*s32", "*s40", false),
            ("**void", "**?", true),
            ("word", "*?", true),
            ("word", "u64", true),
            ("word", "u32", false),
            ("fn(u32)->u32", "fn(u32)->u32", true),
            ("fn(u32)->u32", "fn()->u32", false),
            ("fn()->u32", "fn(u32)->u32", false),
            ("fn(u32,u32)->u32", "fn(u32,u64)->u32", false),
            ("fn(u32)->u32", "fn(u32)->u64", false),
            (
                "fn(*void,u32)->u32",
                "fn(*fn(u8,*fn()->u8)->**void,u32)->u32",
                true,
            ),
            (
                "fn(*void,u32)->u32",
                "fn(*fn(u8,*fn()->u8)->**void,u64)->u32",
                false,
            ),
            ("*fn(*void)->void", "*fn(*void)->void", true),
            ("*fn(*void)->void", "*fn(u64)->void", false),
            ("", "", false),
        ] {
            assert_eq!(agree(ours, theirs), same, "{ours} and {theirs}");
        }
    }
}

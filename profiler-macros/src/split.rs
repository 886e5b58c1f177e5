//! Splits the body of an `impl`, a `mod` or a `trait` into its items.
//!
//! The splitter parses as little as possible and never guesses. Braces, brackets and parentheses
//! are one token tree each, so a constant or a `use` ends at its first `;`, whatever operators its
//! value has. Every other item ends at the first `;` or the first braces outside of angle brackets.
//! Only generics and types precede that end, and angle brackets can be counted there. If this finds
//! no item that Rust has, the result is `Part::Unclear`, and the caller reports an error.

use proc_macro2::{Delimiter, Ident, TokenTree};

use crate::item::{self, Angles, Head, Kind};

/// The first part of the body of a block. Lengths are in token trees.
pub(crate) enum Part {
    /// An attribute of the block itself, of this length.
    InnerAttribute(usize),
    /// An item of this length.
    Item(usize),
    /// An incomplete item at the end of the block. The compiler rejects it.
    Unfinished,
    /// Tokens that may contain the end of an item that was not found.
    Unclear,
}

/// Reads the first part of `trees`, which must not be empty.
pub(crate) fn first(trees: &[TokenTree]) -> Part {
    if item::is_punct(trees.first(), '#') && item::is_punct(trees.get(1), '!') && trees.len() > 2 {
        return Part::InnerAttribute(3);
    }
    if item::is_punct(trees.first(), ';') {
        return Part::Item(1);
    }
    let attributes_end = item::skip_attributes(trees);
    if is_whole_item(&trees[attributes_end..]) {
        return Part::Item(attributes_end + 1);
    }
    let head = Head::read(trees);
    let end = match head.kind {
        Kind::Macro => macro_end(trees, head.keyword),
        Kind::Unknown if is_incomplete(&trees[attributes_end..]) => None,
        Kind::Unknown => return Part::Unclear,
        Kind::Other(
            "a type alias" | "a `use`" | "a static" | "a constant" | "an `extern crate`"
            | "a statement",
        ) => (head.keyword..trees.len()).find(|at| item::is_punct(trees.get(*at), ';')),
        Kind::Function | Kind::Impl | Kind::Module | Kind::Trait | Kind::Other(_) => {
            body_end(trees, head.keyword)
        }
    };
    match end {
        Some(last) => Part::Item(last + 1),
        // One of the remaining tokens may be the end, in a syntax that this crate does not know.
        None if trees[attributes_end..].iter().any(could_end) => Part::Unclear,
        None => Part::Unfinished,
    }
}

/// Returns `true` if these trees begin with a macro fragment that is a whole item.
fn is_whole_item(trees: &[TokenTree]) -> bool {
    let Some(TokenTree::Group(fragment)) = trees.first() else {
        return false;
    };
    if fragment.delimiter() != Delimiter::None {
        return false;
    }
    let inside = item::trees(fragment.stream());
    matches!(first_of(&inside), Some(Part::Item(length)) if length == inside.len())
}

fn first_of(trees: &[TokenTree]) -> Option<Part> {
    (!trees.is_empty()).then(|| first(trees))
}

/// Returns `true` if these trees are only words that may begin an item: `pub`, `pub async`.
fn is_incomplete(trees: &[TokenTree]) -> bool {
    trees.iter().all(|tree| match tree {
        TokenTree::Ident(_) => true,
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        _ => false,
    })
}

/// Returns the index of the last tree of a macro definition or call.
fn macro_end(trees: &[TokenTree], start: usize) -> Option<usize> {
    let delimited = |at: &usize| {
        [Delimiter::Brace, Delimiter::Parenthesis, Delimiter::Bracket]
            .into_iter()
            .any(|delimiter| item::group(trees.get(*at), delimiter).is_some())
    };
    let braces = |at: &usize| item::group(trees.get(*at), Delimiter::Brace).is_some();
    let call = (start..trees.len()).find(|at| item::is_punct(trees.get(*at), '!'));
    let Some(mark) = call.filter(|_| !item::is_word(trees.get(start), "macro")) else {
        // The definition `macro name($x:expr) { … }`.
        return (start..trees.len()).find(braces);
    };
    // The definition `macro_rules! name { … }`.
    let named = matches!(trees.get(mark + 1), Some(TokenTree::Ident(_)));
    let arguments = Some(mark + 1 + usize::from(named)).filter(delimited)?;
    if braces(&arguments) {
        return Some(arguments);
    }
    Some(arguments + 1).filter(|at| item::is_punct(trees.get(*at), ';'))
}

/// Returns the index of the `;` or the braces that end an item without a value.
fn body_end(trees: &[TokenTree], start: usize) -> Option<usize> {
    let mut angles = Angles::default();
    for (at, tree) in trees.iter().enumerate().skip(start) {
        if !angles.outside(tree) {
            continue;
        }
        if item::is_punct(Some(tree), ';') {
            return Some(at);
        }
        let braces = item::group(Some(tree), Delimiter::Brace).is_some();
        if braces && !ends_a_macro(&trees[start..at]) {
            return Some(at);
        }
    }
    None
}

/// Returns `true` if braces after these trees are the arguments of a macro that expands to a type:
/// `impl Trait for made! { … } { … }`. After any other `!` they are the body: `fn stop() -> ! { …
/// }`.
fn ends_a_macro(trees: &[TokenTree]) -> bool {
    let [.., TokenTree::Ident(name), mark] = trees else {
        return false;
    };
    let is_keyword = || syn::parse2::<Ident>(TokenTree::from(name.clone()).into()).is_err();
    item::is_punct(Some(mark), '!') && !is_keyword()
}

fn could_end(tree: &TokenTree) -> bool {
    item::is_punct(Some(tree), ';') || item::group(Some(tree), Delimiter::Brace).is_some()
}

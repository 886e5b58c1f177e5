//! Splits the body of an `impl`, a `mod` or a `trait` into its items.
//!
//! Nothing is parsed that need not be, and nothing is guessed. Braces, brackets and parentheses are one
//! tree each, so a constant or a `use` ends at its first `;`, whatever operators its value has. Every
//! other item ends at the first `;` or the first braces outside angle brackets, and what stands before
//! is generics and types, where angle brackets can be counted. Where that does not lead to an item
//! that Rust has, the caller is told.

use proc_macro2::{Delimiter, Ident, TokenTree};

use crate::item::{self, Angles, Head, Kind};

/// What the body of a block begins with.
pub(crate) enum Part {
    /// An attribute of the block itself: so many trees.
    InnerAttribute(usize),
    /// An item: so many trees.
    Item(usize),
    /// An item without an end, and nothing after it. The compiler rejects it.
    Unfinished,
    /// Something whose end cannot be told.
    Unclear,
}

/// Reads what `trees` begin with; there is at least one.
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
        Kind::Unknown if is_beginning(&trees[attributes_end..]) => None,
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
        // An end that was overlooked lies among what is left.
        None if trees[attributes_end..].iter().any(could_end) => Part::Unclear,
        None => Part::Unfinished,
    }
}

/// Whether these trees begin with a macro's fragment that is an item.
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

/// Whether nothing follows but words that may begin an item: `pub`, `pub async`.
fn is_beginning(trees: &[TokenTree]) -> bool {
    trees.iter().all(|tree| match tree {
        TokenTree::Ident(_) => true,
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        _ => false,
    })
}

/// The last tree of a macro's definition or call.
fn macro_end(trees: &[TokenTree], start: usize) -> Option<usize> {
    let delimited = |at: &usize| {
        [Delimiter::Brace, Delimiter::Parenthesis, Delimiter::Bracket]
            .into_iter()
            .any(|delimiter| item::group(trees.get(*at), delimiter).is_some())
    };
    let braces = |at: &usize| item::group(trees.get(*at), Delimiter::Brace).is_some();
    let call = (start..trees.len()).find(|at| item::is_punct(trees.get(*at), '!'));
    let Some(mark) = call.filter(|_| !item::is_word(trees.get(start), "macro")) else {
        // `macro name($x:expr) { … }`.
        return (start..trees.len()).find(braces);
    };
    // `macro_rules! name { … }`.
    let named = matches!(trees.get(mark + 1), Some(TokenTree::Ident(_)));
    let arguments = Some(mark + 1 + usize::from(named)).filter(delimited)?;
    if braces(&arguments) {
        return Some(arguments);
    }
    Some(arguments + 1).filter(|at| item::is_punct(trees.get(*at), ';'))
}

/// The `;` or the braces that end an item without a value.
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

/// Whether braces after these trees are the arguments of a macro that gives a type:
/// `impl Trait for made! { … } { … }`. After any other `!` they are not: `fn stop() -> ! { … }`.
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

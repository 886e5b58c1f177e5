//! The attributes that an item already has.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

use crate::item;

/// The names of this crate's attribute.
const OWN_NAMES: [&str; 2] = ["measure_execution_time", "measured"];

/// An attribute, as far as this crate distinguishes them.
pub(crate) enum Attribute {
    /// `#[measure_execution_time]`, with its arguments.
    Own { span: Span, arguments: TokenStream },
    /// `#[cfg_attr(…, measure_execution_time)]`.
    ConditionalOwn(Span),
    /// `#[unsafe(naked)]`: the body is assembly only.
    Naked(Span),
    /// Any other attribute.
    Other,
}

/// Returns the attributes of an item that matter to this crate, each with the index of its `#`.
/// They stand before index `end`.
pub(crate) fn of(trees: &[TokenTree], end: usize) -> Vec<(usize, Attribute)> {
    (0..end)
        .step_by(2)
        .filter_map(|at| {
            let group = item::group(trees.get(at + 1), Delimiter::Bracket)?;
            match read(&group) {
                Attribute::Other => None,
                known => Some((at, known)),
            }
        })
        .collect()
}

/// Returns `true` if all attributes before index `end` use parameters only by their own tokens: those of the language and its
/// tools, and `async_trait`.
pub(crate) fn are_built_in(trees: &[TokenTree], end: usize) -> bool {
    const NAMES: &[&str] = &[
        "allow",
        "async_trait",
        "cfg",
        "clippy",
        "cold",
        "deny",
        "deprecated",
        "diagnostic",
        "doc",
        "expect",
        "forbid",
        "inline",
        "must_use",
        "rustfmt",
        "target_feature",
        "track_caller",
        "warn",
    ];
    let is_built_in =
        |at: usize| first_word(trees.get(at + 1)).is_some_and(|word| NAMES.contains(&&*word));
    (0..end).step_by(2).all(is_built_in)
}

/// Returns `true` if `#[track_caller]` is among the attributes before index `end`.
pub(crate) fn track_caller(trees: &[TokenTree], end: usize) -> bool {
    let is_it =
        |at: usize| first_word(trees.get(at + 1)).is_some_and(|word| word == "track_caller");
    (0..end).step_by(2).any(is_it)
}

/// Returns `true` if some attributes of a parameter are conditions and levels of lints alone.
pub(crate) fn are_conditions_or_lints(attributes: &[TokenTree]) -> bool {
    const NAMES: &[&str] = &["allow", "cfg", "deny", "expect", "forbid", "warn"];
    let is_one =
        |pair: &[TokenTree]| first_word(pair.get(1)).is_some_and(|word| NAMES.contains(&&*word));
    attributes.chunks(2).all(is_one)
}

/// Returns the `#[cfg(…)]` among some attributes.
pub(crate) fn conditions(attributes: &[TokenTree]) -> Vec<TokenTree> {
    let is_condition =
        |pair: &&[TokenTree]| first_word(pair.get(1)).is_some_and(|word| word == "cfg");
    let conditions = attributes.chunks(2).filter(is_condition).flatten();
    conditions.cloned().collect()
}

/// Returns the first word of an attribute.
fn first_word(attribute: Option<&TokenTree>) -> Option<String> {
    match item::group(attribute, Delimiter::Bracket)?
        .stream()
        .into_iter()
        .next()?
    {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    }
}

fn read(attribute: &Group) -> Attribute {
    let inside = item::trees(attribute.stream());
    let mut at = 0;
    let mut word = inside.first();
    while item::is_punct(inside.get(at + 1), ':') && item::is_punct(inside.get(at + 2), ':') {
        at += 3;
        word = inside.get(at);
    }
    let Some(TokenTree::Ident(name)) = word else {
        return Attribute::Other;
    };
    let arguments = item::group(inside.get(at + 1), Delimiter::Parenthesis);
    let span = name.span();
    match name.to_string().as_str() {
        name if OWN_NAMES.contains(&name) => Attribute::Own {
            span,
            arguments: arguments.map(|group| group.stream()).unwrap_or_default(),
        },
        "naked" => Attribute::Naked(span),
        "unsafe" if mentions(arguments.as_ref(), "naked").is_some() => Attribute::Naked(span),
        "cfg_attr" => OWN_NAMES
            .iter()
            .find_map(|name| mentions(arguments.as_ref(), name))
            .map_or(Attribute::Other, Attribute::ConditionalOwn),
        _ => Attribute::Other,
    }
}

/// Returns the span of a word among the arguments of an attribute.
fn mentions(arguments: Option<&Group>, word: &str) -> Option<Span> {
    arguments?.stream().into_iter().find_map(|tree| match tree {
        TokenTree::Ident(ident) if ident == word => Some(ident.span()),
        _ => None,
    })
}

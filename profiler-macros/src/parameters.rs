//! Moves the parameters of a function into the block or closure that its statements move to.
//!
//! An ordinary function drops its local variables, then its parameters, the last one first. Inside a block, so do in this
//! order: the variables that the block binds again, the last one first; the variables that it captures, in the order in which
//! it mentions them; and the parameters that stay outside, the last one first. So the parameters fall into three runs:
//!
//! 1. those at the beginning that the statements do not mention stay outside;
//! 2. the names that follow are captured, the last one first;
//! 3. from the first one that cannot be captured, each is bound again. A pattern cannot, and neither can a name that begins
//!    with `_`, since `clippy::used_underscore_binding` reports its use, a `mut` name, since the compiler reports assignments to
//!    what a block captures, or a name that the statements do not mention, since the compiler would no longer report that it
//!    is unused.
//!
//! Where the attribute of another macro may read the parameters, names that begin with `_` and patterns stay as they are. They
//! are dropped last then.
//!
//! What is captured takes no space of its own in a future, and what is bound again is stored twice.

use std::collections::HashSet;
use std::mem;

use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};
use quote::quote_spanned;

use crate::args::Args;
use crate::attributes;
use crate::item::{self, Angles, Head};

/// Returns the statements that move the parameters into a block or closure. Changes the parameters of the signature that are
/// bound again.
pub(crate) fn moved(
    args: &Args,
    head: &Head,
    signature: &mut [TokenTree],
    statements: &TokenStream,
) -> TokenStream {
    let mut moves = TokenStream::new();
    let Some(at) = item::parameters(signature, head) else {
        return moves;
    };
    let Some(group) = item::group(signature.get(at), Delimiter::Parenthesis) else {
        return moves;
    };
    let mut parameters = Parameter::all(group.stream());
    if parameters.is_empty() {
        return moves;
    }
    let words = Words::of(statements);
    let outside = parameters
        .iter()
        .take_while(|parameter| !parameter.is_mentioned(&words))
        .count();
    let captured = parameters[outside..]
        .iter()
        .take_while(|parameter| parameter.can_be_captured(&words))
        .count();
    let (others, bound) = parameters.split_at_mut(outside + captured);
    for parameter in others[outside..].iter().rev() {
        moves.extend(parameter.captured());
    }
    // Other attributes may use the parameters by name.
    let is_hygienic = !args.keeps_names && attributes::are_built_in(signature, head.attributes_end);
    let mentioned = Words::of(&args.expressions());
    let is_changed = !bound.is_empty();
    for (index, parameter) in bound.iter_mut().enumerate() {
        moves.extend(parameter.bound(index, is_hygienic, &mentioned));
    }
    if is_changed {
        let trees = parameters.into_iter().flat_map(Parameter::into_trees);
        let mut changed = Group::new(Delimiter::Parenthesis, trees.collect());
        changed.set_span(group.span());
        signature[at] = TokenTree::Group(changed);
    }
    moves
}

/// A parameter of a function.
#[derive(Default)]
struct Parameter {
    attributes: Vec<TokenTree>,
    pattern: Vec<TokenTree>,
    /// The type, from its colon to the comma.
    rest: Vec<TokenTree>,
}

impl Parameter {
    fn all(tokens: TokenStream) -> Vec<Self> {
        let mut parameters = Vec::new();
        let mut current = Self::default();
        let mut angles = Angles::default();
        let mut trees = tokens.into_iter().peekable();
        while let Some(tree) = trees.next() {
            let is_outside = angles.outside(&tree);
            let is_colon = |tree: Option<&TokenTree>| item::is_punct(tree, ':');
            if is_outside && item::is_punct(Some(&tree), ',') {
                current.rest.push(tree);
                parameters.push(mem::take(&mut current));
            } else if !current.rest.is_empty() {
                current.rest.push(tree);
            } else if is_outside && is_colon(Some(&tree)) {
                let is_joint =
                    matches!(&tree, TokenTree::Punct(mark) if mark.spacing() == Spacing::Joint);
                if is_joint && is_colon(trees.peek()) {
                    current.pattern.push(tree);
                    current.pattern.extend(trees.next());
                } else {
                    current.rest.push(tree);
                }
            } else if current.pattern.is_empty()
                && item::is_punct(Some(&tree), '#')
                && item::group(trees.peek(), Delimiter::Bracket).is_some()
            {
                current.attributes.push(tree);
                current.attributes.extend(trees.next());
            } else {
                current.pattern.push(tree);
            }
        }
        if !current.pattern.is_empty() {
            parameters.push(current);
        }
        parameters
    }

    fn into_trees(self) -> impl Iterator<Item = TokenTree> {
        self.attributes
            .into_iter()
            .chain(self.pattern)
            .chain(self.rest)
    }

    /// Returns `true` if some statements mention a name of the parameter. May return `true` although they mean something else.
    fn is_mentioned(&self, words: &Words) -> bool {
        words.mention_any(self.pattern.iter().cloned().collect())
    }

    /// Returns the name of a parameter that is one, with or without `mut`. Also that of `&self`.
    fn name(&self) -> Option<&Ident> {
        match self.pattern.as_slice() {
            [TokenTree::Ident(name)] if name != "_" => Some(name),
            [TokenTree::Ident(mutable), TokenTree::Ident(name)] if mutable == "mut" => Some(name),
            [TokenTree::Punct(reference), .., TokenTree::Ident(name)]
                if reference.as_char() == '&' && name == "self" =>
            {
                Some(name)
            }
            _ => None,
        }
    }

    fn is_self(&self) -> bool {
        self.name().is_some_and(|name| name == "self")
    }

    fn can_be_captured(&self, words: &Words) -> bool {
        let is_used = |name: &Ident| !name.to_string().starts_with('_');
        self.attributes.is_empty()
            && (!item::is_word(self.pattern.first(), "mut") || self.is_self())
            && self.name().is_some_and(is_used)
            && self.is_mentioned(words)
    }

    /// Returns a statement that makes the block capture the whole parameter.
    fn captured(&self) -> Option<TokenStream> {
        // A reference has no destructor.
        let is_reference = |trees: &[TokenTree], at| item::is_punct(trees.get(at), '&');
        if is_reference(&self.pattern, 0) || is_reference(&self.rest, 1) {
            return None;
        }
        let name = self.name()?;
        Some(quote_spanned!(Span::mixed_site()=> let _ = &#name;))
    }

    /// Returns a statement that binds the parameter again, and changes it to a name. A `mut` moves to the new binding.
    ///
    /// With `is_hygienic`, the parameter and the new binding are two variables, although their names may have the same text. So
    /// neither `clippy::used_underscore_binding` nor `clippy::shadow_same` reports the new binding.
    fn bound(&mut self, index: usize, is_hygienic: bool, mentioned: &Words) -> Option<TokenStream> {
        let span = Span::mixed_site();
        let name = self.name().cloned();
        // Other macros read other attributes.
        if self.is_self() || !attributes::are_conditions_or_lints(&self.attributes) {
            return None;
        }
        let (is_name, mentioned) = (name.is_some(), self.is_mentioned(mentioned));
        let is_underscored = name
            .as_ref()
            .is_some_and(|name| name.to_string().starts_with('_'));
        let inner = if is_hygienic && !mentioned {
            let place = self.pattern.first().map_or(span, TokenTree::span);
            let text = name.map_or_else(|| format!("__arg{index}"), |name| name.to_string());
            let outer = if let Some(raw) = text.strip_prefix("r#") {
                Ident::new_raw(raw, span.located_at(place))
            } else {
                Ident::new(&text, span.located_at(place))
            };
            mem::replace(&mut self.pattern, vec![outer.into()])
        } else {
            // A pattern stays as it is, and so does a name whose use would be reported: they are dropped last.
            let name = TokenTree::from(name.filter(|_| !is_underscored)?);
            mem::replace(&mut self.pattern, vec![name])
        };
        let outer = &self.pattern[0];
        let attributes = mem::take(&mut self.attributes);
        let conditions = attributes::conditions(&attributes);
        // A pattern may leave parts where they are, which then have to be in the block.
        let whole = (!is_name).then(|| quote_spanned!(span=> #(#conditions)* let #outer = #outer;));
        // A parameter that the attribute mentions is used.
        let used = mentioned.then(|| quote_spanned!(span=> #(#conditions)* let _ = &#outer;));
        // `clippy::no_effect_underscore_binding` would report a name alone.
        let value = if is_underscored {
            quote_spanned!(span=> match #outer { __profiler_value => __profiler_value })
        } else {
            quote_spanned!(span=> #outer)
        };
        let bound = quote_spanned!(span=> #whole #(#attributes)* let #(#inner)* = #value; #used);
        self.attributes = conditions;
        Some(bound)
    }
}

/// The words of some statements.
pub(crate) struct Words {
    words: HashSet<String>,
    /// The literals that may name variables, as in `format!("{name}")`.
    formats: Vec<String>,
}

impl Words {
    pub(crate) fn of(statements: &TokenStream) -> Self {
        let mut words = Self {
            words: HashSet::new(),
            formats: Vec::new(),
        };
        words.read(statements.clone());
        words
    }

    fn read(&mut self, tokens: TokenStream) {
        let mut dots = 0;
        let mut trees = tokens.into_iter().peekable();
        while let Some(tree) = trees.next() {
            // The name of a field or method, but not the end of a range.
            let follows_dot = dots == 1;
            dots = if item::is_punct(Some(&tree), '.') {
                dots + 1
            } else {
                0
            };
            match tree {
                TokenTree::Ident(_) if follows_dot || is_label(trees.peek()) => {}
                TokenTree::Ident(word) => _ = self.words.insert(word.to_string()),
                TokenTree::Group(group) => self.read(group.stream()),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    if text.contains('{') {
                        self.formats.push(text);
                    }
                }
                TokenTree::Punct(_) => {}
            }
        }
    }

    /// Returns `true` if one of the words of a pattern is among these words.
    fn mention_any(&self, pattern: TokenStream) -> bool {
        pattern.into_iter().any(|tree| match tree {
            TokenTree::Ident(word) => self.mention(&word),
            TokenTree::Group(group) => self.mention_any(group.stream()),
            _ => false,
        })
    }

    fn mention(&self, word: &Ident) -> bool {
        let word = word.to_string();
        let name = word.strip_prefix("r#").unwrap_or(&word);
        self.words.contains(&word) || self.formats.iter().any(|text| text.contains(name))
    }
}

/// Returns `true` if the word before this token names a field of a structure, or has a type.
fn is_label(next: Option<&TokenTree>) -> bool {
    matches!(
        next,
        Some(TokenTree::Punct(mark)) if mark.as_char() == ':' && mark.spacing() == Spacing::Alone
    )
}

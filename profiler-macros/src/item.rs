//! Reads the item that an attribute is on, token by token.
//!
//! The body of a function is never parsed. That keeps compile times low, and half-typed code in an
//! editor still expands.

use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};

/// The kind of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    Impl,
    Module,
    Trait,
    /// Another kind of item; its name in error messages, with an article.
    Other(&'static str),
    /// A macro call or a macro definition.
    Macro,
    /// Not an item, or an incomplete one.
    Unknown,
}

/// The beginning of an item, up to its keyword.
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// The index of the first token after the attributes.
    pub(crate) attributes_end: usize,
    /// The index of the keyword that determines the kind of the item.
    pub(crate) keyword: usize,
    /// The span of the `const` of a `const fn`.
    pub(crate) constant: Option<Span>,
    pub(crate) asynchronous: bool,
}

/// Returns the token trees of an item, without the invisible group around a macro fragment.
pub(crate) fn trees(tokens: TokenStream) -> Vec<TokenTree> {
    without_fragment(tokens.into_iter().collect())
}

/// Replaces an invisible group that holds a whole item by its contents. Attributes may precede the
/// group.
///
/// A `macro_rules!` macro that passes on a fragment such as `$item` puts it into a group without
/// visible delimiters.
pub(crate) fn without_fragment(mut trees: Vec<TokenTree>) -> Vec<TokenTree> {
    let start = skip_attributes(&trees);
    match trees.get(start) {
        Some(TokenTree::Group(fragment))
            if trees.len() == start + 1 && fragment.delimiter() == Delimiter::None =>
        {
            let inside = fragment.stream();
            trees.truncate(start);
            trees.extend(inside);
            without_fragment(trees)
        }
        _ => trees,
    }
}

/// Returns `true` if a token tree is this punctuation mark.
pub(crate) fn is_punct(tree: Option<&TokenTree>, mark: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

/// Returns `true` if a token tree is this identifier or keyword.
pub(crate) fn is_word(tree: Option<&TokenTree>, word: &str) -> bool {
    matches!(tree, Some(TokenTree::Ident(ident)) if ident == word)
}

/// Returns the group that a token tree is, if it has this delimiter. The group may be inside a
/// macro fragment.
pub(crate) fn group(tree: Option<&TokenTree>, delimiter: Delimiter) -> Option<Group> {
    let Some(TokenTree::Group(group)) = tree else {
        return None;
    };
    if group.delimiter() == delimiter {
        return Some(group.clone());
    }
    if group.delimiter() != Delimiter::None {
        return None;
    }
    let mut inside = group.stream().into_iter();
    let only = inside.next();
    if inside.next().is_some() {
        return None;
    }
    self::group(only.as_ref(), delimiter)
}

impl Head {
    /// Reads the beginning of an item.
    pub(crate) fn read(trees: &[TokenTree]) -> Self {
        let attributes_end = skip_attributes(trees);
        let mut head = Self {
            kind: Kind::Unknown,
            attributes_end,
            keyword: skip_visibility(trees, attributes_end),
            constant: None,
            asynchronous: false,
        };
        if is_macro_call(&trees[head.keyword..]) {
            head.kind = Kind::Macro;
            return head;
        }
        while let Some(TokenTree::Ident(word)) = trees.get(head.keyword) {
            let word = word.to_string();
            if let Some(kind) = kind_of(&word, &trees[head.keyword + 1..]) {
                head.kind = kind;
                break;
            }
            match word.as_str() {
                "const" => head.constant = trees.get(head.keyword).map(TokenTree::span),
                "async" => head.asynchronous = true,
                "extern" if is_abi(trees.get(head.keyword + 1)) => head.keyword += 1,
                "extern" | "unsafe" | "safe" | "default" | "auto" | "gen" => {}
                _ => break,
            }
            head.keyword += 1;
        }
        if head.kind == Kind::Unknown && group(trees.get(head.keyword), Delimiter::Brace).is_some()
        {
            head.find_extern(trees);
        }
        head
    }

    /// Recognizes an `extern` block by the `extern` before its braces.
    fn find_extern(&mut self, trees: &[TokenTree]) {
        let found = trees[..self.keyword]
            .iter()
            .rposition(|tree| is_word(Some(tree), "extern"));
        if let Some(at) = found {
            self.kind = Kind::Other("an `extern` block");
            self.keyword = at;
        }
    }

    /// Returns the name of the function.
    pub(crate) fn name<'a>(&self, trees: &'a [TokenTree]) -> Option<&'a Ident> {
        match trees.get(self.keyword + 1) {
            Some(TokenTree::Ident(name)) => Some(name),
            _ => None,
        }
    }
}

/// Returns the kind of item that a keyword begins, or `None` if the keyword only qualifies the next
/// one.
fn kind_of(word: &str, rest: &[TokenTree]) -> Option<Kind> {
    let next = rest.first();
    let named = matches!(next, Some(TokenTree::Ident(_)));
    Some(match word {
        "fn" => Kind::Function,
        "impl" => Kind::Impl,
        "mod" => Kind::Module,
        "trait" => Kind::Trait,
        "struct" => Kind::Other("a struct"),
        "enum" => Kind::Other("an enum"),
        "union" if named => Kind::Other("a union"),
        "type" => Kind::Other("a type alias"),
        "use" => Kind::Other("a `use`"),
        "static" => Kind::Other("a static"),
        "macro" => Kind::Macro,
        "extern" if is_word(next, "crate") => Kind::Other("an `extern crate`"),
        "const" if !qualifies(rest) => Kind::Other("a constant"),
        "let" => Kind::Other("a statement"),
        _ => return None,
    })
}

/// Returns `true` if a `const` before these tokens qualifies another item, and does not begin a
/// constant.
fn qualifies(rest: &[TokenTree]) -> bool {
    let follows = [
        "fn", "async", "unsafe", "extern", "safe", "gen", "impl", "trait", "auto",
    ]
    .iter()
    .any(|qualified| is_word(rest.first(), qualified));
    // Some of these keywords may also be names: `const safe: bool`.
    let names_a_constant = [':', '<', '=']
        .into_iter()
        .any(|mark| is_punct(rest.get(1), mark));
    follows && (!names_a_constant || is_word(rest.first(), "impl"))
}

/// Returns `true` if a token tree is the name of an ABI.
fn is_abi(tree: Option<&TokenTree>) -> bool {
    match tree {
        Some(TokenTree::Literal(_)) => true,
        Some(TokenTree::Group(fragment)) => fragment.delimiter() == Delimiter::None,
        _ => false,
    }
}

/// Returns `true` if these tokens begin with the path of a macro and its `!`.
fn is_macro_call(trees: &[TokenTree]) -> bool {
    let mut at = skip_colons(trees, 0);
    loop {
        let segment = match trees.get(at) {
            // `impl !Send for X` is no macro call.
            Some(TokenTree::Ident(word)) => word != "impl",
            Some(TokenTree::Group(fragment)) => fragment.delimiter() == Delimiter::None,
            _ => false,
        };
        if !segment {
            return false;
        }
        at += 1;
        if is_punct(trees.get(at), '!') {
            return true;
        }
        let after = skip_colons(trees, at);
        if after == at {
            return false;
        }
        at = after;
    }
}

/// Returns the index after a `::` at `at`, or `at` if there is none.
fn skip_colons(trees: &[TokenTree], at: usize) -> usize {
    let colons = is_punct(trees.get(at), ':') && is_punct(trees.get(at + 1), ':');
    at + 2 * usize::from(colons)
}

/// Returns the index after the attributes at the beginning of `trees`.
pub(crate) fn skip_attributes(trees: &[TokenTree]) -> usize {
    let mut at = 0;
    while is_punct(trees.get(at), '#') && group(trees.get(at + 1), Delimiter::Bracket).is_some() {
        at += 2;
    }
    at
}

/// Returns the index after a visibility at `at`, or `at` if there is none.
fn skip_visibility(trees: &[TokenTree], at: usize) -> usize {
    match trees.get(at) {
        Some(TokenTree::Ident(word)) if word == "pub" => {
            at + 1 + usize::from(group(trees.get(at + 1), Delimiter::Parenthesis).is_some())
        }
        Some(TokenTree::Group(fragment)) if is_visibility(fragment) => at + 1,
        _ => at,
    }
}

/// Returns `true` if a group is a macro fragment that holds only a visibility, which may be empty.
fn is_visibility(fragment: &Group) -> bool {
    let inside: Vec<TokenTree> = fragment.stream().into_iter().collect();
    fragment.delimiter() == Delimiter::None && skip_visibility(&inside, 0) == inside.len()
}

/// Counts nested angle brackets.
///
/// The count is exact in signatures, types and generics. There, `<` and `>` are brackets or part of
/// an arrow: expressions stand in braces, brackets or parentheses, or are a single literal.
#[derive(Default)]
pub(crate) struct Angles {
    depth: usize,
    /// The last token was a `-` that forms an arrow with a following `>`.
    after_dash: bool,
}

impl Angles {
    /// Counts the next token, and returns `true` if it is outside of all angle brackets.
    pub(crate) fn outside(&mut self, tree: &TokenTree) -> bool {
        let outside = self.depth == 0;
        let is_arrow = std::mem::take(&mut self.after_dash);
        if let TokenTree::Punct(punct) = tree {
            match punct.as_char() {
                '<' => self.depth += 1,
                '>' if !is_arrow => self.depth = self.depth.saturating_sub(1),
                '-' => self.after_dash = punct.spacing() == Spacing::Joint,
                _ => {}
            }
        }
        outside
    }
}

/// Returns the index of the parenthesized parameters of a function.
pub(crate) fn parameters(trees: &[TokenTree], head: &Head) -> Option<usize> {
    let mut angles = Angles::default();
    let mut outside = trees
        .iter()
        .enumerate()
        .skip(head.keyword)
        .filter(|(_, tree)| angles.outside(tree));
    outside
        .find(|(_, tree)| group(Some(tree), Delimiter::Parenthesis).is_some())
        .map(|found| found.0)
}

/// Returns the range of the return type among the tokens of a function without its body. The range
/// is empty if the function has no return type.
pub(crate) fn return_type(trees: &[TokenTree], head: &Head) -> std::ops::Range<usize> {
    let mut angles = Angles::default();
    let mut start = None;
    let mut before_is_dash = false;
    for (at, tree) in trees.iter().enumerate().skip(head.keyword) {
        if !angles.outside(tree) {
            continue;
        }
        if start.is_none() && before_is_dash && is_punct(Some(tree), '>') {
            start = Some(at + 1);
        }
        if is_word(Some(tree), "where") {
            return start.unwrap_or(at)..at;
        }
        before_is_dash = is_punct(Some(tree), '-');
    }
    start.unwrap_or(trees.len())..trees.len()
}

//! Reads a body token by token: how it ends, how it may leave the function before, and whether it may wait.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::quote_spanned;

use crate::item::{self, Angles};

/// A future that the last expression of a body creates.
pub(crate) struct Tail {
    /// The index of the first tree of that expression.
    pub(crate) start: usize,
    /// The parentheses of `Box::pin(…)`, which are the last tree.
    pub(crate) boxed: Option<Group>,
    /// The `async` block, if the future is one.
    pub(crate) block: Option<AsyncBlock>,
}

/// The properties of an `async` block that the measured block keeps, because other attributes read
/// them.
#[derive(Clone, Copy)]
pub(crate) struct AsyncBlock {
    /// `true` for `async move`.
    pub(crate) moves: bool,
    /// The span of its braces, which other attributes copy to the code that they put around the
    /// block.
    pub(crate) span: Span,
}

impl Tail {
    /// Reads the last expression of a body. Returns `None` if it is neither `Box::pin(…)` nor an
    /// `async` block.
    pub(crate) fn of(body: &[TokenTree]) -> Option<Self> {
        let (start, boxed, block) = if let Some((start, parentheses)) = pinned(body) {
            let block = whole_block(&parentheses);
            (start, Some(parentheses), block)
        } else {
            let (start, block) = block_at_end(body)?;
            (start, None, Some(block))
        };
        begins_expression(&body[..start]).then_some(Self {
            start,
            boxed,
            block,
        })
    }
}

/// Returns the index at which the `Box::pin(…)` at the end of a body begins, with any path to
/// `Box`, and its parentheses.
fn pinned(body: &[TokenTree]) -> Option<(usize, Group)> {
    let parentheses = item::group(body.last(), Delimiter::Parenthesis)?;
    let mut start = body.len().checked_sub(1)?;
    let mut words = Vec::new();
    while let Some(TokenTree::Ident(word)) = start.checked_sub(1).and_then(|at| body.get(at)) {
        words.push(word);
        start -= 1;
        let colons = start.checked_sub(2).map(|at| &body[at..start]);
        let Some([one, other]) = colons else { break };
        if !item::is_punct(Some(one), ':') || !item::is_punct(Some(other), ':') {
            break;
        }
        start -= 2;
    }
    let called = words.len() >= 2 && words[0] == "pin" && words[1] == "Box";
    called.then_some((start, parentheses))
}

/// Returns the `async` block in parentheses that contain nothing else.
fn whole_block(parentheses: &Group) -> Option<AsyncBlock> {
    let mut inside = item::trees(parentheses.stream());
    if item::is_punct(inside.last(), ',') {
        inside.pop();
    }
    let (start, block) = block_at_end(&inside)?;
    (start == 0).then_some(block)
}

/// Returns the `async` block that these trees end with, and the index at which it begins.
fn block_at_end(trees: &[TokenTree]) -> Option<(usize, AsyncBlock)> {
    let span = item::group(trees.last(), Delimiter::Brace)?.span();
    let before = trees.len().checked_sub(2)?;
    let moves = item::is_word(trees.get(before), "move");
    let start = before.checked_sub(usize::from(moves))?;
    item::is_word(trees.get(start), "async").then_some((start, AsyncBlock { moves, span }))
}

/// Returns `true` if a new expression begins after these trees, and not an operand of their last
/// expression.
fn begins_expression(before: &[TokenTree]) -> bool {
    let last = before.last();
    last.is_none() || item::is_punct(last, ';') || item::group(last, Delimiter::Brace).is_some()
}

/// Macros of the standard library and of this crate that neither leave the calling function nor wait, unless their arguments do.
///
/// A program may have a macro of its own by one of these names. The list is short: a name in it saves a closure.
const HARMLESS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "eprint",
    "eprintln",
    "format",
    "format_args",
    "measure",
    "measure_execution_time_context",
    "panic",
    "print",
    "println",
    "record_function",
    "scope",
    "todo",
    "unimplemented",
    "unreachable",
    "write",
    "writeln",
];

/// Returns `true` if some statements of an `async fn` may wait: by `.await`, or by a macro that may expand to it.
pub(crate) fn may_wait(statements: &[TokenTree]) -> bool {
    let mut at = 0;
    while let Some(tree) = statements.get(at) {
        at += 1;
        match tree {
            TokenTree::Ident(word) if word == "async" => at += rest_of_block(&statements[at..]),
            TokenTree::Ident(word) if word == "await" => return true,
            TokenTree::Ident(word) if is_unknown_macro(word, &statements[at..]) => return true,
            TokenTree::Group(group) if may_wait(&item::trees(group.stream())) => return true,
            _ => {}
        }
    }
    false
}

/// How some statements may leave a function that returns a future.
///
/// They cannot do so by `?`: no future has a residual.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Only at their end.
    AtEnd,
    /// By `return` outside of closures and macros.
    Return,
    /// Perhaps by a macro, or by a `return` that may be that of a closure.
    Unclear,
}

impl Exit {
    /// Reads how some statements may leave their function.
    pub(crate) fn of(statements: &[TokenTree]) -> Self {
        let mut exit = Self::AtEnd;
        let mut code = Code::new(statements);
        while let Some(tree) = code.next() {
            let found = match tree {
                TokenTree::Ident(word) if word == "return" => Self::Return,
                TokenTree::Ident(word) if is_unknown_macro(word, code.rest()) => Self::Unclear,
                TokenTree::Group(group) => Self::of(&item::trees(group.stream())),
                _ => continue,
            };
            let is_clear = !code.is_in_closure && !code.is_in_macro;
            exit = exit.max(if found == Self::Return && !is_clear {
                Self::Unclear
            } else {
                found
            });
        }
        exit
    }
}

/// Replaces each `return` of some statements by a `break` out of the block that has the label, which leaves it with the
/// same value. Call this only for [`Exit::Return`].
pub(crate) fn with_breaks(statements: &[TokenTree], label: &TokenStream) -> TokenStream {
    let mut changed = TokenStream::new();
    let mut code = Code::new(statements);
    loop {
        let start = code.at;
        let Some(tree) = code.next() else { break };
        match tree {
            TokenTree::Ident(word) if word == "return" => {
                let place = Span::mixed_site().located_at(word.span());
                changed.extend(quote_spanned!(place=> break #label));
            }
            TokenTree::Group(group) => {
                let inside = with_breaks(&item::trees(group.stream()), label);
                let mut other = Group::new(group.delimiter(), inside);
                other.set_span(group.span());
                changed.extend([TokenTree::Group(other)]);
            }
            tree => changed.extend([tree.clone()]),
        }
        // What was skipped.
        changed.extend(statements[start + 1..code.at].iter().cloned());
    }
    changed
}

/// Iterates over the trees of one function at one level: without `async` blocks and the bodies of other functions, which a
/// `return` inside leaves instead.
struct Code<'a> {
    trees: &'a [TokenTree],
    at: usize,
    /// The last tree may be in the body of a closure.
    is_in_closure: bool,
    /// The last tree is an argument of a macro.
    is_in_macro: bool,
}

impl<'a> Code<'a> {
    fn new(trees: &'a [TokenTree]) -> Self {
        Self {
            trees,
            at: 0,
            is_in_closure: false,
            is_in_macro: false,
        }
    }

    fn rest(&self) -> &'a [TokenTree] {
        &self.trees[self.at..]
    }

    fn next(&mut self) -> Option<&'a TokenTree> {
        let tree = self.trees.get(self.at)?;
        let before = &self.trees[..self.at];
        self.at += 1;
        let follows = |mark| item::is_punct(before.last(), mark);
        self.is_in_macro = follows('!') && matches!(tree, TokenTree::Group(_));
        match tree {
            TokenTree::Ident(word) if word == "async" => self.at += rest_of_block(self.rest()),
            TokenTree::Ident(word) if word == "fn" => self.at += rest_of_function(self.rest()),
            TokenTree::Punct(mark) => match mark.as_char() {
                ';' => self.is_in_closure = false,
                // The body of a match arm begins.
                '>' if follows('=') => self.is_in_closure = false,
                '|' if begins_closure(before) => self.is_in_closure = true,
                _ => {}
            },
            _ => {}
        }
        Some(tree)
    }
}

/// Returns the length of a function after its `fn`, or 0 for the type of a pointer to a function, which has no name.
fn rest_of_function(rest: &[TokenTree]) -> usize {
    if !matches!(rest.first(), Some(TokenTree::Ident(_))) {
        return 0;
    }
    let mut angles = Angles::default();
    let ends = |tree: &TokenTree| {
        item::is_punct(Some(tree), ';') || item::group(Some(tree), Delimiter::Brace).is_some()
    };
    let end = rest
        .iter()
        .position(|tree| angles.outside(tree) && ends(tree));
    end.map_or(rest.len(), |end| end + 1)
}

/// Returns `true` if a `|` after these tokens begins a closure: it is no operator.
fn begins_closure(before: &[TokenTree]) -> bool {
    const BEFORE_EXPRESSION: &[&str] = &[
        "async", "break", "else", "if", "in", "let", "match", "move", "return", "static", "while",
    ];
    let [.., last] = before else { return true };
    match last {
        TokenTree::Punct(mark) => match mark.as_char() {
            // That of a match arm, and not that of generics or a comparison.
            '>' => item::is_punct(before.iter().rev().nth(1), '='),
            other => !['|', '?'].contains(&other),
        },
        TokenTree::Ident(word) => BEFORE_EXPRESSION.contains(&&*word.to_string()),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Literal(_) => false,
    }
}

/// Returns the length of an `async` block after its `async`, or 0 if there is no block. `return`
/// and `?` inside it leave the block, not the function.
fn rest_of_block(rest: &[TokenTree]) -> usize {
    let block = usize::from(item::is_word(rest.first(), "move"));
    match item::group(rest.get(block), Delimiter::Brace) {
        Some(_) => block + 1,
        None => 0,
    }
}

/// Returns `true` if a word is the name of a macro that is called, and not known to be harmless.
fn is_unknown_macro(word: &Ident, rest: &[TokenTree]) -> bool {
    let is_called = item::is_punct(rest.first(), '!')
        && !matches!(rest.get(1), Some(TokenTree::Punct(_)) | None);
    is_called && !HARMLESS.contains(&word.to_string().as_str())
}

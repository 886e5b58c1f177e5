//! What a body ends with: a future that is made there, or anything else.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenTree};

use crate::item;

/// A future that is made by the last expression of a body.
pub(crate) struct Tail {
    /// The index of the first tree of that expression.
    pub(crate) start: usize,
    /// The parentheses of `Box::pin(…)`, which are the last tree.
    pub(crate) boxed: Option<Group>,
    /// For a future that is an `async` block: what must stay of it.
    pub(crate) block: Option<AsyncBlock>,
}

/// What another attribute sees of an `async` block.
#[derive(Clone, Copy)]
pub(crate) struct AsyncBlock {
    /// Whether it says `move`.
    pub(crate) moves: bool,
    /// Of its braces. Other attributes give it to what they put around the block.
    pub(crate) span: Span,
}

impl Tail {
    /// Reads the last expression of a body.
    pub(crate) fn of(body: &[TokenTree]) -> Option<Self> {
        let (start, boxed, block) = if let Some((start, made)) = pinned(body) {
            let block = whole_block(&made);
            (start, Some(made), block)
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

/// Where `Box::pin(…)` begins that a body ends with, by whatever path, and its parentheses.
fn pinned(body: &[TokenTree]) -> Option<(usize, Group)> {
    let made = item::group(body.last(), Delimiter::Parenthesis)?;
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
    called.then_some((start, made))
}

/// Whether parentheses hold an `async` block and nothing else.
fn whole_block(made: &Group) -> Option<AsyncBlock> {
    let mut inside = item::trees(made.stream());
    if item::is_punct(inside.last(), ',') {
        inside.pop();
    }
    let (start, block) = block_at_end(&inside)?;
    (start == 0).then_some(block)
}

/// Where an `async` block begins that these trees end with.
fn block_at_end(trees: &[TokenTree]) -> Option<(usize, AsyncBlock)> {
    let span = item::group(trees.last(), Delimiter::Brace)?.span();
    let before = trees.len().checked_sub(2)?;
    let moves = item::is_word(trees.get(before), "move");
    let start = before.checked_sub(usize::from(moves))?;
    item::is_word(trees.get(start), "async").then_some((start, AsyncBlock { moves, span }))
}

/// Whether an expression of its own begins behind these trees.
fn begins_expression(before: &[TokenTree]) -> bool {
    let last = before.last();
    last.is_none() || item::is_punct(last, ';') || item::group(last, Delimiter::Brace).is_some()
}

/// Macros that do not leave the function they are called in, unless their arguments do.
const STAYING: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "cfg",
    "concat",
    "dbg",
    "debug",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "debug_span",
    "env",
    "eprint",
    "eprintln",
    "file",
    "format",
    "format_args",
    "include_bytes",
    "include_str",
    "info",
    "info_span",
    "line",
    "matches",
    "module_path",
    "panic",
    "print",
    "println",
    "stringify",
    "todo",
    "trace",
    "trace_span",
    "unimplemented",
    "unreachable",
    "vec",
    "warn",
];

/// Whether some statements may leave the function before its end: by `return`, by `?`, or in a macro
/// that may hold either.
pub(crate) fn leaves_early(statements: &[TokenTree]) -> bool {
    let mut at = 0;
    while let Some(tree) = statements.get(at) {
        at += 1;
        match tree {
            TokenTree::Ident(word) if word == "async" => at += skipped(&statements[at..]),
            TokenTree::Ident(word) if word == "return" => return true,
            TokenTree::Ident(word) if calls_macro(&statements[at..]) && may_leave(word) => {
                return true;
            }
            TokenTree::Punct(punct) if punct.as_char() == '?' => return true,
            TokenTree::Group(group) if leaves_early(&item::trees(group.stream())) => return true,
            _ => {}
        }
    }
    false
}

/// The length of the rest of an `async` block, whose `return` and `?` are its own.
fn skipped(rest: &[TokenTree]) -> usize {
    let block = usize::from(item::is_word(rest.first(), "move"));
    match item::group(rest.get(block), Delimiter::Brace) {
        Some(_) => block + 1,
        None => 0,
    }
}

/// Whether `!` and arguments follow.
fn calls_macro(rest: &[TokenTree]) -> bool {
    item::is_punct(rest.first(), '!') && matches!(rest.get(1), Some(TokenTree::Group(_)))
}

fn may_leave(name: &Ident) -> bool {
    !STAYING.contains(&name.to_string().as_str())
}

//! Reads the last expression of a body, to find a future that is created there.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenTree};

use crate::item;

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

/// Macros that do not return from the calling function, unless their arguments do.
const NEVER_LEAVING: &[&str] = &[
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
    "measure",
    "measure_execution_time_context",
    "module_path",
    "panic",
    "print",
    "println",
    "record_function",
    "scope",
    "stringify",
    "todo",
    "trace",
    "trace_span",
    "unimplemented",
    "unreachable",
    "vec",
    "warn",
];

/// Returns `true` if some statements may leave the function before its end: by `return`, by `?`, or
/// by a macro that may expand to either.
pub(crate) fn leaves_early(statements: &[TokenTree]) -> bool {
    let mut at = 0;
    while let Some(tree) = statements.get(at) {
        at += 1;
        match tree {
            TokenTree::Ident(word) if word == "async" => at += rest_of_block(&statements[at..]),
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

/// Returns the length of an `async` block after its `async`, or 0 if there is no block. `return`
/// and `?` inside it leave the block, not the function.
fn rest_of_block(rest: &[TokenTree]) -> usize {
    let block = usize::from(item::is_word(rest.first(), "move"));
    match item::group(rest.get(block), Delimiter::Brace) {
        Some(_) => block + 1,
        None => 0,
    }
}

/// Returns `true` if these trees begin with `!` and the arguments of a macro call.
fn calls_macro(rest: &[TokenTree]) -> bool {
    item::is_punct(rest.first(), '!') && matches!(rest.get(1), Some(TokenTree::Group(_)))
}

fn may_leave(name: &Ident) -> bool {
    !NEVER_LEAVING.contains(&name.to_string().as_str())
}

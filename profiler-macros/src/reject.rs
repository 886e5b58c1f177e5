//! Decides whether an item can be measured: passes it on to be expanded, or reports why not, and what to do instead.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};

use crate::args::Args;
use crate::attributes::{self, Attribute};
use crate::errors::Errors;
use crate::function::Function;
use crate::item::{self, Head, Kind};
use crate::keys::Key;

pub(crate) const TWICE: &str =
    "`measure_execution_time` is given twice, which would count each call twice; remove one";

pub(crate) const CONDITIONAL: &str = "inside a measured block this attribute cannot depend on a condition; write it without \
     `cfg_attr`, and the condition as `bypass = cfg!(…)`";

/// Returns a function measured. For an item that cannot be measured, reports the reason and returns
/// it as it was written.
pub(crate) fn measure_or_reject(
    trees: Vec<TokenTree>,
    head: Head,
    args: &Args,
    in_block: bool,
    errors: &mut Errors,
) -> TokenStream {
    let Some(constant) = head.constant.filter(|_| head.kind == Kind::Function) else {
        return measure_function_or_reject(trees, head, args, in_block, errors);
    };
    errors.at(
        constant,
        "a `const fn` may run in the compiler, where there is no clock; \
         remove `const`, or measure the function that calls it",
    );
    trees.into_iter().collect()
}

fn measure_function_or_reject(
    trees: Vec<TokenTree>,
    head: Head,
    args: &Args,
    in_block: bool,
    errors: &mut Errors,
) -> TokenStream {
    for (_, attribute) in attributes::of(&trees, head.attributes_end) {
        let (span, message) = match attribute {
            Attribute::Own { span, .. } => (span, TWICE),
            Attribute::Naked(span) => (
                span,
                "a naked function contains only assembly; measure the function that calls it",
            ),
            _ => continue,
        };
        errors.at(span, message);
        return trees.into_iter().collect();
    }
    if head.kind != Kind::Function {
        reject_item(&trees, &head, errors);
        return trees.into_iter().collect();
    }
    match Function::new(head, trees) {
        Ok(function) => measure_function(function, args, in_block, errors),
        Err(trees) => {
            if item::is_punct(trees.last(), ';') {
                errors.at(
                    span_of(trees.last()),
                    "a function without a body has nothing to measure; measure its \
                     implementations or its callers",
                );
            }
            trees.into_iter().collect()
        }
    }
}

/// Returns a function measured. Reports arguments that do not apply to a function that returns a
/// future.
pub(crate) fn measure_function(
    function: Function,
    args: &Args,
    in_block: bool,
    errors: &mut Errors,
) -> TokenStream {
    for (key, flag, why) in [
        (Key::Sync, args.sync, "a future must not block its executor"),
        (
            Key::CudaGraph,
            args.cuda_graph,
            "the capture of a graph must not span an `.await`",
        ),
    ] {
        if flag == Some(true) && function.is_future() {
            reject_on_future(&function, args.span_of(key), key.word(), why, errors);
        }
    }
    function.measured(args, in_block)
}

fn reject_on_future(
    function: &Function,
    own: Option<Span>,
    word: &str,
    why: &str,
    errors: &mut Errors,
) {
    let section = format!("`measure!(\"name\", {word}, {{ … }})`");
    match own {
        Some(span) => errors.at(
            span,
            format_args!(
                "{why}; remove `{word}`, and put a section around the launch inside: {section}"
            ),
        ),
        None => errors.at(
            function
                .head
                .name(&function.signature)
                .map_or_else(Span::call_site, Ident::span),
            format_args!(
                "`{word}` of the block applies to this function, but {why}; write \
                 `#[measure_execution_time({word} = false)]` on it, and put a section around the \
                 launch inside: {section}"
            ),
        ),
    }
}

/// Reports why an item that is no function cannot be measured. Tokens that are no item, or an
/// incomplete one, are left to the compiler, whose error is more precise.
fn reject_item(trees: &[TokenTree], head: &Head, errors: &mut Errors) {
    let what = match head.kind {
        Kind::Trait => {
            errors.at(
                span_of(trees.get(head.keyword)),
                "a trait is not measured as a whole; put the attribute on its methods that have \
                 a body, or on its `impl` blocks",
            );
            return;
        }
        Kind::Other(what) => what,
        Kind::Macro => "a macro",
        Kind::Unknown if is_closure(trees, head) => {
            errors.at(
                span_of(trees.get(head.attributes_end)),
                "the attribute does not apply to a closure; measure its body: \
                 `|…| measure!(\"name\", { … })`",
            );
            return;
        }
        _ => return,
    };
    errors.at(
        span_of(trees.get(head.keyword)),
        format_args!(
            "{what} cannot be measured; put `#[measure_execution_time]` on a function, an `impl` \
             block or an inline `mod`"
        ),
    );
}

/// Reports `name` on a block, which would give all its functions the same name.
pub(crate) fn name_on_block(args: &Args, kind: Kind, errors: &mut Errors) {
    if let Some(span) = args.span_of(Key::Name) {
        let block = match kind {
            Kind::Module => "a `mod`",
            Kind::Trait => "a `trait`",
            _ => "an `impl`",
        };
        errors.at(
            span,
            format_args!(
                "`name` on {block} would give all its functions the same name; \
                 put it on one function, or leave it out"
            ),
        );
    }
}

/// Reports a module whose functions are in another file.
pub(crate) fn module_in_another_file(trees: &[TokenTree], kind: Kind, errors: &mut Errors) {
    if kind == Kind::Module && item::is_punct(trees.last(), ';') {
        errors.at(
            span_of(trees.last()),
            "the functions of this module are in another file; put the attribute on them or on \
             their `impl` blocks there, or write the module inline: `mod name { … }`",
        );
    }
}

/// Reports an item of a measured block whose end cannot be found.
pub(crate) fn unclear_item(trees: &[TokenTree], errors: &mut Errors) {
    errors.at(
        span_of(trees.get(item::skip_attributes(trees))),
        "cannot find the end of this item, so the functions after it would not be measured; put \
         `#[measure_execution_time]` on each function instead of the block",
    );
}

fn is_closure(trees: &[TokenTree], head: &Head) -> bool {
    let first = trees.get(head.attributes_end);
    item::is_punct(first, '|') || item::is_word(first, "move")
}

fn span_of(tree: Option<&TokenTree>) -> Span {
    tree.map_or_else(Span::call_site, TokenTree::span)
}

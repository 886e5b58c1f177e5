//! An `async fn`, measured: the same statements in a future that is measured, from its first poll
//! to its end.
//!
//! The compiler itself makes of `async fn f(x: X) { … }` a block `async move { let x = x; … }`. The
//! same is done here, so that named arguments are dropped when and in which order they would be, and
//! mistakes with them are told in the same words. Others (patterns, names that begin with `_`) are
//! dropped when the whole call ends.

use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

use crate::args::Args;
use crate::function;
use crate::futures;
use crate::item::{self, Angles, Head};
use crate::site::Entrance;

/// The statements of a measured `async fn`; moves what must move with them out of the signature.
pub(crate) fn measured(
    entrance: &Entrance,
    head: &Head,
    signature: &mut [TokenTree],
    statements: &TokenStream,
    braces: Span,
) -> TokenStream {
    let span = Span::mixed_site();
    let runtime = entrance.runtime;
    let arguments = rebind(entrance.args, head, signature);
    let returned = item::return_type(signature, head);
    let end = signature.last().map_or(span, TokenTree::span);
    let returned = &signature[returned];
    let pinned = pinned_type(returned).map(|pinned| {
        // The compiler points to this call to say what it expects: so it stands at the type.
        let place = returned.first().map_or(end, TokenTree::span);
        let runtime = runtime.private_at(place);
        let never = quote_spanned!(place=> #runtime::never::<#pinned>());
        quote_spanned!(span=> if false { return #never; };)
    });
    let divider = function::before_items(statements);
    let inside = quote!(#arguments #pinned #divider #statements);
    let mut block = Group::new(Delimiter::Brace, inside);
    block.set_span(braces);
    let future = quote_spanned!(span.located_at(braces)=> async move #block);
    let (entry, task) = entrance.entry_and_task();
    if futures::may_be_one(returned) {
        // Here alone `clippy` takes the value for a forgotten `.await`; of an `async fn` it knows
        // better. Elsewhere an `allow` could only clash with a `forbid`.
        return quote_spanned! {span=>
            #entry
            #[allow(clippy::async_yields_async)]
            let __profiler_future = #future;
            #runtime::measure_in_place(&mut #task, #runtime::pin!(__profiler_future)).await
        };
    }
    quote_spanned! {span=>
        #entry
        #runtime::measure_in_place(&mut #task, #runtime::pin!(#future)).await
    }
}

/// The type that an `async` block must be told that it returns, because nothing else tells it.
fn pinned_type(returned: &[TokenTree]) -> Option<TokenStream> {
    if returned.is_empty() {
        return Some(quote_spanned!(Span::mixed_site()=> ()));
    }
    if item::is_punct(returned.first(), '!') {
        return None;
    }
    futures::nameable(returned.iter().cloned().collect())
}

/// Statements that bind the arguments once more, each as it was; a `mut` moves from the signature
/// to them. One that the attribute mentions is used, whether the body uses it or not.
fn rebind(args: &Args, head: &Head, signature: &mut [TokenTree]) -> TokenStream {
    let mut bindings = TokenStream::new();
    let Some(at) = item::parameters(signature, head) else {
        return bindings;
    };
    let Some(group) = item::group(signature.get(at), Delimiter::Parenthesis) else {
        return bindings;
    };
    let mut trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let mut moved = Vec::new();
    for start in starts(&trees) {
        if let Some((mutable, name)) = plain(&trees[start..]) {
            let keyword = mutable.then(|| trees[start].clone());
            bindings.extend(quote_spanned!(Span::mixed_site()=> let #keyword #name = #name;));
            if args.mention(&name) {
                bindings.extend(quote_spanned!(Span::mixed_site()=> let _ = &#name;));
            }
            moved.extend(mutable.then_some(start));
        }
    }
    if !moved.is_empty() {
        for start in moved.into_iter().rev() {
            trees.remove(start);
        }
        let mut parameters = Group::new(Delimiter::Parenthesis, trees.into_iter().collect());
        parameters.set_span(group.span());
        signature[at] = TokenTree::Group(parameters);
    }
    bindings
}

/// Where each parameter begins.
fn starts(trees: &[TokenTree]) -> Vec<usize> {
    let mut angles = Angles::default();
    let mut starts = vec![0];
    for (at, tree) in trees.iter().enumerate() {
        if angles.outside(tree) && item::is_punct(Some(tree), ',') {
            starts.push(at + 1);
        }
    }
    starts
}

/// A parameter that is a name and nothing more, and whether it is `mut`.
fn plain(parameter: &[TokenTree]) -> Option<(bool, Ident)> {
    let mutable = item::is_word(parameter.first(), "mut");
    let parameter = &parameter[usize::from(mutable)..];
    let (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(colon))) =
        (parameter.first(), parameter.get(1))
    else {
        return None;
    };
    let path = colon.spacing() == Spacing::Joint && item::is_punct(parameter.get(2), ':');
    // A name with `_` in front says that it is not used; lints hold it against whoever uses it.
    let used = name != "self" && !name.to_string().starts_with('_');
    (colon.as_char() == ':' && !path && used).then(|| (mutable, name.clone()))
}

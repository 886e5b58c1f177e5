//! The expansion of an `async fn`: its statements move into an `async` block that is measured from
//! its first poll to its end.
//!
//! The compiler desugars `async fn f(x: X) { … }` to a block `async move { let x = x; … }`. This
//! expansion writes the same bindings, so that named parameters are dropped at the usual time and
//! in the usual order, and compiler errors about them keep their text. Other parameters (patterns,
//! names that begin with `_`) are dropped when the whole call ends.

use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

use crate::args::Args;
use crate::futures;
use crate::item::{self, Angles, Head};
use crate::site::{SiteCode, before_items};

/// Returns the body of a measured `async fn`. Removes `mut` from the parameters that the body binds
/// again.
pub(crate) fn measured(
    site: &SiteCode,
    head: &Head,
    signature: &mut [TokenTree],
    statements: &TokenStream,
    braces: Span,
) -> TokenStream {
    let span = Span::mixed_site();
    let runtime = site.runtime;
    let arguments = rebind(site.args, head, signature);
    let returned = item::return_type(signature, head);
    let end = signature.last().map_or(span, TokenTree::span);
    let returned = &signature[returned];
    let pinned = pinned_type(returned).map(|pinned| {
        // If the body has another type, the compiler points to this call, so the call has the span
        // of the return type.
        let place = returned.first().map_or(end, TokenTree::span);
        let runtime = runtime.private_at(place);
        let never = quote_spanned!(place=> #runtime::never::<#pinned>());
        quote_spanned!(span=> if false { return #never; };)
    });
    let trees: Vec<TokenTree> = statements.clone().into_iter().collect();
    let divider = before_items(&trees);
    let inside = quote!(#arguments #pinned #divider #statements);
    let mut block = Group::new(Delimiter::Brace, inside);
    block.set_span(braces);
    let future = quote_spanned!(span.located_at(braces)=> async move #block);
    let (builder, task) = site.builder_and_task();
    if futures::may_be_future(returned) {
        // If the `async` block returns a future, `clippy` reports a forgotten `.await`, which it
        // does not for an `async fn`. The `allow` stands only here because it is an error in a
        // crate that forbids the lint.
        return quote_spanned! {span=>
            #builder
            #[allow(clippy::async_yields_async)]
            let __profiler_future = #future;
            #runtime::measure_in_place(&mut #task, #runtime::pin!(__profiler_future)).await
        };
    }
    quote_spanned! {span=>
        #builder
        #runtime::measure_in_place(&mut #task, #runtime::pin!(#future)).await
    }
}

/// Returns the type that the `async` block is annotated with, because its type cannot be inferred
/// from the signature; `None` if that type cannot be written in a body.
fn pinned_type(returned: &[TokenTree]) -> Option<TokenStream> {
    if returned.is_empty() {
        return Some(quote_spanned!(Span::mixed_site()=> ()));
    }
    if item::is_punct(returned.first(), '!') {
        return None;
    }
    futures::nameable(returned.iter().cloned().collect())
}

/// Returns statements that bind the parameters again, inside the block. A `mut` moves from the
/// signature to the new binding. A parameter that the attribute mentions is marked as used, since
/// the body may not use it.
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
            if args.any_mentions(&name) {
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

/// Returns the index at which each parameter begins.
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

/// Returns the name of a parameter that is a plain name, and `true` if it is `mut`.
fn plain(parameter: &[TokenTree]) -> Option<(bool, Ident)> {
    let mutable = item::is_word(parameter.first(), "mut");
    let parameter = &parameter[usize::from(mutable)..];
    let (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(colon))) =
        (parameter.first(), parameter.get(1))
    else {
        return None;
    };
    let path = colon.spacing() == Spacing::Joint && item::is_punct(parameter.get(2), ':');
    // A name that begins with `_` is not bound again: using it triggers
    // `clippy::used_underscore_binding`.
    let used = name != "self" && !name.to_string().starts_with('_');
    (colon.as_char() == ':' && !path && used).then(|| (mutable, name.clone()))
}

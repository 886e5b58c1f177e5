//! The expansion of an `async fn`.
//!
//! A body without `.await` cannot wait: its first poll is its only one, and the statements stay in the function, after a guard.
//! Other statements move into an `async` block, which is measured from its first poll to its end.
//!
//! The bindings of the parameters are in a block with the span of the macro, the statements in a block of their own with the
//! user's braces. So an item among the statements is not in scope where the return type is written, and in the editions
//! before 2024, in which the temporaries of the last expression outlive the variables of its block, they do not outlive the
//! parameters: the edition of the macro decides that for the outer block.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

use crate::futures;
use crate::item::{self, Head};
use crate::parameters;
use crate::site::{SiteCode, before_items, own_block};
use crate::tail;

/// Returns the body of a measured `async fn`. Changes the parameters that the body binds again.
pub(crate) fn measured(
    site: &SiteCode,
    head: &Head,
    signature: &mut [TokenTree],
    statements: &TokenStream,
    braces: Span,
) -> TokenStream {
    let span = Span::mixed_site();
    let runtime = site.runtime;
    let (builder, task) = site.builder_and_task();
    let trees: Vec<TokenTree> = statements.clone().into_iter().collect();
    if !tail::may_wait(&trees) {
        let divider = before_items(&trees);
        return quote_spanned! {span=>
            #builder
            let mut __profiler_task = #task;
            let __profiler_scope = #runtime::only_poll(&mut __profiler_task);
            #divider
            #statements
        };
    }
    let arguments = parameters::moved(site.args, head, signature, statements);
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
    let own = own_block(statements, braces);
    let inside = quote!(#arguments #pinned #own);
    let mut block = Group::new(Delimiter::Brace, inside);
    block.set_span(span.located_at(braces));
    let future = quote_spanned!(span.located_at(braces)=> async move #block);
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

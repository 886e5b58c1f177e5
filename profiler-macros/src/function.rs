//! A function, measured.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::Type;

use crate::args::Args;
use crate::futures;
use crate::item::{self, Head};
use crate::site::{Entrance, Runtime};

/// A function with a body: its tokens up to the body, and the body.
pub(crate) struct Function {
    pub(crate) head: Head,
    pub(crate) signature: Vec<TokenTree>,
    pub(crate) body: Group,
}

impl Function {
    /// Takes the body off; gives the tokens back where there is none.
    pub(crate) fn new(head: Head, mut trees: Vec<TokenTree>) -> Result<Self, Vec<TokenTree>> {
        let named = head.name(&trees).is_some();
        match item::group(trees.last(), Delimiter::Brace) {
            Some(body) if named && trees.len() > head.keyword + 3 => {
                trees.pop();
                Ok(Self { head, signature: trees, body })
            }
            _ => Err(trees),
        }
    }

    /// The function with its body measured.
    pub(crate) fn measured(self, args: &Args) -> TokenStream {
        let runtime = Runtime::at(args.krate.as_ref());
        crate::site::NAME.set(self.head.name(&self.signature).map(|n| n.span()));
        let entrance = Entrance { args, runtime: &runtime };
        let (mut inside, statements) = split_inner_attributes(self.body.stream());
        let returned = item::return_type(&self.signature, &self.head);
        let returned = &self.signature[returned];
        if self.head.asynchronous {
            inside.extend(asynchronous(&entrance, returned, statements));
        } else if let Some(future) = futures::returned(returned) {
            inside.extend(future.measured(&entrance, statements));
        } else {
            let guard = quote_spanned!(Span::mixed_site()=> _scope);
            inside.extend(entrance.guard(&guard));
            inside.extend(statements);
        }
        let mut body = Group::new(Delimiter::Brace, inside);
        body.set_span(self.body.span());
        self.signature.into_iter().chain([TokenTree::Group(body)]).collect()
    }
}

/// The body of an `async fn`: the same statements in a future that is measured.
fn asynchronous(entrance: &Entrance, returned: &[TokenTree], body: TokenStream) -> TokenStream {
    let span = Span::mixed_site();
    let entry = entrance.entry();
    let runtime = entrance.runtime;
    let pin_type = pinned_type(returned).map(|returned| {
        quote_spanned!(span=> if false { return #runtime::never::<#returned>(); })
    });
    let future = quote_spanned!(span=> async move { #pin_type #body });
    let future = if futures::may_be_one(returned) {
        // Here alone `clippy` takes the value for a forgotten `.await`; of an `async fn` it knows
        // better. Elsewhere an `allow` could only clash with a `forbid`.
        quote_spanned! {span=>
            #[allow(clippy::async_yields_async)]
            let future = #future;
            #runtime::measure(entry.task(), future).await
        }
    } else {
        quote_spanned!(span=> #runtime::measure(entry.task(), #future).await)
    };
    quote_spanned!(span=> #entry #future)
}

/// The type that an `async` block must be told that it returns, because nothing else tells it.
fn pinned_type(returned: &[TokenTree]) -> Option<TokenStream> {
    let tokens: TokenStream = returned.iter().cloned().collect();
    if returned.is_empty() {
        return Some(quote_spanned!(Span::mixed_site()=> ()));
    }
    if item::is_punct(returned.first(), '!') {
        return None;
    }
    if !futures::mentions_impl(&tokens) {
        return Some(tokens);
    }
    let mut parsed: Type = syn::parse2(tokens).ok()?;
    futures::infer_impl(&mut parsed);
    match parsed {
        Type::Infer(_) => None,
        known => Some(quote::quote!(#known)),
    }
}

/// Parts the attributes that a body has inside from the rest of it.
fn split_inner_attributes(body: TokenStream) -> (TokenStream, TokenStream) {
    let mut trees = body.clone().into_iter().peekable();
    let mut attributes = TokenStream::new();
    if !item::is_punct(trees.peek(), '#') {
        return (attributes, body);
    }
    let trees: Vec<TokenTree> = trees.collect();
    let mut at = 0;
    while item::is_punct(trees.get(at), '#')
        && item::is_punct(trees.get(at + 1), '!')
        && item::group(trees.get(at + 2), Delimiter::Bracket).is_some()
    {
        at += 3;
    }
    attributes.extend(trees[..at].iter().cloned());
    (attributes, trees[at..].iter().cloned().collect())
}

//! The expansion of a function.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::args::Args;
use crate::asynchronous;
use crate::futures;
use crate::item::{self, Head};
use crate::site::{Runtime, SiteCode, before_items, own_block};

/// A function with a body, which is kept apart from the tokens before it.
pub(crate) struct Function {
    pub(crate) head: Head,
    pub(crate) signature: Vec<TokenTree>,
    pub(crate) body: Group,
}

impl Function {
    /// Splits off the body.
    ///
    /// # Errors
    ///
    /// Returns the tokens unchanged if they have no body.
    pub(crate) fn new(head: Head, mut trees: Vec<TokenTree>) -> Result<Self, Vec<TokenTree>> {
        let named = head.name(&trees).is_some();
        match item::group(trees.last(), Delimiter::Brace) {
            Some(body) if named && trees.len() > head.keyword + 3 => {
                trees.pop();
                Ok(Self {
                    head,
                    signature: trees,
                    body,
                })
            }
            _ => Err(trees),
        }
    }

    /// Returns `true` if a call returns a future. The future is then measured instead of the call.
    pub(crate) fn is_future(&self) -> bool {
        self.head.asynchronous || futures::returned(&self.signature, &self.head).is_some()
    }

    /// Returns the function with its body measured. A stripped build returns it as it was written.
    ///
    /// With `in_block`, the call site has the location of the function's name: else all functions
    /// of a measured block would have the location of the block's attribute.
    pub(crate) fn measured(mut self, args: &Args, in_block: bool) -> TokenStream {
        if crate::STRIP {
            return self
                .signature
                .into_iter()
                .chain([TokenTree::Group(self.body)])
                .collect();
        }
        let runtime = Runtime::at(args.krate.as_ref());
        let location = self
            .head
            .name(&self.signature)
            .filter(|_| in_block)
            .map(Ident::span);
        let site = SiteCode {
            args,
            runtime: &runtime,
            location,
        };
        let mut braces = self.body.span();
        let whole = self.body.stream();
        let trees: Vec<TokenTree> = whole.clone().into_iter().collect();
        let attributes = inner_attributes(&trees);
        let (mut inside, statements) = match attributes {
            // Tokens that stay together cost the compiler less than tokens one by one.
            0 => (TokenStream::new(), whole),
            end => (collected(&trees[..end]), collected(&trees[end..])),
        };
        if self.head.asynchronous {
            let (head, signature) = (&self.head, &mut self.signature);
            let measured = asynchronous::measured(&site, head, signature, &statements, braces);
            inside.extend(measured);
        } else if let Some(future) = futures::returned(&self.signature, &self.head) {
            let (head, signature) = (&self.head, &mut self.signature[..]);
            let measured = future.measured(&site, (head, signature), statements, braces);
            inside.extend(measured);
        } else {
            inside.extend(site.guard());
            if self.is_judged_by_its_body() {
                let own = own_block(&statements, braces);
                inside.extend([TokenTree::Group(own)]);
                braces = Span::mixed_site().located_at(braces);
            } else {
                inside.extend(before_items(&trees[attributes..]));
                inside.extend([statements]);
            }
        }
        let mut body = Group::new(Delimiter::Brace, inside);
        body.set_span(braces);
        self.signature
            .into_iter()
            .chain([TokenTree::Group(body)])
            .collect()
    }

    /// Returns `true` if a lint that `clippy` has on by default requires these exact statements, or none. It leaves out bodies
    /// with the braces of a macro.
    fn is_judged_by_its_body(&self) -> bool {
        // `non_canonical_clone_impl`, `non_canonical_partial_ord_impl`, and `extra_unused_type_parameters` for an empty body.
        let name = self.head.name(&self.signature);
        name.is_some_and(|name| name == "clone" || name == "partial_cmp")
            || self.body.stream().is_empty()
    }
}

/// Returns the length of the inner attributes at the beginning of a body.
fn inner_attributes(trees: &[TokenTree]) -> usize {
    let mut at = 0;
    while item::is_punct(trees.get(at), '#')
        && item::is_punct(trees.get(at + 1), '!')
        && item::group(trees.get(at + 2), Delimiter::Bracket).is_some()
    {
        at += 3;
    }
    at
}

fn collected(trees: &[TokenTree]) -> TokenStream {
    trees.iter().cloned().collect()
}

//! A function, measured.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::quote_spanned;

use crate::args::Args;
use crate::asynchronous;
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
                Ok(Self {
                    head,
                    signature: trees,
                    body,
                })
            }
            _ => Err(trees),
        }
    }

    /// Whether a call gives a future, which is what is measured then.
    pub(crate) fn is_future(&self) -> bool {
        self.head.asynchronous || futures::returned(&self.signature, &self.head).is_some()
    }

    /// The function with its body measured; `in_block` where the attribute is not its own. In a
    /// stripped build the function as it was written.
    pub(crate) fn measured(mut self, args: &Args, in_block: bool) -> TokenStream {
        if crate::STRIP {
            return self
                .signature
                .into_iter()
                .chain([TokenTree::Group(self.body)])
                .collect();
        }
        let runtime = Runtime::at(args.krate.as_ref());
        let place = self
            .head
            .name(&self.signature)
            .filter(|_| in_block)
            .map(Ident::span);
        let entrance = Entrance {
            args,
            runtime: &runtime,
            place,
        };
        let (mut inside, statements) = split_inner_attributes(self.body.stream());
        if self.head.asynchronous {
            let braces = self.body.span();
            let (head, signature) = (&self.head, &mut self.signature);
            let measured = asynchronous::measured(&entrance, head, signature, &statements, braces);
            inside.extend(measured);
        } else if let Some(future) = futures::returned(&self.signature, &self.head) {
            inside.extend(future.measured(&entrance, statements, self.body.span()));
        } else {
            let guard = quote_spanned!(Span::mixed_site()=> __profiler_scope);
            inside.extend(entrance.guard(&guard));
            inside.extend(before_items(&statements));
            inside.extend(statements);
        }
        let mut body = Group::new(Delimiter::Brace, inside);
        body.set_span(self.body.span());
        self.signature
            .into_iter()
            .chain([TokenTree::Group(body)])
            .collect()
    }
}

/// What stands between a statement of the expansion's and the user's, if there are items among those:
/// an item that says nothing. `clippy::items_after_statements` looks no further than to the first item
/// that a macro made; else it would call those of the user misplaced.
pub(crate) fn before_items(statements: &TokenStream) -> Option<TokenStream> {
    let begins_item = |tree: &TokenTree| match tree {
        TokenTree::Ident(word) => ITEM_WORDS.iter().any(|known| word == known),
        _ => false,
    };
    let has_items = statements
        .clone()
        .into_iter()
        .any(|tree| begins_item(&tree));
    has_items.then(|| quote_spanned!(Span::mixed_site()=> use {};))
}

/// The words that items begin with.
const ITEM_WORDS: &[&str] = &[
    "const", "enum", "extern", "fn", "impl", "mod", "static", "struct", "trait", "type", "union",
    "use",
];

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

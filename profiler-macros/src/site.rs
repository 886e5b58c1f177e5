//! The code that every measured place begins with: its call site and what is known when it is
//! entered.
//!
//! Locals are hygienic, items are not: whatever a user wrote stays outside the block that declares
//! the items.

use proc_macro2::{Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use crate::args::{Args, Name};
use crate::values::is_closure;

/// The path of the runtime crate; as tokens, that of what the expansion uses of it.
pub(crate) struct Runtime {
    root: TokenStream,
    /// The user wrote the path.
    given: bool,
}

impl Runtime {
    /// The runtime at the path of the `crate` argument, or at its own name.
    pub(crate) fn at(path: Option<&Path>) -> Self {
        match path {
            Some(path) => Self {
                root: path.to_token_stream(),
                given: true,
            },
            None => Self {
                root: quote_spanned!(Span::mixed_site()=> ::profiler_runtime),
                given: false,
            },
        }
    }

    /// What is public of the runtime.
    pub(crate) fn root(&self) -> &TokenStream {
        &self.root
    }

    /// The path to what the expansion uses, as if written at `place`; one that the user gave means
    /// what it means where it was written.
    pub(crate) fn private_at(&self, place: Span) -> TokenStream {
        let moved = |tree: TokenTree| {
            let span = if self.given {
                place.resolved_at(tree.span())
            } else {
                place
            };
            at(span, tree)
        };
        let root: TokenStream = self.root.clone().into_iter().map(moved).collect();
        quote_spanned!(place=> #root::__private)
    }
}

impl ToTokens for Runtime {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let root = &self.root;
        tokens.extend(quote_spanned!(Span::mixed_site()=> #root::__private));
    }
}

fn at(span: Span, mut tree: TokenTree) -> TokenTree {
    tree.set_span(span);
    tree
}

/// How an entry is made of the call site.
pub(crate) struct Entrance<'a> {
    pub(crate) args: &'a Args,
    pub(crate) runtime: &'a Runtime,
    /// Where the call site is to say that it stands, if not where the macro was called: functions
    /// of a measured block would otherwise all stand in one place.
    pub(crate) place: Option<Span>,
}

impl Entrance<'_> {
    /// A block that declares the call site and yields what `last` makes of `SITE`.
    fn declare(&self, last: &TokenStream) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = self.runtime;
        let every = self.args.every.map(|every| {
            let every = Literal::u32_unsuffixed(every);
            quote_spanned!(span=> .every(#every))
        });
        let (here, site) = match &self.args.name {
            Some(Name::Literal(text)) => {
                (None, self.construct(&quote_spanned!(span=> named(#text))))
            }
            _ => (
                Some(quote_spanned!(span=> enum Here {})),
                self.construct(&quote_spanned!(span=> of::<Here>())),
            ),
        };
        quote_spanned! {span=> {
            #here
            static SITE: #runtime::CallSite = #site #every;
            #last
        }}
    }

    /// The call that makes the call site, and sees where it is called from.
    fn construct(&self, call: &TokenStream) -> TokenStream {
        let Some(place) = self.place else {
            let runtime = self.runtime;
            return quote_spanned!(Span::mixed_site()=> #runtime::CallSite::#call);
        };
        // The compiler takes the place of a call from what all of its tokens have in common.
        let call: TokenStream = call
            .clone()
            .into_iter()
            .map(|tree| at(place, tree))
            .collect();
        let runtime = self.runtime.private_at(place);
        quote_spanned!(place=> #runtime::CallSite::#call)
    }

    /// An expression or statements that leave a guard in `into`.
    pub(crate) fn guard(&self, into: &TokenStream) -> TokenStream {
        let span = Span::mixed_site();
        if self.args.is_plain() {
            let enter = quote_spanned!(span=> SITE.enter());
            let guard = self.declare(&enter);
            return quote_spanned!(span=> let #into = #guard;);
        }
        let entry = self.entry();
        quote_spanned!(span=> #entry let #into = entry.start();)
    }

    /// Statements that leave an entry in the local `entry`.
    pub(crate) fn entry(&self) -> TokenStream {
        let span = Span::mixed_site();
        if self.args.is_plain() {
            let begin = quote_spanned!(span=> SITE.begin());
            let entry = self.declare(&begin);
            return quote_spanned!(span=> let entry = #entry;);
        }
        let site = quote_spanned!(span=> &SITE);
        let site = self.declare(&site);
        let begin = self.begin();
        let rest = self.complete(&begin);
        quote_spanned!(span=> let site = #site; #rest)
    }

    fn begin(&self) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = self.runtime;
        match &self.args.name {
            Some(Name::Const(name)) => quote_spanned! {span=> {
                let name: #runtime::Str = const { #name };
                site.begin_as(name)
            }},
            None if self.args.per_instance == Some(true) => {
                quote_spanned!(span=> site.begin_as(#runtime::type_name_of(&|| ())))
            }
            _ => quote_spanned!(span=> site.begin()),
        }
    }

    /// Statements that make an entry by `begin` and tell it where to log, and as which step.
    pub(crate) fn complete(&self, begin: &TokenStream) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = self.runtime;
        let Args {
            log,
            global_step,
            bypass,
            ..
        } = self.args;
        let begin = match bypass {
            None => begin.clone(),
            Some(condition) => {
                // Where the compiler points to say that a `bool` is expected.
                let place = span.located_at(condition.span());
                let runtime_there = runtime.private_at(place);
                let boolean = quote_spanned!(place=> #runtime_there::Bool);
                quote_spanned! {span=> {
                    let bypassed: #boolean = #condition;
                    if bypassed { #runtime::Entry::off() } else { #begin }
                }}
            }
        };
        let log = log.as_ref().map(|logger| {
            let give = if is_closure(logger) {
                quote_spanned!(span=> entry.log_with)
            } else {
                quote_spanned!(span=> entry.log)
            };
            quote_spanned!(span=> if entry.wants_log() { #give(#logger); })
        });
        let step = global_step
            .as_ref()
            .map(|step| quote_spanned!(span=> if entry.wants_step() { entry.step(#step); }));
        let mutable = (log.is_some() || step.is_some()).then(|| quote_spanned!(span=> mut));
        quote_spanned!(span=> let #mutable entry = #begin; #log #step)
    }
}

//! The code that every measured place begins with: its call site and what is known when it is
//! entered.
//!
//! Locals are hygienic, items are not: whatever a user wrote stays outside the block that declares
//! the items.

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
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
        let here = match &self.args.name {
            None if !self.is_per_instance() => Some(quote_spanned!(span=> enum Here {})),
            _ => None,
        };
        let site = if self.is_given() {
            "GivenSite"
        } else {
            "CallSite"
        };
        let site = Ident::new(site, span);
        quote_spanned! {span=> {
            #here
            static SITE: #runtime::#site = #runtime::#site::NEW;
            #last
        }}
    }

    /// Whether each call brings its name along, which only the body knows.
    fn is_given(&self) -> bool {
        matches!(self.args.name, Some(Name::Const(_))) || self.is_per_instance()
    }

    fn is_per_instance(&self) -> bool {
        self.args.name.is_none() && self.args.per_instance == Some(true)
    }

    /// A call of a method that sees where it is called from: `enter` or `begin`, each with what it
    /// finds the name by.
    fn call(&self, method: &str, more: &TokenStream) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = self.runtime;
        let (suffix, by) = match &self.args.name {
            Some(Name::Literal(text)) => ("_named", quote_spanned!(span=> #text)),
            Some(Name::Const(_)) => ("_named", quote_spanned!(span=> __profiler_name)),
            None if self.is_per_instance() => {
                ("", quote_spanned!(span=> #runtime::type_name_of(&|| ())))
            }
            None => ("", quote_spanned!(span=> #runtime::type_name::<Here>())),
        };
        // The compiler takes the place of a call from the method and its brackets.
        let place = self.place.unwrap_or(span);
        let method = Ident::new(&format!("{method}{suffix}"), place);
        let mut arguments = Group::new(Delimiter::Parenthesis, quote_spanned!(span=> #by #more));
        arguments.set_span(place);
        quote_spanned!(span=> #method #arguments)
    }

    fn begin_call(&self) -> TokenStream {
        let every = Literal::u32_unsuffixed(self.args.every.unwrap_or(1));
        self.call("begin", &quote_spanned!(Span::mixed_site()=> , #every))
    }

    /// An expression that is the guard, where nothing but the name is given.
    pub(crate) fn plain_guard(&self) -> Option<TokenStream> {
        self.args.is_plain().then(|| {
            let enter = self.call("enter", &TokenStream::new());
            self.declare(&quote_spanned!(Span::mixed_site()=> SITE.#enter))
        })
    }

    /// Statements that leave a guard in `into`.
    pub(crate) fn guard(&self, into: &TokenStream) -> TokenStream {
        let span = Span::mixed_site();
        if let Some(guard) = self.plain_guard() {
            return quote_spanned!(span=> let #into = #guard;);
        }
        let entry = self.entry();
        quote_spanned!(span=> #entry let #into = __profiler_entry.start();)
    }

    /// Statements that leave an entry in the local `__profiler_entry`.
    pub(crate) fn entry(&self) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = self.runtime;
        let begin = self.begin_call();
        match &self.args.name {
            // What the user wrote stays outside of the block with the items.
            Some(Name::Const(name)) => {
                let begin = self.declare(&quote_spanned!(span=> SITE.#begin));
                self.complete(&quote_spanned! {span=> {
                    let __profiler_name: #runtime::Str = const { #name };
                    #begin
                }})
            }
            _ => self.complete(&self.declare(&quote_spanned!(span=> SITE.#begin))),
        }
    }

    /// Statements that leave an entry in a local, and an expression that turns it into the scope of a
    /// future. Where nothing but the name is given, the expression alone: what is made by a call is made in place, and
    /// no entry takes room on the stack.
    pub(crate) fn entry_and_task(&self) -> (TokenStream, TokenStream) {
        if !self.args.is_plain() {
            return (self.entry(), self.task());
        }
        let task = self.call("task", &TokenStream::new());
        let task = self.declare(&quote_spanned!(Span::mixed_site()=> SITE.#task));
        (TokenStream::new(), task)
    }

    /// An expression that turns the entry into the scope of a future.
    pub(crate) fn task(&self) -> TokenStream {
        let span = Span::mixed_site();
        // Where the compiler points to say that the stream does not live as long as the future.
        let place = self.args.stream.as_ref().map(Spanned::span);
        quote_spanned!(place.map_or(span, |place| span.located_at(place))=> __profiler_entry.task())
    }

    /// Statements that make an entry by `begin` and hand it what the arguments give.
    pub(crate) fn complete(&self, begin: &TokenStream) -> TokenStream {
        let span = Span::mixed_site();
        let begin = self.unless_bypassed(begin);
        let mut given = self.device();
        given.extend(self.shapes());
        given.extend(self.logging());
        let mutable = (!given.is_empty()).then(|| quote_spanned!(span=> mut));
        quote_spanned!(span=> let #mutable __profiler_entry = #begin; #given)
    }

    /// `begin`, or an entry that is not measured.
    fn unless_bypassed(&self, begin: &TokenStream) -> TokenStream {
        let Some(condition) = &self.args.bypass else {
            return begin.clone();
        };
        let span = Span::mixed_site();
        let runtime = self.runtime;
        // Where the compiler points to say that a `bool` is expected.
        let place = span.located_at(condition.span());
        let runtime_there = runtime.private_at(place);
        let boolean = quote_spanned!(place=> #runtime_there::Bool);
        quote_spanned! {span=> {
            let __profiler_bypassed: #boolean = #condition;
            if __profiler_bypassed { #runtime::Entry::off() } else { #begin }
        }}
    }

    /// Statements that tell the entry what stream its GPU time is taken on, and how.
    fn device(&self) -> TokenStream {
        let span = Span::mixed_site();
        let stream = self.args.stream.as_ref().map(
            |stream| quote_spanned!(span=> if __profiler_entry.wants_stream() { __profiler_entry.stream(#stream); }),
        );
        let is_set = |flag| flag == Some(true);
        let sync =
            is_set(self.args.sync).then(|| quote_spanned!(span=> __profiler_entry.synchronous();));
        let captured =
            is_set(self.args.captured).then(|| quote_spanned!(span=> __profiler_entry.captured();));
        quote_spanned!(span=> #stream #sync #captured)
    }

    /// Statements that tell the entry what was given to the call; they borrow and move nothing.
    fn shapes(&self) -> Option<TokenStream> {
        let span = Span::mixed_site();
        let shapes = self.args.shapes.as_ref()?.iter().map(|shape| {
            // Where the compiler points to say that it is no shape.
            let place = span.located_at(shape.span());
            let lent = quote_spanned!(place=> &(#shape));
            quote_spanned!(span=> __profiler_entry.shape(#lent);)
        });
        Some(quote_spanned!(span=> if __profiler_entry.wants_shapes() { #(#shapes)* }))
    }

    /// Statements that tell the entry where to log, and as which step.
    fn logging(&self) -> TokenStream {
        let span = Span::mixed_site();
        let Args {
            log, global_step, ..
        } = self.args;
        let log = log.as_ref().map(|logger| {
            let give = if is_closure(logger) {
                quote_spanned!(span=> __profiler_entry.log_with)
            } else {
                quote_spanned!(span=> __profiler_entry.log)
            };
            quote_spanned!(span=> if __profiler_entry.wants_log() { #give(#logger); })
        });
        let step = global_step
            .as_ref()
            .map(|step| quote_spanned!(span=> if __profiler_entry.wants_step() { __profiler_entry.step(#step); }));
        quote_spanned!(span=> #log #step)
    }
}

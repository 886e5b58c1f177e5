//! The code that every measured place begins with: its call site and what is known when it is
//! entered.
//!
//! Locals are hygienic, items are not: whatever a user wrote stays outside the block that declares
//! the items.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use crate::args::{Args, Name};
use crate::values::is_closure;

/// The names that the expansion uses of the runtime.
pub(crate) struct Runtime(TokenStream);

impl Runtime {
    /// The runtime at the path of the `crate` argument, or at its own name.
    pub(crate) fn at(path: Option<&Path>) -> Self {
        let span = Span::mixed_site();
        Self(match path {
            Some(path) => quote_spanned!(span=> #path::__private),
            None => quote_spanned!(span=> ::profiler_runtime::__private),
        })
    }
}

impl ToTokens for Runtime {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.0.to_tokens(tokens);
    }
}

/// How a call site finds its name.
#[derive(Clone, Copy)]
pub(crate) enum Naming<'a> {
    /// Like the function in whose body it stands.
    Place,
    /// A literal.
    Text(&'a syn::LitStr),
}

/// A block that declares the call site and yields what `last` makes of `SITE`.
fn declare(naming: Naming, every: Option<u32>, runtime: &Runtime, last: &TokenStream) -> TokenStream {
    let span = Span::mixed_site();
    let at = NAME.get().unwrap_or(span);
    let which = std::env::var("WHICH").unwrap_or_default();
    let parens = if which.contains('p') { quote_spanned!(at=> ()) } else { quote_spanned!(span=> ()) };
    let rt = if which.contains('r') { Runtime(quote_spanned!(at=> ::profiler_runtime::__private)) } else { Runtime(runtime.0.clone()) };
    let cs = if which.contains('c') { quote_spanned!(at=> CallSite::of::<Here>) } else { quote_spanned!(span=> CallSite::of::<Here>) };

    let every = every.map(|every| {
        let every = proc_macro2::Literal::u32_unsuffixed(every);
        quote_spanned!(span=> .every(#every))
    });
    match naming {
        Naming::Place => quote_spanned! {span=> {
            enum Here {}
            static SITE: #runtime::CallSite = #rt::#cs #parens #every;
            #last
        }},
        Naming::Text(text) => quote_spanned! {span=> {
            static SITE: #runtime::CallSite = #runtime::CallSite::named(#text) #every;
            #last
        }},
    }
}

/// How an entry is made of the call site.
pub(crate) struct Entrance<'a> {
    pub(crate) args: &'a Args,
    pub(crate) runtime: &'a Runtime,
}

impl Entrance<'_> {
    fn naming(&self) -> Naming<'_> {
        match &self.args.name {
            Some(Name::Literal(text)) => Naming::Text(text),
            _ => Naming::Place,
        }
    }

    /// Whether the call site alone knows everything.
    fn is_plain(&self) -> bool {
        let args = self.args;
        !matches!(args.name, Some(Name::Const(_)))
            && args.per_instance != Some(true)
            && args.log.is_none()
            && args.global_step.is_none()
            && args.bypass.is_none()
    }

    /// An expression or statements that leave a guard in `into`.
    pub(crate) fn guard(&self, into: &TokenStream) -> TokenStream {
        let span = Span::mixed_site();
        if self.is_plain() {
            let enter = quote_spanned!(span=> SITE.enter());
            let guard = declare(self.naming(), self.args.every, self.runtime, &enter);
            return quote_spanned!(span=> let #into = #guard;);
        }
        let entry = self.entry();
        quote_spanned!(span=> #entry let #into = entry.start();)
    }

    /// Statements that leave an entry in the local `entry`.
    pub(crate) fn entry(&self) -> TokenStream {
        let span = Span::mixed_site();
        if self.is_plain() {
            let begin = quote_spanned!(span=> SITE.begin());
            let entry = declare(self.naming(), self.args.every, self.runtime, &begin);
            return quote_spanned!(span=> let entry = #entry;);
        }
        let site = quote_spanned!(span=> &SITE);
        let site = declare(self.naming(), self.args.every, self.runtime, &site);
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
        let Args { log, global_step, bypass, .. } = self.args;
        let begin = match bypass {
            None => begin.clone(),
            Some(condition) => {
                let boolean = Span::mixed_site().located_at(condition.span());
                let boolean = quote_spanned!(boolean=> Bool);
                quote_spanned! {span=> {
                    let bypassed: #runtime::#boolean = #condition;
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
        let step = global_step.as_ref().map(
            |step| quote_spanned!(span=> if entry.wants_step() { entry.step(#step); }),
        );
        let mutable =
            (log.is_some() || step.is_some()).then(|| quote_spanned!(span=> mut));
        quote_spanned!(span=> let #mutable entry = #begin; #log #step)
    }
}

thread_local!{ pub(crate) static NAME: std::cell::Cell<Option<Span>> = const { std::cell::Cell::new(None) }; }

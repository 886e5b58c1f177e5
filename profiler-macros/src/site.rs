//! Generates the code that every measured function and section begins with: the declaration of its
//! call site, and the code that opens a scope on it.
//!
//! Local variables are hygienic, items are not. The user's code therefore stays outside of the
//! block that declares the items.

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use crate::args::{Args, Name};
use crate::values::{is_closure, is_place};

/// The path of the runtime crate. Its tokens are the path of the runtime's private module, which
/// the expansion uses.
///
/// The paths are single tokens: to append a stream to another is a call of the compiler, to append a
/// token is not.
pub(crate) struct Runtime {
    root: Vec<TokenTree>,
    private: Vec<TokenTree>,
    /// The user wrote the path.
    is_explicit: bool,
}

impl Runtime {
    /// Uses the path of the `crate` argument, or else the name of the crate.
    pub(crate) fn at(path: Option<&Path>) -> Self {
        let root: Vec<TokenTree> = match path {
            Some(path) => path.to_token_stream().into_iter().collect(),
            None => segment("profiler_runtime").into(),
        };
        let private = root.iter().cloned().chain(segment("__private"));
        Self {
            private: private.collect(),
            root,
            is_explicit: path.is_some(),
        }
    }

    /// Returns the path of the runtime's private module with the location of `place`. A path that
    /// the user wrote is still resolved where it was written.
    pub(crate) fn private_at(&self, place: Span) -> TokenStream {
        let moved = |tree: TokenTree| {
            let span = if self.is_explicit {
                place.resolved_at(tree.span())
            } else {
                place
            };
            at(span, tree)
        };
        let root: TokenStream = self.root.iter().cloned().map(moved).collect();
        quote_spanned!(place=> #root::__private)
    }
}

impl ToTokens for Runtime {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.private.iter().cloned());
    }
}

/// Returns the tokens of `::name`.
fn segment(name: &str) -> [TokenTree; 3] {
    let span = Span::mixed_site();
    let colon = |spacing| at(span, Punct::new(':', spacing).into());
    [
        colon(Spacing::Joint),
        colon(Spacing::Alone),
        Ident::new(name, span).into(),
    ]
}

fn at(span: Span, mut tree: TokenTree) -> TokenTree {
    tree.set_span(span);
    tree
}

/// Returns the tokens of `enum Here {}`, an item whose type name tells the path of the function.
fn here(span: Span) -> [TokenTree; 3] {
    let mut braces = Group::new(Delimiter::Brace, TokenStream::new());
    braces.set_span(span);
    [
        Ident::new("enum", span).into(),
        Ident::new("Here", span).into(),
        braces.into(),
    ]
}

/// Generates the code of one call site.
pub(crate) struct SiteCode<'a> {
    pub(crate) args: &'a Args,
    pub(crate) runtime: &'a Runtime,
    /// The source location of the call site, if not that of the macro call. All functions of a
    /// measured block would otherwise have the location of the block's attribute.
    pub(crate) location: Option<Span>,
}

impl SiteCode<'_> {
    /// Returns a block that declares the call site and evaluates to a call of one of its methods.
    fn declare(&self, call: &[TokenTree; 2]) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = self.runtime;
        let here = match &self.args.name {
            None if !self.is_per_instance() => here(span).into(),
            _ => Vec::new(),
        };
        let site = if self.has_dynamic_name() {
            "MultiNameSite"
        } else {
            "CallSite"
        };
        let site = Ident::new(site, span);
        quote_spanned! {span=> {
            #(#here)*
            static SITE: #runtime::#site = #runtime::#site::NEW;
            SITE.#(#call)*
        }}
    }

    /// Returns `true` if each call passes the name, because it may depend on generic parameters,
    /// which a `static` cannot use.
    fn has_dynamic_name(&self) -> bool {
        matches!(self.args.name, Some(Name::Const(_))) || self.is_per_instance()
    }

    fn is_per_instance(&self) -> bool {
        self.args.name.is_none() && self.args.per_instance == Some(true)
    }

    /// Returns the call of a method of the call site: `enter`, `begin` or `task`, with the argument
    /// that determines the name. The method is `#[track_caller]`.
    fn method_call(&self, method: &str, more: &TokenStream) -> [TokenTree; 2] {
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
        // The compiler takes the location of a call from the spans of the method and its
        // parentheses.
        let location = self.location.unwrap_or(span);
        let method = Ident::new(&format!("{method}{suffix}"), location);
        let mut arguments = Group::new(Delimiter::Parenthesis, quote_spanned!(span=> #by #more));
        arguments.set_span(location);
        [method.into(), arguments.into()]
    }

    fn begin_call(&self) -> [TokenTree; 2] {
        let every = Literal::u32_unsuffixed(self.args.log_every.unwrap_or(1));
        self.method_call("begin", &quote_spanned!(Span::mixed_site()=> , #every))
    }

    /// Returns an expression that creates the guard, if the arguments only give the name.
    pub(crate) fn plain_guard(&self) -> Option<TokenStream> {
        self.args.is_name_only().then(|| {
            let enter = self.method_call("enter", &TokenStream::new());
            self.declare(&enter)
        })
    }

    /// Returns statements that bind `variable` to a guard.
    pub(crate) fn guard(&self, variable: &TokenStream) -> TokenStream {
        let span = Span::mixed_site();
        if let Some(guard) = self.plain_guard() {
            return quote_spanned!(span=> let #variable = #guard;);
        }
        let builder = self.builder();
        quote_spanned!(span=> #builder let #variable = __profiler_builder.start();)
    }

    /// Returns statements that bind `__profiler_builder` to a scope builder.
    pub(crate) fn builder(&self) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = self.runtime;
        let begin = self.begin_call();
        match &self.args.name {
            // The user's expression stays outside of the block that declares the items.
            Some(Name::Const(name)) => {
                let begin = self.declare(&begin);
                self.with_arguments(&quote_spanned! {span=> {
                    let __profiler_name: #runtime::Str = const { #name };
                    #begin
                }})
            }
            _ => self.with_arguments(&self.declare(&begin)),
        }
    }

    /// Returns statements that create a scope builder, and an expression that converts it to the
    /// task of a future. If the arguments only give the name, returns no statements, and the
    /// expression creates the task directly: the task is built in place, and no builder takes stack
    /// space in the future.
    pub(crate) fn builder_and_task(&self) -> (TokenStream, TokenStream) {
        if !self.args.is_name_only() {
            return (self.builder(), self.task());
        }
        let task = self.method_call("task", &TokenStream::new());
        let task = self.declare(&task);
        (TokenStream::new(), task)
    }

    /// Returns an expression that converts the builder to the task of a future.
    pub(crate) fn task(&self) -> TokenStream {
        let span = Span::mixed_site();
        // If the stream does not outlive the future, the compiler points to this call.
        let place = self.args.stream.as_ref().map(Spanned::span);
        quote_spanned!(place.map_or(span, |place| span.located_at(place))=> __profiler_builder.task())
    }

    /// Returns statements that bind `__profiler_builder` to `begin` and pass the arguments to it.
    pub(crate) fn with_arguments(&self, begin: &TokenStream) -> TokenStream {
        let span = Span::mixed_site();
        let begin = self.unless_bypassed(begin);
        let mut setters = self.gpu_setters();
        setters.extend(self.parent_setter());
        setters.extend(self.shape_setters());
        setters.extend(self.log_setters());
        let mutable = (!setters.is_empty()).then(|| quote_spanned!(span=> mut));
        quote_spanned!(span=> let #mutable __profiler_builder = #begin; #setters)
    }

    /// Returns an expression that evaluates to `begin`, or to the builder of a scope that is not
    /// measured if the `bypass` condition is true.
    fn unless_bypassed(&self, begin: &TokenStream) -> TokenStream {
        let Some(condition) = &self.args.bypass else {
            return begin.clone();
        };
        let span = Span::mixed_site();
        let runtime = self.runtime;
        // If the condition is no `bool`, the compiler points to this type.
        let place = span.located_at(condition.span());
        let runtime_there = runtime.private_at(place);
        let boolean = quote_spanned!(place=> #runtime_there::Bool);
        quote_spanned! {span=> {
            let __profiler_bypassed: #boolean = #condition;
            if __profiler_bypassed { #runtime::ScopeBuilder::off() } else { #begin }
        }}
    }

    /// Returns statements that set the stream of the builder and how its GPU time is measured.
    fn gpu_setters(&self) -> TokenStream {
        let span = Span::mixed_site();
        let stream = self.args.stream.as_ref().map(
            |stream| quote_spanned!(span=> if __profiler_builder.wants_stream() { __profiler_builder.stream(#stream); }),
        );
        let is_set = |flag| flag == Some(true);
        let sync = is_set(self.args.sync)
            .then(|| quote_spanned!(span=> __profiler_builder.synchronous();));
        let cuda_graph = is_set(self.args.cuda_graph)
            .then(|| quote_spanned!(span=> __profiler_builder.cuda_graph();));
        quote_spanned!(span=> #stream #sync #cuda_graph)
    }

    /// Returns a statement that sets the parent of the builder. It only borrows the handle.
    fn parent_setter(&self) -> Option<TokenStream> {
        let span = Span::mixed_site();
        let parent = self.args.parent.as_ref()?;
        // If the expression is no handle, the compiler points to this borrow.
        let place = span.located_at(parent.span());
        let borrowed = quote_spanned!(place=> &(#parent));
        Some(
            quote_spanned!(span=> if __profiler_builder.wants_parent() { __profiler_builder.parent(#borrowed); }),
        )
    }

    /// Returns statements that pass the shapes of the call's inputs to the builder. They only
    /// borrow the inputs.
    fn shape_setters(&self) -> Option<TokenStream> {
        let span = Span::mixed_site();
        let shapes = self.args.shapes.as_ref()?.iter().map(|shape| {
            // If the expression has no shape, the compiler points to this borrow.
            let place = span.located_at(shape.span());
            let borrowed = quote_spanned!(place=> &(#shape));
            quote_spanned!(span=> __profiler_builder.shape(#borrowed);)
        });
        Some(quote_spanned!(span=> if __profiler_builder.wants_shapes() { #(#shapes)* }))
    }

    /// Returns statements that set the logger and the step of the builder.
    fn log_setters(&self) -> TokenStream {
        let span = Span::mixed_site();
        let Args {
            log, global_step, ..
        } = self.args;
        let log = log.as_ref().map(|logger| {
            // If the value is no logger, the compiler points to the call or to its argument.
            let place = span.located_at(logger.span());
            let set = if is_closure(logger) {
                quote_spanned!(place=> __profiler_builder.log_with(#logger))
            } else if is_place(logger) {
                quote_spanned!(place=> __profiler_builder.log_in_place(&#logger))
            } else {
                quote_spanned!(place=> __profiler_builder.log(#logger))
            };
            quote_spanned!(span=> if __profiler_builder.wants_log() { #set; })
        });
        let step = global_step
            .as_ref()
            .map(|step| quote_spanned!(span=> if __profiler_builder.wants_step() { __profiler_builder.step(#step); }));
        quote_spanned!(span=> #log #step)
    }
}

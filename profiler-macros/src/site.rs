//! Generates the code that every measured function and section begins with: the declaration of its
//! call site, the code that opens a scope on it, and what keeps that apart from the user's.
//!
//! Local variables are hygienic, items are not. The user's code therefore stays outside of the
//! block that declares the items.

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use crate::args::Args;
use crate::values::{Name, is_borrowed_from_self, is_closure, is_place};

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
    let colons = [(':', Spacing::Joint), (':', Spacing::Alone)];
    let [first, second] = colons.map(|(colon, spacing)| mark(colon, spacing));
    [first, second, word(name)]
}

fn word(text: &str) -> TokenTree {
    Ident::new(text, Span::mixed_site()).into()
}

fn mark(mark: char, spacing: Spacing) -> TokenTree {
    at(Span::mixed_site(), Punct::new(mark, spacing).into())
}

fn braces(inside: TokenStream) -> Group {
    let mut braces = Group::new(Delimiter::Brace, inside);
    braces.set_span(Span::mixed_site());
    braces
}

fn at(span: Span, mut tree: TokenTree) -> TokenTree {
    tree.set_span(span);
    tree
}

/// How the builder is used when it has its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuilderUse {
    /// `start` borrows it: moved, it would be copied first.
    Start,
    /// `task` consumes it.
    Task,
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
    ///
    /// It is made token by token, because `quote` copies them several times, which unoptimized code does slowly.
    fn declare(&self, call: impl IntoIterator<Item = TokenTree>) -> Group {
        let (site, initial) = if self.has_dynamic_name() {
            ("MultiNameSite", "NEW_MULTI_NAME_SITE")
        } else {
            ("CallSite", "NEW_SITE")
        };
        let private = || self.runtime.private.iter().cloned();
        let mut tokens = Vec::with_capacity(36);
        if self.is_here_named() {
            tokens.extend([
                word("enum"),
                word("Here"),
                braces(TokenStream::new()).into(),
            ]);
        }
        tokens.extend([word("static"), word("SITE"), mark(':', Spacing::Alone)]);
        tokens.extend(private().chain(segment(site)));
        tokens.push(mark('=', Spacing::Alone));
        tokens.extend(private().chain(segment(initial)));
        tokens.push(mark(';', Spacing::Alone));
        tokens.extend([word("SITE"), mark('.', Spacing::Alone)]);
        tokens.extend(call);
        braces(tokens.into_iter().collect())
    }

    /// Returns `true` if the type `Here` tells the name.
    fn is_here_named(&self) -> bool {
        self.args.name.is_none() && !self.is_per_instance()
    }

    /// Returns `true` if each call passes the name, because it may depend on generic parameters,
    /// which a `static` cannot use.
    fn has_dynamic_name(&self) -> bool {
        matches!(self.args.name, Some(Name::Const(_))) || self.is_per_instance()
    }

    fn is_per_instance(&self) -> bool {
        self.args.name.is_none() && self.args.per_instance == Some(true)
    }

    /// Returns the call of a method of the call site: `enter`, `begin`, `begin_on_stream` or `task`, with what determines the name, and
    /// another argument. The method is `#[track_caller]`.
    fn method_call(&self, method: &str, last: Option<Literal>) -> Vec<TokenTree> {
        let span = Span::mixed_site();
        let runtime = self.runtime;
        // The compiler takes the location of a call from the spans of the method and its
        // parentheses.
        let location = self.location.unwrap_or(span);
        let name = match &self.args.name {
            Some(Name::Literal(text)) => quote_spanned!(span=> #text),
            Some(Name::Const(_)) => quote_spanned!(span=> __profiler_name),
            None if self.is_per_instance() => {
                quote_spanned!(span=> #runtime::type_name_of(&|| ()))
            }
            None => TokenStream::new(),
        };
        let mut call = Vec::with_capacity(7);
        if self.args.name.is_some() {
            call.push(Ident::new(&format!("{method}_named"), location).into());
        } else {
            call.push(Ident::new(method, location).into());
        }
        if self.is_here_named() {
            let [colon, other, here] = segment("Here");
            call.extend([colon, other, mark('<', Spacing::Alone), here]);
            call.push(mark('>', Spacing::Alone));
        }
        let arguments = match last {
            None => name,
            Some(last) if name.is_empty() => TokenTree::from(last).into(),
            Some(last) => quote_spanned!(span=> #name, #last),
        };
        let mut arguments = Group::new(Delimiter::Parenthesis, arguments);
        arguments.set_span(location);
        call.push(arguments.into());
        call
    }

    fn begin_call(&self, then: BuilderUse) -> Vec<TokenTree> {
        // A builder of its own, with a `start` alone.
        if then == BuilderUse::Start && self.args.is_name_and_stream() {
            return self.method_call("begin_on_stream", None);
        }
        let every = Literal::u32_unsuffixed(self.args.log_every.unwrap_or(1));
        self.method_call("begin", Some(every))
    }

    /// Returns an expression that creates the guard, if the arguments only give the name.
    pub(crate) fn plain_guard(&self) -> Option<Group> {
        let is_plain = self.args.is_name_only();
        is_plain.then(|| self.declare(self.method_call("enter", None)))
    }

    /// Returns statements that bind `__profiler_scope` to a guard.
    pub(crate) fn guard(&self) -> TokenStream {
        let span = Span::mixed_site();
        if let Some(guard) = self.plain_guard() {
            let binding = [
                word("let"),
                word("__profiler_scope"),
                mark('=', Spacing::Alone),
            ];
            let guard = [guard.into(), mark(';', Spacing::Alone)];
            return binding.into_iter().chain(guard).collect();
        }
        let builder = self.builder(BuilderUse::Start);
        quote_spanned!(span=> let __profiler_scope = { #builder __profiler_builder.start() };)
    }

    /// Returns statements that bind `__profiler_builder` to a scope builder.
    pub(crate) fn builder(&self, then: BuilderUse) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = self.runtime;
        let begin = self.begin_call(then);
        match &self.args.name {
            // The user's expression stays outside of the block that declares the items.
            Some(Name::Const(name)) => {
                let begin = self.declare(begin);
                let begin = quote_spanned! {span=> {
                    let __profiler_name: #runtime::Str = const { #name };
                    #begin
                }};
                self.with_arguments(&begin, then)
            }
            _ => self.with_arguments(&self.declare(begin).into_token_stream(), then),
        }
    }

    /// Returns statements that create a scope builder, and an expression that converts it to the
    /// task of a future. If the arguments only give the name, returns no statements, and the
    /// expression creates the task directly: the task is built in place, and no builder takes stack
    /// space in the future.
    pub(crate) fn builder_and_task(&self) -> (TokenStream, TokenStream) {
        if !self.args.is_name_only() {
            return (self.builder(BuilderUse::Task), self.task());
        }
        let task = self.declare(self.method_call("task", None));
        (TokenStream::new(), task.into_token_stream())
    }

    /// Returns an expression that converts the builder to the task of a future.
    pub(crate) fn task(&self) -> TokenStream {
        let span = Span::mixed_site();
        // If the stream does not outlive the future, the compiler points to this call.
        let place = self.args.stream.as_ref().map(Spanned::span);
        quote_spanned!(place.map_or(span, |place| span.located_at(place))=> __profiler_builder.task())
    }

    /// Returns statements that bind `__profiler_builder` to `begin` and pass the arguments to it.
    pub(crate) fn with_arguments(&self, begin: &TokenStream, then: BuilderUse) -> TokenStream {
        let span = Span::mixed_site();
        let begin = self.unless_bypassed(begin);
        let mut setters = self.gpu_setters();
        setters.extend(self.parent_setter());
        setters.extend(self.shape_setters());
        setters.extend(self.log_setters());
        let is_mutable = then == BuilderUse::Start || !setters.is_empty();
        let mutable = is_mutable.then(|| quote_spanned!(span=> mut));
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
            } else if is_borrowed_from_self(logger) {
                quote_spanned!(place=> __profiler_builder.log_in_place(#logger))
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

/// Returns the statements in a block of their own, with the user's braces.
///
/// It begins with an item: else the compiler would report braces around a single expression as unnecessary, and `clippy` items
/// after statements.
pub(crate) fn own_block(statements: &TokenStream, braces: Span) -> Group {
    let inside = quote_spanned!(Span::mixed_site()=> use {}; #statements);
    let mut block = Group::new(Delimiter::Brace, inside);
    block.set_span(braces);
    block
}

/// Returns an empty item that separates a generated statement from the user's, if there are items
/// among the user's.
///
/// Else `clippy::items_after_statements` would report the user's items. The lint stops at the first
/// item that comes from a macro expansion.
pub(crate) fn before_items(statements: &[TokenTree]) -> Option<TokenStream> {
    let mut may_begin = true;
    let has_items = statements.iter().any(|tree| {
        let here = may_begin;
        // An item begins after a block, an attribute, a qualifier or a `;`, and so does each statement. The words of
        // expressions mostly follow another mark: to make a string of each of them would take longer.
        may_begin = match tree {
            TokenTree::Punct(mark) => mark.as_char() == ';',
            _ => true,
        };
        match tree {
            TokenTree::Ident(word) => here && begins_item(&word.to_string()),
            _ => false,
        }
    });
    has_items.then(|| quote_spanned!(Span::mixed_site()=> use {};))
}

/// Returns `true` for the keywords that items begin with.
// By their lengths first: compilers run macros without optimization.
fn begins_item(word: &str) -> bool {
    match word.len() {
        2 => word == "fn",
        3 => word == "mod" || word == "use",
        4 => word == "enum" || word == "impl" || word == "type",
        5 => word == "const" || word == "trait" || word == "union",
        6 => word == "extern" || word == "static" || word == "struct",
        _ => false,
    }
}

//! The expansion of functions that are not `async` but return a future. The future is measured,
//! from its first poll to its end, and its creation is not.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::punctuated::Punctuated;
use syn::{GenericArgument, PathArguments, PathSegment, Token, Type, TypeInfer, TypeParamBound};

use crate::attributes;
use crate::item::{self, Head};
use crate::parameters;
use crate::site::{BuilderUse, SiteCode, before_items, own_block};
use crate::tail::{self, AsyncBlock, Exit, Tail};

/// The form in which a function returns its future.
enum FutureForm {
    /// A boxed `dyn Future`.
    Erased,
    /// A type by the name that the crate `futures` gives a pinned `dyn Future`. With the lifetime of that alias, it is
    /// known to be one. Else it may as well be a type of the program.
    Alias { is_known: bool },
    /// `Pin<Box<impl Future>>`.
    Pinned,
    /// `Box<impl Future>`.
    Boxed,
    /// `impl Future`.
    Bare,
}

/// A future that a function returns.
pub(crate) struct ReturnedFuture {
    form: FutureForm,
    /// The return type.
    tokens: TokenStream,
}

/// Returns the future that a function returns, if its return type names a future.
pub(crate) fn returned(signature: &[TokenTree], head: &Head) -> Option<ReturnedFuture> {
    let tokens = &signature[item::return_type(signature, head)];
    // Parsing a type is slow, so this check comes first: most functions return no future.
    let may_name_future = tokens.iter().any(|tree| match tree {
        TokenTree::Ident(word) => {
            ["impl", "Box", "BoxFuture", "LocalBoxFuture"].contains(&word.to_string().as_str())
        }
        TokenTree::Group(group) => group.delimiter() == Delimiter::None,
        _ => false,
    });
    if !may_name_future {
        return None;
    }
    let tokens: TokenStream = tokens.iter().cloned().collect();
    let parsed: Type = syn::parse2(tokens.clone()).ok()?;
    Some(ReturnedFuture {
        form: form(&parsed)?,
        tokens,
    })
}

fn form(returned: &Type) -> Option<FutureForm> {
    match returned {
        Type::Group(group) => form(&group.elem),
        Type::Paren(parentheses) => form(&parentheses.elem),
        Type::ImplTrait(opaque) => is_future(&opaque.bounds).then_some(FutureForm::Bare),
        Type::Path(named) => {
            let last = named.path.segments.last()?;
            match last.ident.to_string().as_str() {
                "BoxFuture" | "LocalBoxFuture" => {
                    let is_known = matches!(
                        &last.arguments,
                        PathArguments::AngleBracketed(arguments)
                            if matches!(arguments.args.first(), Some(GenericArgument::Lifetime(_)))
                    );
                    Some(FutureForm::Alias { is_known })
                }
                "Pin" => boxed_future(argument(last)?, FutureForm::Pinned),
                _ => boxed_future(returned, FutureForm::Boxed),
            }
        }
        _ => None,
    }
}

/// Returns the form of `Box<dyn Future>`, and `known` for `Box<impl Future>`.
fn boxed_future(boxed: &Type, known: FutureForm) -> Option<FutureForm> {
    let Type::Path(named) = boxed else {
        return None;
    };
    let last = named.path.segments.last()?;
    let inside = Some(last)
        .filter(|last| last.ident == "Box")
        .and_then(argument)?;
    match inside {
        Type::TraitObject(object) => is_future(&object.bounds).then_some(FutureForm::Erased),
        Type::ImplTrait(opaque) => is_future(&opaque.bounds).then_some(known),
        _ => None,
    }
}

/// Returns the first argument of a segment, if it is a type.
fn argument(segment: &PathSegment) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(only)) => Some(only),
        _ => None,
    }
}

/// Returns `true` if all bounds hold for a measured future if they hold for the future inside: `Future` itself, auto traits and
/// lifetimes.
fn is_future(bounds: &Punctuated<TypeParamBound, Token![+]>) -> bool {
    const AUTO_TRAITS: &[&str] = &["Send", "Sync", "Unpin", "UnwindSafe", "RefUnwindSafe"];
    let mut found = false;
    for bound in bounds {
        let TypeParamBound::Trait(named) = bound else {
            continue;
        };
        let Some(last) = named.path.segments.last() else {
            return false;
        };
        if last.ident == "Future" && has_output(&last.arguments) {
            found = true;
        } else if !AUTO_TRAITS.contains(&&*last.ident.to_string()) {
            return false;
        }
    }
    found
}

/// Returns `true` if the arguments of `Future` fit the trait of the standard library: `Output = …`, or none.
fn has_output(arguments: &PathArguments) -> bool {
    match arguments {
        PathArguments::None => true,
        PathArguments::AngleBracketed(arguments) => matches!(
            arguments.args.first(),
            Some(GenericArgument::AssocType(bound)) if bound.ident == "Output"
        ),
        PathArguments::Parenthesized(_) => false,
    }
}

impl ReturnedFuture {
    /// Returns the body of the measured function. Changes the parameters that the body binds again.
    pub(crate) fn measured(
        &self,
        site: &SiteCode,
        (head, signature): (&Head, &mut [TokenTree]),
        body: TokenStream,
        braces: Span,
    ) -> TokenStream {
        let statements: Vec<TokenTree> = body.into_iter().collect();
        let tail = Tail::of(&statements);
        // `return` in an `async` block leaves the block, not the function.
        let outside = match &tail {
            Some(tail) if tail.block.is_some() => &statements[..tail.start],
            _ => &statements,
        };
        match &tail {
            Some(tail) if Exit::of(outside) == Exit::AtEnd => in_place(site, tail, &statements),
            _ => {
                // A closure has no caller. The type of an erased future is the same whether it is measured or not.
                let is_erased = matches!(self.form, FutureForm::Erased | FutureForm::Alias { .. });
                let may_return =
                    is_erased && attributes::track_caller(signature, head.attributes_end);
                let signature = (head, signature);
                let written = self.nameable();
                let value = value(site, signature, &statements, braces, written, may_return);
                self.wrapped(site, tail.as_ref(), &value, braces)
            }
        }
    }

    /// The general form: evaluates the body to a future of the return type, and wraps that in the
    /// measured future.
    fn wrapped(
        &self,
        site: &SiteCode,
        tail: Option<&Tail>,
        value: &TokenStream,
        braces: Span,
    ) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = site.runtime;
        let kind = self
            .nameable()
            .map(|written| quote_spanned!(span=> : #written));
        // If the body is no future, the compiler points to this variable.
        let future = quote_spanned!(span.located_at(braces)=> __profiler_future);
        let block = tail.and_then(|tail| Some((tail, tail.block?)));
        let (builder, task) = match block {
            Some(_) => site.builder_and_task(),
            None => (site.builder(BuilderUse::Task), site.task()),
        };
        let creation = self.creation(site);
        let first = quote_spanned!(span=> #creation #builder let #future #kind = #value;);
        if let Some((tail, block)) = block {
            let task = task_for_a_block(&task);
            let block = measured_block(site, block, &future);
            let value = match tail.boxed {
                Some(_) => quote_spanned!(span=> #runtime::Box::pin(#block)),
                None => block,
            };
            return quote_spanned!(span=> #first #task #value);
        }
        let measured = match self.form {
            FutureForm::Erased => {
                quote_spanned!(span=> #runtime::BoxedFuture::measured(#future, #task))
            }
            FutureForm::Alias { .. } => {
                quote_spanned!(span=> { use #runtime::NotBoxed as _; #runtime::Returned(#future).measured(#task) })
            }
            FutureForm::Pinned => quote_spanned! {span=>
                #runtime::Box::pin(#runtime::measure(#task, #future))
            },
            FutureForm::Boxed => quote_spanned! {span=>
                #runtime::Box::new(#runtime::measure(#task, *#future))
            },
            FutureForm::Bare => quote_spanned!(span=> #runtime::measure(#task, #future)),
        };
        quote_spanned!(span=> #first #measured)
    }

    /// Returns statements that measure how long the function itself takes if what it returns turns out to be no boxed future.
    fn creation(&self, site: &SiteCode) -> Option<TokenStream> {
        let FutureForm::Alias { is_known: false } = self.form else {
            return None;
        };
        // Which type is meant by an `impl Trait` in it cannot be told beforehand.
        if mentions_impl(&self.tokens) {
            return None;
        }
        let span = Span::mixed_site();
        let (runtime, written, mut args) = (site.runtime, &self.tokens, site.args.clone());
        let bypass = args
            .bypass
            .map(|bypass| quote_spanned!(span=> || (#bypass)));
        args.bypass = syn::parse2(quote_spanned! {span=>
            { use #runtime::NotBoxed as _; #runtime::Returned::<#written>::IS_BOXED } #bypass
        })
        .ok();
        let guard = SiteCode {
            args: &args,
            ..*site
        };
        Some(guard.guard())
    }

    /// Returns the return type as it may be written in a body.
    fn nameable(&self) -> Option<TokenStream> {
        nameable(self.tokens.clone())
    }
}

/// Returns an expression that evaluates the body of a function to its value. In it, a `return` does not leave the function, except
/// if `may_return` is `true` and it may be that of a macro or closure.
fn value(
    site: &SiteCode,
    (head, signature): (&Head, &mut [TokenTree]),
    statements: &[TokenTree],
    braces: Span,
    written: Option<TokenStream>,
    may_return: bool,
) -> TokenStream {
    let span = Span::mixed_site();
    let runtime = site.runtime;
    let exit = match Exit::of(statements) {
        Exit::Unclear if may_return => Exit::AtEnd,
        exit => exit,
    };
    let label = quote_spanned!(span=> '__profiler_body);
    let own = match exit {
        Exit::Return => own_block(&tail::with_breaks(statements, &label), braces),
        _ => own_block(&statements.iter().cloned().collect(), braces),
    };
    // The compiler warns of unreachable code after a body that never ends, unless there is another way.
    let evaluated =
        |body: TokenStream| quote_spanned!(span=> if true { #body } else { #runtime::never() });
    match exit {
        Exit::AtEnd => evaluated(own.into_token_stream()),
        Exit::Return => evaluated(quote_spanned!(span=> #label: { #own })),
        Exit::Unclear => {
            // The closure is an argument of `call_once`, so that the compiler infers `FnOnce` for it: only such a closure
            // may return a future that borrows from what the closure captured.
            let moves = parameters::moved(
                site.args,
                head,
                signature,
                &statements.iter().cloned().collect(),
            );
            let returns = written.map(|written| quote_spanned!(span=> -> #written));
            quote_spanned!(span=> #runtime::call_once(move || #returns { #moves #own }))
        }
    }
}

/// Returns a type as it may be written in a body, with `_` for each `impl Trait`. Returns `None` if
/// only `_` is left, or if an `impl` could not be replaced.
pub(crate) fn nameable(written: TokenStream) -> Option<TokenStream> {
    if !mentions_impl(&written) {
        return Some(written);
    }
    let mut parsed: Type = syn::parse2(written).ok()?;
    infer_impl(&mut parsed);
    let inferred = parsed.to_token_stream();
    let known = !matches!(parsed, Type::Infer(_)) && !mentions_impl(&inferred);
    known.then_some(inferred)
}

/// Returns a body that creates its future in its last expression, with the future wrapped in that
/// expression.
///
/// An `async` block stays an `async` block, because other attributes look for it:
/// `tracing::instrument` enters its span at each poll of such a block, but only once around any
/// other expression.
fn in_place(site: &SiteCode, tail: &Tail, statements: &[TokenTree]) -> TokenStream {
    let span = Span::mixed_site();
    let (before, expression) = statements.split_at(tail.start);
    let mut tokens = TokenStream::new();
    let (builder, task) = match tail.block {
        Some(_) => site.builder_and_task(),
        None => (site.builder(BuilderUse::Task), site.task()),
    };
    tokens.extend(builder);
    tokens.extend(before_items(before));
    tokens.extend(before.iter().cloned());
    let future: TokenStream = match &tail.boxed {
        Some(parentheses) => parentheses.stream(),
        None => expression.iter().cloned().collect(),
    };
    let measured = if let Some(block) = tail.block {
        tokens.extend(task_for_a_block(&task));
        measured_block(site, block, &future)
    } else {
        let runtime = site.runtime;
        quote_spanned!(span=> #runtime::measure(#task, #future))
    };
    let Some(parentheses) = &tail.boxed else {
        tokens.extend(measured);
        return tokens;
    };
    let mut group = Group::new(Delimiter::Parenthesis, measured);
    group.set_span(parentheses.span());
    tokens.extend(expression[..expression.len() - 1].iter().cloned());
    tokens.extend([TokenTree::Group(group)]);
    tokens
}

/// Returns a statement that creates the task of a future before the `async` block that polls it.
fn task_for_a_block(task: &TokenStream) -> TokenStream {
    quote_spanned!(Span::mixed_site()=> let __profiler_task = #task;)
}

/// Returns an `async` block that measures a future. Task and future are temporaries of the block,
/// which drops them in reverse order: the task is dropped last, so the measurement includes the
/// time that dropping the future takes.
fn measured_block(site: &SiteCode, block: AsyncBlock, future: &TokenStream) -> TokenStream {
    let span = Span::mixed_site();
    let runtime = site.runtime;
    let keyword = block.moves.then(|| quote_spanned!(span=> move));
    let inside = quote_spanned! {span=>
        #runtime::measure_in_place(&mut { __profiler_task }, #runtime::pin!(#future)).await
    };
    let mut braces = Group::new(Delimiter::Brace, inside);
    braces.set_span(block.span);
    quote_spanned!(span=> async #keyword #braces)
}

/// Returns `true` if a type contains the word `impl`.
pub(crate) fn mentions_impl(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|tree| match tree {
        TokenTree::Ident(word) => word == "impl",
        TokenTree::Group(group) => mentions_impl(&group.stream()),
        _ => false,
    })
}

/// Returns `true` if a type contains the name of a common future type.
pub(crate) fn may_be_future(tokens: &[TokenTree]) -> bool {
    tokens.iter().any(|tree| match tree {
        TokenTree::Ident(word) => {
            let word = word.to_string();
            word.ends_with("Future") || ["JoinHandle", "Ready", "Receiver"].contains(&&*word)
        }
        TokenTree::Group(group) => may_be_future(&item::trees(group.stream())),
        _ => false,
    })
}

/// Replaces each `impl Trait` in a type by `_`, because `impl Trait` is not allowed in a body.
pub(crate) fn infer_impl(written: &mut Type) {
    match written {
        Type::ImplTrait(opaque) => {
            let token = Token![_](opaque.impl_token.span);
            *written = Type::Infer(TypeInfer {
                attrs: Vec::new(),
                underscore_token: token,
            });
        }
        Type::Array(array) => infer_impl(&mut array.elem),
        Type::Group(group) => infer_impl(&mut group.elem),
        Type::Paren(parentheses) => infer_impl(&mut parentheses.elem),
        Type::Ptr(pointer) => infer_impl(&mut pointer.elem),
        Type::Reference(reference) => infer_impl(&mut reference.elem),
        Type::Slice(slice) => infer_impl(&mut slice.elem),
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(infer_impl),
        Type::Path(named) => named.path.segments.iter_mut().for_each(infer_in_segment),
        Type::TraitObject(object) => {
            for bound in &mut object.bounds {
                if let TypeParamBound::Trait(named) = bound {
                    named.path.segments.iter_mut().for_each(infer_in_segment);
                }
            }
        }
        _ => {}
    }
}

fn infer_in_segment(segment: &mut PathSegment) {
    if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
        for argument in &mut arguments.args {
            match argument {
                GenericArgument::Type(written) => infer_impl(written),
                GenericArgument::AssocType(bound) => infer_impl(&mut bound.ty),
                _ => {}
            }
        }
    }
}

//! Functions that are not `async` and yet return a future: what is measured is the future, from
//! its first poll to its end, not the making of it.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::punctuated::Punctuated;
use syn::{
    GenericArgument, Path, PathArguments, PathSegment, Token, Type, TypeInfer, TypeParamBound,
};

use crate::function;
use crate::item::{self, Head};
use crate::site::Entrance;
use crate::tail::{self, AsyncBlock, Tail};

/// How a function returns its future.
pub(crate) enum Shape {
    /// `Pin<Box<dyn Future>>` or `Box<dyn Future + Unpin>`, by this or another name.
    Erased,
    /// `Pin<Box<impl Future>>`.
    Pinned,
    /// `Box<impl Future + Unpin>`.
    Boxed,
    /// `impl Future`.
    Bare,
}

/// A future that a function returns.
pub(crate) struct Returned<'a> {
    shape: Shape,
    tokens: &'a [TokenTree],
}

/// The future that a function with this return type returns, if the type says that it is one.
pub(crate) fn returned<'a>(signature: &'a [TokenTree], head: &Head) -> Option<Returned<'a>> {
    let tokens = &signature[item::return_type(signature, head)];
    let promising = tokens.iter().any(|tree| match tree {
        TokenTree::Ident(word) => ["impl", "Box", "BoxFuture", "LocalBoxFuture"]
            .iter()
            .any(|known| word == known),
        TokenTree::Group(group) => group.delimiter() == Delimiter::None,
        _ => false,
    });
    if !promising {
        return None;
    }
    let parsed: Type = syn::parse2(tokens.iter().cloned().collect()).ok()?;
    Some(Returned {
        shape: shape(&parsed)?,
        tokens,
    })
}

fn shape(returned: &Type) -> Option<Shape> {
    match returned {
        Type::Group(group) => shape(&group.elem),
        Type::Paren(parentheses) => shape(&parentheses.elem),
        Type::ImplTrait(opaque) => is_future(&opaque.bounds).then_some(Shape::Bare),
        Type::Path(named) => {
            let last = named.path.segments.last()?;
            match last.ident.to_string().as_str() {
                "BoxFuture" | "LocalBoxFuture" => Some(Shape::Erased),
                "Pin" => boxed_future(argument(last)?, Shape::Erased, Shape::Pinned),
                _ => boxed_future(returned, Shape::Erased, Shape::Boxed),
            }
        }
        _ => None,
    }
}

/// One shape for `Box<dyn Future>` and another for `Box<impl Future>`.
fn boxed_future(boxed: &Type, erased: Shape, known: Shape) -> Option<Shape> {
    let Type::Path(named) = boxed else {
        return None;
    };
    let last = named.path.segments.last()?;
    let inside = Some(last)
        .filter(|last| last.ident == "Box")
        .and_then(argument)?;
    match inside {
        Type::TraitObject(object) => is_future(&object.bounds).then_some(erased),
        Type::ImplTrait(opaque) => is_future(&opaque.bounds).then_some(known),
        _ => None,
    }
}

/// The one type in the angle brackets of a segment.
fn argument(segment: &PathSegment) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(only)) => Some(only),
        _ => None,
    }
}

fn is_future(bounds: &Punctuated<TypeParamBound, Token![+]>) -> bool {
    let is_named = |path: &Path| {
        path.segments
            .last()
            .is_some_and(|last| last.ident == "Future")
    };
    bounds
        .iter()
        .any(|bound| matches!(bound, TypeParamBound::Trait(named) if is_named(&named.path)))
}

impl Returned<'_> {
    /// The statements that make the future, and the future measured.
    pub(crate) fn measured(
        &self,
        entrance: &Entrance,
        body: TokenStream,
        braces: Span,
    ) -> TokenStream {
        let statements: Vec<TokenTree> = body.into_iter().collect();
        let tail = Tail::of(&statements);
        // What an `async` block does early it does inside.
        let outside = match &tail {
            Some(tail) if tail.block.is_some() => &statements[..tail.start],
            _ => &statements,
        };
        match &tail {
            Some(tail) if !tail::leaves_early(outside) => in_place(entrance, tail, &statements),
            _ => self.around(entrance, tail.as_ref(), statements, braces),
        }
    }

    /// The general form: the body makes a future of the type that was written, around which comes
    /// the measured one.
    fn around(
        &self,
        entrance: &Entrance,
        tail: Option<&Tail>,
        body: Vec<TokenTree>,
        braces: Span,
    ) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = entrance.runtime;
        let written = self.nameable();
        let early = tail::leaves_early(&body);
        let body: TokenStream = body.into_iter().collect();
        let made = if early {
            // Only a closure gives `return` and `?` somewhere else to go than out of the function. That
            // it is called once must be known where it is written: what it captures it may then
            // lend to the future.
            let returns = written
                .as_ref()
                .map(|written| quote_spanned!(span=> -> #written));
            quote_spanned!(span=> #runtime::call_once(move || #returns { #body }))
        } else {
            quote_spanned!(span=> { #body })
        };
        let kind = written.map(|written| quote_spanned!(span=> : #written));
        // Where the compiler points if it is no future.
        let future = quote_spanned!(span.located_at(braces)=> __profiler_future);
        let block = tail.and_then(|tail| Some((tail, tail.block?)));
        let (entry, task) = match block {
            Some(_) => entrance.entry_and_task(),
            None => (entrance.entry(), entrance.task()),
        };
        let first = quote_spanned!(span=> #entry let #future #kind = #made;);
        if let Some((tail, block)) = block {
            let task = task_for_a_block(&task);
            let block = measured_block(entrance, block, &future);
            let made = match tail.boxed {
                Some(_) => quote_spanned!(span=> ::std::boxed::Box::pin(#block)),
                None => block,
            };
            return quote_spanned!(span=> #first #task #made);
        }
        let measured = match self.shape {
            Shape::Erased => quote_spanned!(span=> #runtime::measure_boxed(#task, #future)),
            Shape::Pinned => quote_spanned! {span=>
                ::std::boxed::Box::pin(#runtime::measure(#task, #future))
            },
            Shape::Boxed => quote_spanned! {span=>
                ::std::boxed::Box::new(#runtime::measure(#task, #future))
            },
            Shape::Bare => quote_spanned!(span=> #runtime::measure(#task, #future)),
        };
        quote_spanned!(span=> #first #measured)
    }

    /// The type that was written, with `_` for what cannot be written in a body.
    fn nameable(&self) -> Option<TokenStream> {
        let written: TokenStream = self.tokens.iter().cloned().collect();
        nameable(written)
    }
}

/// The type as it may be written in a body: `_` stands for each `impl Trait`. `None` where nothing else
/// is left of it.
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

/// A body that ends with the making of a future, with that future measured where it is made.
///
/// An `async` block stays one, since other attributes look for it: `tracing::instrument` enters its
/// span at each poll of one, and only once of anything else.
fn in_place(entrance: &Entrance, tail: &Tail, statements: &[TokenTree]) -> TokenStream {
    let span = Span::mixed_site();
    let (before, made) = statements.split_at(tail.start);
    let mut tokens = TokenStream::new();
    let (entry, task) = match tail.block {
        Some(_) => entrance.entry_and_task(),
        None => (entrance.entry(), entrance.task()),
    };
    tokens.extend(entry);
    let before: TokenStream = before.iter().cloned().collect();
    tokens.extend(function::before_items(&before));
    tokens.extend(before);
    let future: TokenStream = match &tail.boxed {
        Some(parentheses) => parentheses.stream(),
        None => made.iter().cloned().collect(),
    };
    let measured = if let Some(block) = tail.block {
        tokens.extend(task_for_a_block(&task));
        measured_block(entrance, block, &future)
    } else {
        let runtime = entrance.runtime;
        quote_spanned!(span=> #runtime::measure(#task, #future))
    };
    let Some(parentheses) = &tail.boxed else {
        tokens.extend(measured);
        return tokens;
    };
    let mut group = Group::new(Delimiter::Parenthesis, measured);
    group.set_span(parentheses.span());
    tokens.extend(made[..made.len() - 1].iter().cloned());
    tokens.extend([TokenTree::Group(group)]);
    tokens
}

/// A statement that makes the task of a future in an `async` block, which has not begun by then.
fn task_for_a_block(task: &TokenStream) -> TokenStream {
    quote_spanned!(Span::mixed_site()=> let __profiler_task = #task;)
}

/// An `async` block that runs a future measured. Task and future are temporaries of the block, which end in the
/// opposite order, so that the task counts what the end of the future takes.
fn measured_block(entrance: &Entrance, block: AsyncBlock, future: &TokenStream) -> TokenStream {
    let span = Span::mixed_site();
    let runtime = entrance.runtime;
    let keyword = block.moves.then(|| quote_spanned!(span=> move));
    let inside = quote_spanned! {span=>
        #runtime::measure_in_place(&mut { __profiler_task }, #runtime::pin!(#future)).await
    };
    let mut braces = Group::new(Delimiter::Brace, inside);
    braces.set_span(block.span);
    quote_spanned!(span=> async #keyword #braces)
}

/// Whether a type says `impl` anywhere.
pub(crate) fn mentions_impl(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|tree| match tree {
        TokenTree::Ident(word) => word == "impl",
        TokenTree::Group(group) => mentions_impl(&group.stream()),
        _ => false,
    })
}

/// Whether a type has a word in it by which it may be a future itself.
pub(crate) fn may_be_one(tokens: &[TokenTree]) -> bool {
    tokens.iter().any(|tree| match tree {
        TokenTree::Ident(word) => {
            let word = word.to_string();
            word.ends_with("Future") || ["JoinHandle", "Ready", "Receiver"].contains(&&*word)
        }
        TokenTree::Group(group) => may_be_one(&item::trees(group.stream())),
        _ => false,
    })
}

/// Puts `_` where a type says `impl Trait`, which no expression may.
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

//! Functions that are not `async` and yet return a future: what is measured is the future, from
//! its first poll to its end, not the making of it.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::punctuated::Punctuated;
use syn::{
    GenericArgument, Path, PathArguments, PathSegment, Token, Type, TypeInfer, TypeParamBound,
};

use crate::item::{self, Head};
use crate::site::Entrance;

/// How a function returns its future.
pub(crate) enum Shape {
    /// `Pin<Box<dyn Future>>`, by this or another name.
    Pinned,
    /// `Box<dyn Future + Unpin>`.
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
                "BoxFuture" | "LocalBoxFuture" => Some(Shape::Pinned),
                "Pin" => boxed_future(argument(last)?).then_some(Shape::Pinned),
                _ => boxed_future(returned).then_some(Shape::Boxed),
            }
        }
        _ => None,
    }
}

/// Whether a type is `Box<dyn Future>` or `Box<impl Future>`.
fn boxed_future(boxed: &Type) -> bool {
    let Type::Path(named) = boxed else {
        return false;
    };
    let inside = named
        .path
        .segments
        .last()
        .filter(|last| last.ident == "Box")
        .and_then(argument);
    match inside {
        Some(Type::TraitObject(object)) => is_future(&object.bounds),
        Some(Type::ImplTrait(opaque)) => is_future(&opaque.bounds),
        _ => false,
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
        let mut tokens = entrance.entry();
        let statements: Vec<TokenTree> = body.into_iter().collect();
        match boxed_tail(&statements) {
            Some(made) if !leaves_early(&statements[..statements.len() - 1]) => {
                tokens.extend(statements[..statements.len() - 1].iter().cloned());
                tokens.extend([measured_inside(entrance, &made)]);
            }
            _ => tokens.extend(self.around(entrance, statements, braces)),
        }
        tokens
    }

    /// The general form: the body makes a future of the type that was written, around which comes
    /// the measured one.
    fn around(&self, entrance: &Entrance, body: Vec<TokenTree>, braces: Span) -> TokenStream {
        let span = Span::mixed_site();
        let runtime = entrance.runtime;
        let written: TokenStream = self.tokens.iter().cloned().collect();
        let nameable = !mentions_impl(&written);
        // Only a closure gives `return` and `?` somewhere else to go than out of the function.
        let early = leaves_early(&body);
        let body: TokenStream = body.into_iter().collect();
        let made = match (early, nameable) {
            (true, true) => quote_spanned!(span=> (move || -> #written { #body })()),
            (true, false) => quote_spanned!(span=> (move || { #body })()),
            (false, _) => quote_spanned!(span=> { #body }),
        };
        let kind = nameable.then(|| quote_spanned!(span=> : #written));
        // Where the compiler points if it is no future.
        let future = quote_spanned!(span.located_at(braces)=> future);
        let task = entrance.task();
        let measured = quote_spanned!(span=> #runtime::measure(#task, #future));
        let measured = match self.shape {
            Shape::Pinned => quote_spanned!(span=> ::std::boxed::Box::pin(#measured)),
            Shape::Boxed => quote_spanned!(span=> ::std::boxed::Box::new(#measured)),
            Shape::Bare => measured,
        };
        quote_spanned!(span=> let #future #kind = #made; #measured)
    }
}

/// The parentheses of `Box::pin(…)`, where a body ends so and in nothing more.
fn boxed_tail(body: &[TokenTree]) -> Option<Group> {
    let made = item::group(body.last(), Delimiter::Parenthesis)?;
    let mut start = body.len().checked_sub(1)?;
    let mut words = Vec::new();
    while let Some(TokenTree::Ident(word)) = start.checked_sub(1).and_then(|at| body.get(at)) {
        words.push(word);
        start -= 1;
        let colons = start.checked_sub(2).map(|at| &body[at..start]);
        let Some([one, other]) = colons else { break };
        if !item::is_punct(Some(one), ':') || !item::is_punct(Some(other), ':') {
            break;
        }
        start -= 2;
    }
    let called = words.len() >= 2 && words[0] == "pin" && words[1] == "Box";
    let before = start.checked_sub(1).and_then(|at| body.get(at));
    let begins = before.is_none()
        || item::is_punct(before, ';')
        || item::group(before, Delimiter::Brace).is_some();
    (called && begins).then_some(made)
}

/// `(future)` as `(measure(task, future))`.
fn measured_inside(entrance: &Entrance, made: &Group) -> TokenTree {
    let runtime = entrance.runtime;
    let future = made.stream();
    let span = Span::mixed_site();
    let task = entrance.task();
    let measured = quote_spanned!(span=> #runtime::measure(#task, #future));
    let mut group = Group::new(Delimiter::Parenthesis, measured);
    group.set_span(made.span());
    TokenTree::Group(group)
}

/// Whether some statements may leave the function before its end.
fn leaves_early(statements: &[TokenTree]) -> bool {
    statements.iter().any(|tree| match tree {
        TokenTree::Group(group) => {
            leaves_early(&group.stream().into_iter().collect::<Vec<TokenTree>>())
        }
        TokenTree::Ident(word) => word == "return",
        TokenTree::Punct(punct) => punct.as_char() == '?',
        TokenTree::Literal(_) => false,
    })
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
        _ => {}
    }
}

fn infer_in_segment(segment: &mut PathSegment) {
    if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
        for argument in &mut arguments.args {
            if let GenericArgument::Type(written) = argument {
                infer_impl(written);
            }
        }
    }
}

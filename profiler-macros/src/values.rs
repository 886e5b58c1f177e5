//! The values of the arguments: what each takes, and what to say to anything else.

use proc_macro2::TokenTree;
use syn::parse::ParseStream;
use syn::{Expr, Ident, Lit, LitStr, Path, Token, UnOp, token};

use crate::args::Name;
use crate::keys::Key;

/// Whether the argument ends here.
pub(crate) fn ends(input: ParseStream) -> bool {
    input.is_empty() || input.peek(Token![,])
}

/// An argument that takes no value.
pub(crate) fn none(key: Key, input: ParseStream) -> syn::Result<()> {
    if ends(input) {
        return Ok(());
    }
    let word = key.word();
    Err(input.error(format!("`{word}` takes no value; write `{word}` alone")))
}

/// The `=` between an argument and its value.
pub(crate) fn equals(key: Key, word: &Ident, input: ParseStream) -> syn::Result<()> {
    let usage = key.usage();
    let missing = || format!("`{}` is missing its value; write `{usage}`", key.word());
    if ends(input) {
        return Err(syn::Error::new(word.span(), missing()));
    }
    if input.peek(token::Paren) {
        let instead = format!("the value follows `=`, without parentheses; write `{usage}`");
        return Err(input.error(instead));
    }
    if input.peek(Token![==]) || !input.peek(Token![=]) {
        return Err(input.error(format!(
            "expected one `=` after `{}`; write `{usage}`",
            key.word()
        )));
    }
    let equals: Token![=] = input.parse()?;
    if ends(input) {
        return Err(syn::Error::new(equals.span, missing()));
    }
    Ok(())
}

/// `name = "text"` or `name = CONSTANT`.
pub(crate) fn name(input: ParseStream) -> syn::Result<Name> {
    let value = expression(input)?;
    match literal(&value) {
        Some(Lit::Str(text)) => Ok(Name::Literal(text_of(text, "`name`")?)),
        Some(other) => Err(wrong(
            &value,
            &format!(
                "`name` takes a string or a constant expression, not {}; write `name = \"text\"`",
                kind(other)
            ),
        )),
        None => Ok(Name::Const(Box::new(value))),
    }
}

/// A name that is not empty.
pub(crate) fn text_of(text: &LitStr, what: &str) -> syn::Result<LitStr> {
    if text.value().trim().is_empty() {
        let message = format!("{what} is empty; give it a text to find the measurements by");
        return Err(syn::Error::new(text.span(), message));
    }
    Ok(text.clone())
}

/// `log = logger`.
pub(crate) fn logger(input: ParseStream) -> syn::Result<Expr> {
    let value = expression(input)?;
    match literal(&value) {
        Some(other) => Err(wrong(
            &value,
            &format!(
                "`log` takes a logger, not {}; give it an `Arc` or `&'static` of a \
                 `ScalarLogger`, or a closure `|tag, milliseconds, step| …`",
                kind(other)
            ),
        )),
        None => Ok(value),
    }
}

/// `global_step = step`.
pub(crate) fn step(input: ParseStream) -> syn::Result<Expr> {
    let value = expression(input)?;
    let wrong_kind = match literal(&value) {
        Some(Lit::Int(_)) | None => None,
        Some(other) => Some(kind(other)),
    };
    match wrong_kind.or_else(|| negative(&value).then_some("a negative number")) {
        Some(found) => Err(wrong(
            &value,
            &format!(
                "`global_step` takes an integer from 0, not {found}; \
                 leave it out to count the calls"
            ),
        )),
        None => Ok(value),
    }
}

/// `bypass = condition`.
pub(crate) fn condition(input: ParseStream) -> syn::Result<Expr> {
    let value = expression(input)?;
    match literal(&value) {
        Some(Lit::Bool(_)) | None => Ok(value),
        Some(other) => Err(wrong(
            &value,
            &format!(
                "`bypass` takes a `bool`, not {}; write `bypass = true`",
                kind(other)
            ),
        )),
    }
}

/// `every = 100`.
pub(crate) fn every(input: ParseStream) -> syn::Result<u32> {
    let value = expression(input)?;
    let found = match literal(&value) {
        Some(Lit::Int(number)) => match number.base10_parse() {
            Ok(0) => "0; write 1 to log each call, and leave `log` out to log none",
            Ok(count) => return Ok(count),
            Err(_) => "one above 4294967295; write a smaller number",
        },
        _ if negative(&value) => "a negative number; write `every = 100` for one call in 100",
        Some(Lit::Str(_)) => "a string; write the number without quotes",
        Some(Lit::Float(_)) => "a fraction; write `every = 100` for one call in 100",
        _ => "an expression; write `every = 100` for one call in 100",
    };
    Err(wrong(
        &value,
        &format!("`every` takes an integer literal from 1, not {found}"),
    ))
}

/// `stream = stream`.
pub(crate) fn stream(input: ParseStream) -> syn::Result<Expr> {
    let value = expression(input)?;
    match literal(&value) {
        Some(other) => Err(wrong(
            &value,
            &format!(
                "`stream` takes a CUDA stream, not {}; give it a `&CudaStream` or an \
                 `Arc<CudaStream>`, or a `cuda::Stream` of the runtime's",
                kind(other)
            ),
        )),
        None => Ok(value),
    }
}

/// `shapes = [x.shape(), w.shape()]`.
pub(crate) fn shapes(input: ParseStream) -> syn::Result<Vec<Expr>> {
    let value = expression(input)?;
    let shapes = match peeled(&value) {
        Expr::Array(list) => &list.elems,
        other => return Err(wrong(&value, &no_list(other))),
    };
    if shapes.is_empty() {
        let usage = Key::Shapes.usage();
        let message = format!("`shapes` lists nothing; write `{usage}`, or leave it out");
        return Err(wrong(&value, &message));
    }
    for shape in shapes {
        if let Some(found) = no_shape(shape) {
            return Err(wrong(
                shape,
                &format!("a shape is given by its extents, not by {found}; write `x.shape()`"),
            ));
        }
    }
    Ok(shapes.iter().cloned().collect())
}

/// What to say to anything but a list of shapes.
fn no_list(value: &Expr) -> String {
    let usage = Key::Shapes.usage();
    match value {
        Expr::Repeat(_) => format!("`shapes` lists each shape, without `;`; write `{usage}`"),
        Expr::Lit(value) => format!(
            "`shapes` takes a list in brackets, not {}; write `{usage}`",
            kind(&value.lit)
        ),
        _ => format!("`shapes` takes a list in brackets, also of a single shape; write `{usage}`"),
    }
}

/// What stands where a shape should, if it can be none.
fn no_shape(value: &Expr) -> Option<&'static str> {
    match literal(value) {
        Some(Lit::Int(_)) | None => negative(value).then_some("a negative number"),
        Some(other) => Some(kind(other)),
    }
}

/// `sync`, `sync = true` or `sync = false`.
pub(crate) fn yes_or_no(key: Key, word: &Ident, input: ParseStream) -> syn::Result<bool> {
    if ends(input) {
        return Ok(true);
    }
    equals(key, word, input)?;
    let value = expression(input)?;
    match literal(&value) {
        Some(Lit::Bool(answer)) => Ok(answer.value),
        _ => Err(wrong(
            &value,
            &format!("`{}` takes `true` or `false`, or stands alone", key.word()),
        )),
    }
}

/// `crate = path`.
pub(crate) fn path(input: ParseStream) -> syn::Result<Path> {
    let usage = Key::Crate.usage();
    if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        let message = format!("`crate` takes a path without quotes; write `{usage}`");
        return Err(syn::Error::new(text.span(), message));
    }
    let found = input.span();
    Path::parse_mod_style(input).map_err(|_| {
        syn::Error::new(
            found,
            format!("`crate` takes the path of the runtime; write `{usage}`"),
        )
    })
}

/// An expression; one that breaks off is told at its last token.
fn expression(input: ParseStream) -> syn::Result<Expr> {
    let from = input.fork();
    input.parse().map_err(|error: syn::Error| {
        if !input.is_empty() {
            return error;
        }
        let mut last = from.span();
        while let Ok(tree) = from.parse::<TokenTree>() {
            last = tree.span();
        }
        syn::Error::new(last, "the expression breaks off here; complete it")
    })
}

/// A closure written in place, whose parameters the runtime gives their types.
pub(crate) fn is_closure(value: &Expr) -> bool {
    matches!(peeled(value), Expr::Closure(_))
}

/// The literal that an expression is.
pub(crate) fn literal(value: &Expr) -> Option<&Lit> {
    match peeled(value) {
        Expr::Lit(value) => Some(&value.lit),
        _ => None,
    }
}

/// What a literal is, in words.
pub(crate) fn kind(literal: &Lit) -> &'static str {
    match literal {
        Lit::Str(_) => "a string",
        Lit::ByteStr(_) => "a byte string",
        Lit::CStr(_) => "a C string",
        Lit::Byte(_) => "a byte",
        Lit::Char(_) => "a character",
        Lit::Int(_) => "an integer",
        Lit::Float(_) => "a floating-point number",
        Lit::Bool(_) => "a `bool`",
        _ => "this literal",
    }
}

/// The expression inside parentheses, written or invisible.
fn peeled(value: &Expr) -> &Expr {
    match value {
        Expr::Group(group) => peeled(&group.expr),
        Expr::Paren(parentheses) => peeled(&parentheses.expr),
        other => other,
    }
}

fn negative(value: &Expr) -> bool {
    matches!(peeled(value), Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_))
        && literal(&unary.expr).is_some())
}

fn wrong(value: &Expr, message: &str) -> syn::Error {
    syn::Error::new_spanned(value, message)
}

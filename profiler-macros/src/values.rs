//! Parses the values of the arguments, and reports values of the wrong kind.

use proc_macro2::TokenTree;
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{Expr, Ident, Lit, LitStr, Path, Token, UnOp, token};

use crate::keys::Key;

/// The name of a call site's measurements.
#[derive(Clone)]
pub(crate) enum Name {
    /// A string literal.
    Literal(LitStr),
    /// Any other constant expression.
    Const(Box<Expr>),
}

/// Returns `true` at the end of an argument.
pub(crate) fn ends(input: ParseStream) -> bool {
    input.is_empty() || input.peek(Token![,])
}

/// Checks that an argument has no value.
pub(crate) fn none(key: Key, input: ParseStream) -> syn::Result<()> {
    if ends(input) {
        return Ok(());
    }
    let word = key.word();
    Err(input.error(format!("`{word}` takes no value; write `{word}` alone")))
}

/// Parses the `=` between an argument and its value.
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

/// Parses the value of `name = "text"` or `name = CONSTANT`.
pub(crate) fn name(input: ParseStream) -> syn::Result<Name> {
    let value = expression(input)?;
    match literal(&value) {
        Some(Lit::Str(text)) => Ok(Name::Literal(non_empty(text, "`name`")?)),
        Some(other) => Err(error_at(
            &value,
            &format!(
                "`name` takes a string or a constant expression, not {}; write `name = \"text\"`",
                literal_kind(other)
            ),
        )),
        None if is_made_at_run_time(&value) => Err(error_at(
            &value,
            "the name of a function is a constant; for names made at run time, write \
             `measure!(format!(…), { … })` inside the function",
        )),
        None => Ok(Name::Const(Box::new(value))),
    }
}

/// Returns `true` for the usual ways to make a `String`. No constant expression can use them.
fn is_made_at_run_time(value: &Expr) -> bool {
    match without_parentheses(value) {
        Expr::Macro(call) => call
            .mac
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == "format" || last.ident == "format_args"),
        Expr::MethodCall(call) => ["into", "to_owned", "to_string"]
            .iter()
            .any(|method| call.method == method),
        Expr::Call(call) => match without_parentheses(&call.func) {
            Expr::Path(function) => {
                let mut segments = function.path.segments.iter().rev();
                let name = segments.next().is_some_and(|last| last.ident == "from");
                name && segments.next().is_some_and(|owner| owner.ident == "String")
            }
            _ => false,
        },
        Expr::Reference(borrowed) => is_made_at_run_time(&borrowed.expr),
        _ => false,
    }
}

/// Checks that a name is not empty.
pub(crate) fn non_empty(text: &LitStr, what: &str) -> syn::Result<LitStr> {
    if text.value().trim().is_empty() {
        let message = format!("{what} is empty; write the name of the measurements");
        return Err(syn::Error::new(text.span(), message));
    }
    Ok(text.clone())
}

/// Parses the value of `log = logger`.
pub(crate) fn logger(input: ParseStream) -> syn::Result<Expr> {
    let value = expression(input)?;
    match literal(&value) {
        Some(other) => Err(error_at(
            &value,
            &format!(
                "`log` takes a logger, not {}; give it an `Arc` or `&'static` of a \
                 `ScalarLogger`, or a closure `|tag, milliseconds, step| …`",
                literal_kind(other)
            ),
        )),
        None => check_parameters(&value).map(|()| value),
    }
}

/// Checks the number of parameters of a logger that is a closure.
fn check_parameters(value: &Expr) -> syn::Result<()> {
    let Expr::Closure(closure) = without_parentheses(value) else {
        return Ok(());
    };
    let found = match closure.inputs.len() {
        3 => return Ok(()),
        0 => "none".to_owned(),
        count => count.to_string(),
    };
    // From the first bar to the last.
    let mut bars = closure.inputs_begin.to_token_stream();
    bars.extend(closure.inputs.to_token_stream());
    bars.extend(closure.inputs_end.to_token_stream());
    let message = format!(
        "a logger has three parameters, not {found}; write `|tag, milliseconds, step| …`, and `_` for those it does not use"
    );
    Err(syn::Error::new_spanned(bars, message))
}

/// Parses the value of `global_step = step`.
pub(crate) fn step(input: ParseStream) -> syn::Result<Expr> {
    let value = expression(input)?;
    let wrong_kind = match literal(&value) {
        Some(Lit::Int(_)) | None => None,
        Some(other) => Some(literal_kind(other)),
    };
    match wrong_kind.or_else(|| is_negative(&value).then_some("a negative number")) {
        Some(found) => Err(error_at(
            &value,
            &format!(
                "`global_step` takes an integer from 0, not {found}; \
                 leave it out to count the calls"
            ),
        )),
        None => Ok(value),
    }
}

/// Parses the value of `bypass = condition`.
pub(crate) fn condition(input: ParseStream) -> syn::Result<Expr> {
    let value = expression(input)?;
    match literal(&value) {
        Some(Lit::Bool(_)) | None => Ok(value),
        Some(other) => Err(error_at(
            &value,
            &format!(
                "`bypass` takes a `bool`, not {}; write `bypass = true`",
                literal_kind(other)
            ),
        )),
    }
}

/// Parses the value of `log_every = 100`.
pub(crate) fn log_every(input: ParseStream) -> syn::Result<u32> {
    let value = expression(input)?;
    let found = match literal(&value) {
        Some(Lit::Int(number)) => match number.base10_parse() {
            Ok(0) => "0; write 1 to log each call, and leave `log` out to log none",
            Ok(count) => return Ok(count),
            Err(_) => "one above 4294967295; write a smaller number",
        },
        _ if is_negative(&value) => {
            "a negative number; write `log_every = 100` for one call in 100"
        }
        Some(Lit::Str(_)) => "a string; write the number without quotes",
        Some(Lit::Float(_)) => "a fraction; write `log_every = 100` for one call in 100",
        _ => "an expression; write `log_every = 100` for one call in 100",
    };
    Err(error_at(
        &value,
        &format!("`log_every` takes an integer literal from 1, not {found}"),
    ))
}

/// Parses the value of `stream = stream`.
pub(crate) fn stream(input: ParseStream) -> syn::Result<Expr> {
    let value = expression(input)?;
    match literal(&value) {
        Some(other) => Err(error_at(
            &value,
            &format!(
                "`stream` takes a CUDA stream, not {}; give it a `&CudaStream` or an \
                 `Arc<CudaStream>`, or the runtime's `cuda::Stream`",
                literal_kind(other)
            ),
        )),
        None => Ok(value),
    }
}

/// Parses the value of `parent = handle`.
pub(crate) fn parent(input: ParseStream) -> syn::Result<Expr> {
    let value = expression(input)?;
    match literal(&value) {
        Some(other) => Err(error_at(
            &value,
            &format!(
                "`parent` takes a `Handle`, not {}; take `let handle = Handle::current();` on the \
                 parent's thread and write `parent = handle`",
                literal_kind(other)
            ),
        )),
        None => Ok(value),
    }
}

/// Parses the value of `shapes = [x.shape(), w.shape()]`.
pub(crate) fn shapes(input: ParseStream) -> syn::Result<Vec<Expr>> {
    let value = expression(input)?;
    let shapes = match without_parentheses(&value) {
        Expr::Array(list) => &list.elems,
        other => return Err(error_at(&value, &not_a_list(other))),
    };
    if shapes.is_empty() {
        let usage = Key::Shapes.usage();
        let message = format!("`shapes` is empty; write `{usage}`, or leave it out");
        return Err(error_at(&value, &message));
    }
    for shape in shapes {
        if let Some(found) = not_a_shape(shape) {
            return Err(error_at(
                shape,
                &format!("a shape is given by its extents, not by {found}; write `x.shape()`"),
            ));
        }
    }
    Ok(shapes.iter().cloned().collect())
}

/// Returns the error for a value that is no list of shapes.
fn not_a_list(value: &Expr) -> String {
    let usage = Key::Shapes.usage();
    match value {
        Expr::Repeat(_) => format!("`shapes` lists each shape, without `;`; write `{usage}`"),
        Expr::Lit(value) => format!(
            "`shapes` takes a list in brackets, not {}; write `{usage}`",
            literal_kind(&value.lit)
        ),
        _ => format!("`shapes` takes a list in brackets, also of a single shape; write `{usage}`"),
    }
}

/// Names the kind of an expression that cannot have a shape.
fn not_a_shape(value: &Expr) -> Option<&'static str> {
    match literal(value) {
        Some(Lit::Int(_)) | None => is_negative(value).then_some("a negative number"),
        Some(other) => Some(literal_kind(other)),
    }
}

/// Parses the value of `sync`, `sync = true` or `sync = false`.
pub(crate) fn flag(key: Key, word: &Ident, input: ParseStream) -> syn::Result<bool> {
    if ends(input) {
        return Ok(true);
    }
    equals(key, word, input)?;
    let value = expression(input)?;
    match literal(&value) {
        Some(Lit::Bool(answer)) => Ok(answer.value),
        _ => Err(error_at(
            &value,
            &format!("`{}` takes `true` or `false`, or stands alone", key.word()),
        )),
    }
}

/// Parses the value of `crate = path`.
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

/// Parses an expression. The error for an incomplete one points to its last token.
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
        syn::Error::new(last, "the expression is incomplete; complete it")
    })
}

/// Returns `true` for a closure. The runtime determines the types of its parameters.
pub(crate) fn is_closure(value: &Expr) -> bool {
    matches!(without_parentheses(value), Expr::Closure(_))
}

/// Returns `true` for an expression that names a place in memory: a variable, a field, an element, or what a reference
/// points to. Using its value would move it out of there.
pub(crate) fn is_place(value: &Expr) -> bool {
    match without_parentheses(value) {
        Expr::Path(_) | Expr::Field(_) | Expr::Index(_) => true,
        Expr::Unary(unary) => matches!(unary.op, UnOp::Deref(_)),
        _ => false,
    }
}

/// Returns `true` for a reference to a field of `self`, or to an element of one: `&self.board`. It means the same as
/// `self.board`. As a value, it would have to be `'static`, and the compiler reports that about the lifetime of `self`,
/// without what to write instead.
pub(crate) fn is_borrowed_from_self(value: &Expr) -> bool {
    match without_parentheses(value) {
        Expr::Reference(borrowed) => borrowed.mutability.is_none() && is_of_self(&borrowed.expr),
        _ => false,
    }
}

/// Returns `true` for `self.field`, and for fields and elements of that.
fn is_of_self(value: &Expr) -> bool {
    let base = match without_parentheses(value) {
        Expr::Field(field) => &field.base,
        Expr::Index(element) => &element.expr,
        _ => return false,
    };
    is_of_self(base)
        || matches!(without_parentheses(base), Expr::Path(path) if path.path.is_ident("self"))
}

/// Returns the literal, if the expression is one.
pub(crate) fn literal(value: &Expr) -> Option<&Lit> {
    match without_parentheses(value) {
        Expr::Lit(value) => Some(&value.lit),
        _ => None,
    }
}

/// Names the kind of a literal, with an article.
pub(crate) fn literal_kind(literal: &Lit) -> &'static str {
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

/// Removes parentheses and the invisible groups of macro fragments around an expression.
fn without_parentheses(value: &Expr) -> &Expr {
    match value {
        Expr::Group(group) => without_parentheses(&group.expr),
        Expr::Paren(parentheses) => without_parentheses(&parentheses.expr),
        other => other,
    }
}

/// Returns `true` for a negated literal.
fn is_negative(value: &Expr) -> bool {
    matches!(without_parentheses(value), Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_))
        && literal(&unary.expr).is_some())
}

/// Creates an error that points to the whole expression.
fn error_at(value: &Expr, message: &str) -> syn::Error {
    syn::Error::new_spanned(value, message)
}

//! The section macros. One form returns a guard that measures until it is dropped, the other
//! measures a block.

use proc_macro2::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Lit, LitStr, Path, Token};

use crate::STRIP;
use crate::args::Args;
use crate::errors::Errors;
use crate::item;
use crate::keys::SECTION;
use crate::site::{BuilderUse, Runtime, SiteCode};
use crate::values::{self, Name};

/// The name of a section.
enum SectionName {
    /// A string literal.
    Literal(LitStr),
    /// An expression that is evaluated at each call.
    Dynamic(Box<Expr>),
}

// The two forms of a section, for error messages. Its aliases are advised as `measure!`, too.
const GUARD: &str = "measure!(\"name\")";
const BLOCK: &str = "measure!(\"name\", { … })";

/// Expands `measure!([crate] name, arguments…)`: to a section that is a block if the input ends with one, and the rest
/// of the enclosing block otherwise.
pub(crate) fn measure(input: TokenStream) -> TokenStream {
    if ends_with_a_block(input.clone()) {
        block(input)
    } else {
        guard(input)
    }
}

/// Returns `true` if the input ends with braces that are a block and not part of an argument: they
/// follow a comma, the name, or nothing.
fn ends_with_a_block(input: TokenStream) -> bool {
    // The path of the runtime comes first.
    let mut trees: Vec<TokenTree> = input.into_iter().skip(1).collect();
    if item::is_punct(trees.last(), ',') {
        trees.pop();
    }
    let block = item::group(trees.pop().as_ref(), Delimiter::Brace);
    block.is_some() && (trees.len() < 2 || item::is_punct(trees.last(), ','))
}

/// Expands `scope!([crate] name, arguments…)`.
pub(crate) fn guard(input: TokenStream) -> TokenStream {
    let (runtime, tokens) = runtime_of(input);
    let mut errors = Errors::default();
    let section = Section::read(tokens, GUARD, &mut errors);
    let span = Span::mixed_site();
    match section {
        Some(section) if errors.is_empty() && STRIP => {
            let unused = section.unused(&runtime);
            quote_spanned!(span=> { #unused #runtime::Stripped })
        }
        Some(section) if errors.is_empty() => section.guard(&runtime),
        _ => {
            let errors = errors.into_tokens();
            quote_spanned!(span=> { #errors })
        }
    }
}

/// Expands `context!([crate] name, arguments…, { block })`.
pub(crate) fn block(input: TokenStream) -> TokenStream {
    let (runtime, tokens) = runtime_of(input);
    let mut errors = Errors::default();
    let (before, block) = split_block(tokens, &mut errors);
    let section = Section::read(before, BLOCK, &mut errors);
    if let Some(block) = &block {
        reject_await(block.stream(), &mut errors);
    }
    let span = Span::mixed_site();
    let first = match section {
        Some(section) if errors.is_empty() && STRIP => section.unused(&runtime),
        Some(section) if errors.is_empty() => {
            let guard = section.guard(&runtime);
            quote_spanned!(span=> let __profiler_scope = #guard;)
        }
        _ => errors.into_tokens(),
    };
    let statements = block.as_ref().map(Group::stream);
    // The braces are new ones with the user's location. For the user's own braces, the compiler
    // would warn that they are unnecessary around a single expression.
    let braces = span.located_at(block.map_or(span, |block| block.span()));
    quote_spanned!(braces=> { #first #statements })
}

/// Splits the input into the path of the runtime, which the outer macro prepends, and the user's
/// tokens.
fn runtime_of(input: TokenStream) -> (Runtime, TokenStream) {
    let mut trees = input.into_iter();
    let first = trees.next();
    let path = item::group(first.as_ref(), Delimiter::Bracket)
        .and_then(|group| Path::parse_mod_style.parse2(group.stream()).ok());
    (Runtime::at(path.as_ref()), trees.collect())
}

/// Splits off the block at the end and the comma before it.
fn split_block(tokens: TokenStream, errors: &mut Errors) -> (TokenStream, Option<Group>) {
    let mut trees: Vec<TokenTree> = tokens.into_iter().collect();
    if item::is_punct(trees.last(), ',') {
        trees.pop();
    }
    let Some(block) = item::group(trees.last(), Delimiter::Brace) else {
        let last = trees.last().map_or_else(Span::call_site, TokenTree::span);
        errors.at(
            last,
            "expected the block to measure at the end; write `, { … }` after this",
        );
        return (trees.into_iter().collect(), None);
    };
    trees.pop();
    match trees.last() {
        None => {}
        Some(comma) if item::is_punct(Some(comma), ',') => {
            trees.pop();
        }
        Some(_) => errors.at(block.span_open(), "expected `,` before the block"),
    }
    (trees.into_iter().collect(), Some(block))
}

/// A section's name and arguments.
struct Section {
    name: SectionName,
    args: Args,
}

impl Section {
    fn read(tokens: TokenStream, usage: &str, errors: &mut Errors) -> Option<Self> {
        if tokens.is_empty() {
            errors.at(
                Span::call_site(),
                format_args!("a section needs a name; write `{usage}`"),
            );
            return None;
        }
        let parser = |input: ParseStream| {
            let name = read_name(input, usage)?;
            let mut args = Args::default();
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
                args.read(input, SECTION, errors);
            }
            Ok(Self { name, args })
        };
        parser
            .parse2(tokens)
            .map_err(|error| errors.push(error))
            .ok()
    }

    /// Returns an expression that creates the guard.
    fn guard(mut self, runtime: &Runtime) -> TokenStream {
        let span = Span::mixed_site();
        match self.name {
            SectionName::Literal(text) => {
                self.args.name = Some(Name::Literal(text));
                let site = SiteCode {
                    args: &self.args,
                    runtime,
                    location: None,
                };
                if let Some(guard) = site.plain_guard() {
                    guard.into_token_stream()
                } else {
                    let builder = site.builder(BuilderUse::Start);
                    quote_spanned!(span=> { #builder __profiler_builder.start() })
                }
            }
            SectionName::Dynamic(name) if self.args.is_name_only() => {
                // While the profiler is off, the name is not evaluated.
                quote_spanned! {span=>
                    if #runtime::wants_name() { #runtime::enter_dynamic(&(#name)) } else { #runtime::no_scope() }
                }
            }
            SectionName::Dynamic(_) => {
                let begin = self.begin_dynamic(runtime);
                let begin = quote_spanned! {span=>
                    if #runtime::wants_name() { #begin } else { #runtime::ScopeBuilder::off() }
                };
                let builder = self.builder(&begin, runtime);
                quote_spanned!(span=> { #builder __profiler_builder.start() })
            }
        }
    }

    /// Returns a statement that does nothing but mention the arguments, so that the compiler does
    /// not report their variables as unused in a stripped build.
    fn unused(self, runtime: &Runtime) -> TokenStream {
        let span = Span::mixed_site();
        let begin = match self.name {
            SectionName::Literal(_) if self.args.is_name_only() => return TokenStream::new(),
            SectionName::Literal(_) => quote_spanned!(span=> #runtime::ScopeBuilder::off()),
            SectionName::Dynamic(_) => self.begin_dynamic(runtime),
        };
        let builder = self.builder(&begin, runtime);
        quote_spanned!(span=> if false { #builder let __profiler_scope = __profiler_builder.start(); })
    }

    /// Returns an expression that begins a scope whose name is evaluated at each call.
    fn begin_dynamic(&self, runtime: &Runtime) -> TokenStream {
        let span = Span::mixed_site();
        let SectionName::Dynamic(name) = &self.name else {
            return TokenStream::new();
        };
        let every = self.args.log_every.map(|every| {
            let every = Literal::u32_unsuffixed(every);
            quote_spanned!(span=> .every(#every))
        });
        quote_spanned!(span=> #runtime::begin_dynamic(&(#name)) #every)
    }

    /// Returns statements that bind `__profiler_builder` to `begin` with the arguments applied.
    fn builder(&self, begin: &TokenStream, runtime: &Runtime) -> TokenStream {
        SiteCode {
            args: &self.args,
            runtime,
            location: None,
        }
        .with_arguments(begin, BuilderUse::Start)
    }
}

fn read_name(input: ParseStream, usage: &str) -> syn::Result<SectionName> {
    if input.peek(syn::Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]) {
        let message = format!("the name of a section comes first; write `{usage}`");
        return Err(input.error(message));
    }
    let name: Expr = input.parse()?;
    match values::literal(&name) {
        Some(Lit::Str(text)) => Ok(SectionName::Literal(values::non_empty(text, "the name")?)),
        Some(other) => {
            let found = values::literal_kind(other);
            let message =
                format!("the name of a section is a string, not {found}; write `{usage}`");
            Err(syn::Error::new_spanned(&name, message))
        }
        None => Ok(SectionName::Dynamic(Box::new(name))),
    }
}

/// Reports each `.await` that belongs to the block itself, and not to an `async` block inside it.
fn reject_await(block: TokenStream, errors: &mut Errors) {
    let mut trees = block.into_iter().peekable();
    while let Some(tree) = trees.next() {
        if item::is_word(Some(&tree), "async") {
            skip_future(&mut trees);
        } else if item::is_punct(Some(&tree), '.') && item::is_word(trees.peek(), "await") {
            errors.at(
                trees.peek().map_or_else(Span::call_site, TokenTree::span),
                "a section cannot contain `.await`, because its thread runs other work during the wait; \
                 measure the future instead: `future.measure_execution_time(\"name\").await`",
            );
        } else if let TokenTree::Group(group) = tree {
            reject_await(group.stream(), errors);
        }
    }
}

/// Skips an `async` block, closure or function after its `async`: an `.await` inside suspends only that
/// future. It ends with its braces, or for a closure without braces, with its expression.
fn skip_future(trees: &mut impl Iterator<Item = TokenTree>) {
    // A comma before the second bar separates the parameters of the closure.
    let mut bars = 0;
    for tree in trees {
        bars += usize::from(item::is_punct(Some(&tree), '|'));
        let ends_expression = bars >= 2 && item::is_punct(Some(&tree), ',');
        let ends_statement = item::is_punct(Some(&tree), ';');
        if ends_expression || ends_statement || item::group(Some(&tree), Delimiter::Brace).is_some()
        {
            return;
        }
    }
}

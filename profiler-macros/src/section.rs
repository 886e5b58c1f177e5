//! The section macros: a guard for the rest of a block, and a block of its own.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Lit, LitStr, Path, Token};

use crate::args::{Args, Name};
use crate::errors::Errors;
use crate::item;
use crate::keys::{Key, SECTION};
use crate::site::{Entrance, Runtime};
use crate::values;

/// What a section is called.
enum Called {
    Text(LitStr),
    Built(Box<Expr>),
}

/// `scope!([crate] name, arguments…)`.
pub(crate) fn scope(input: TokenStream, strip: bool) -> TokenStream {
    let (runtime, tokens) = runtime_of(input);
    let mut errors = Errors::default();
    let section = Section::read(tokens, "scope!(\"name\")", &mut errors);
    let span = Span::mixed_site();
    match section {
        Some(section) if errors.is_empty() => {
            if strip {
                return quote_spanned!(span=> #runtime::Stripped);
            }
            section.guard(&runtime)
        }
        _ => {
            let errors = errors.into_tokens();
            quote_spanned!(span=> { #errors })
        }
    }
}

/// `context!([crate] name, arguments…, { block })`.
pub(crate) fn context(input: TokenStream, strip: bool) -> TokenStream {
    let (runtime, tokens) = runtime_of(input);
    let mut errors = Errors::default();
    let (before, block) = part_block(tokens, &mut errors);
    let usage = "measure_execution_time_context!(\"name\", { … })";
    let section = Section::read(before, usage, &mut errors);
    if let Some(block) = &block {
        refuse_await(block.stream(), &mut errors);
    }
    let span = Span::mixed_site();
    match section {
        Some(section) if errors.is_empty() => {
            let guard = (!strip).then(|| {
                let guard = section.guard(&runtime);
                quote_spanned!(span=> let _scope = #guard;)
            });
            let statements = block.as_ref().map(Group::stream);
            // Braces of the macro's own: of the user's, the compiler would say that they are not
            // needed around a single expression.
            let braces = span.located_at(block.map_or(span, |block| block.span()));
            quote_spanned!(braces=> { #guard #statements })
        }
        _ => {
            let errors = errors.into_tokens();
            quote_spanned!(span=> { #errors #block })
        }
    }
}

/// The runtime's path, which the outer macro puts first, and what the user wrote.
fn runtime_of(input: TokenStream) -> (Runtime, TokenStream) {
    let mut trees = input.into_iter();
    let first = trees.next();
    let path = item::group(first.as_ref(), Delimiter::Bracket)
        .and_then(|group| Path::parse_mod_style.parse2(group.stream()).ok());
    (Runtime::at(path.as_ref()), trees.collect())
}

/// Takes the block off the end, and the comma before it.
fn part_block(tokens: TokenStream, errors: &mut Errors) -> (TokenStream, Option<Group>) {
    let mut trees: Vec<TokenTree> = tokens.into_iter().collect();
    if item::is_punct(trees.last(), ',') {
        trees.pop();
    }
    let Some(block) = item::group(trees.last(), Delimiter::Brace) else {
        let last = trees.last().map_or_else(Span::call_site, TokenTree::span);
        errors.at(last, "expected the block to measure at the end; write `, { … }` after this");
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
    called: Called,
    args: Args,
}

impl Section {
    fn read(tokens: TokenStream, usage: &str, errors: &mut Errors) -> Option<Self> {
        if tokens.is_empty() {
            errors.at(Span::call_site(), format_args!("a section needs a name; write `{usage}`"));
            return None;
        }
        let parser = |input: ParseStream| {
            let called = read_name(input, usage)?;
            let mut args = Args::default();
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
                args.read(input, SECTION, errors);
            }
            Ok(Self { called, args })
        };
        let section = parser.parse2(tokens).map_err(|error| errors.push(error)).ok()?;
        if let (Called::Built(_), Some(span)) = (&section.called, section.args.written(Key::Every))
        {
            errors.at(
                span,
                "`every` counts the calls of one place, so it needs a name that is a string \
                 literal; write the literal, or remove `every`",
            );
        }
        Some(section)
    }

    /// An expression that is the guard.
    fn guard(self, runtime: &Runtime) -> TokenStream {
        let span = Span::mixed_site();
        let Self { called, mut args } = self;
        match called {
            Called::Text(text) => {
                args.name = Some(Name::Literal(text));
                let scope = quote_spanned!(span=> scope);
                let guard = Entrance { args: &args, runtime }.guard(&scope);
                quote_spanned!(span=> { #guard scope })
            }
            Called::Built(name) => {
                // Off, not even the name is built.
                let begin = quote_spanned! {span=>
                    if #runtime::is_enabled() {
                        #runtime::begin_dynamic(&(#name))
                    } else {
                        #runtime::Entry::off()
                    }
                };
                let entry = Entrance { args: &args, runtime }.complete(&begin);
                quote_spanned!(span=> { #entry entry.start() })
            }
        }
    }
}

fn read_name(input: ParseStream, usage: &str) -> syn::Result<Called> {
    if input.peek(syn::Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]) {
        let message = format!("the name of a section comes first; write `{usage}`");
        return Err(input.error(message));
    }
    let name: Expr = input.parse()?;
    match values::literal(&name) {
        Some(Lit::Str(text)) => Ok(Called::Text(values::text_of(text, "the name")?)),
        Some(other) => {
            let found = values::kind(other);
            let message = format!("the name of a section is a text, not {found}; write `{usage}`");
            Err(syn::Error::new_spanned(&name, message))
        }
        None => Ok(Called::Built(Box::new(name))),
    }
}

/// Notes each `.await` that would run inside the block itself.
fn refuse_await(block: TokenStream, errors: &mut Errors) {
    let mut trees = block.into_iter().peekable();
    while let Some(tree) = trees.next() {
        if item::is_word(Some(&tree), "async") {
            // What follows is a future of its own: to the end of its block, or of its statement.
            for skipped in trees.by_ref() {
                let block = item::group(Some(&skipped), Delimiter::Brace).is_some();
                if block || item::is_punct(Some(&skipped), ';') {
                    break;
                }
            }
        } else if item::is_punct(Some(&tree), '.') && item::is_word(trees.peek(), "await") {
            errors.at(
                trees.peek().map_or_else(Span::call_site, TokenTree::span),
                "a section cannot hold `.await`, because its thread does other work meanwhile; \
                 write `future.measure_execution_time(\"name\").await`",
            );
        } else if let TokenTree::Group(group) = tree {
            refuse_await(group.stream(), errors);
        }
    }
}

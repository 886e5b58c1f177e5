//! The section macros: a guard for the rest of a block, and a block of its own.

use proc_macro2::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Lit, LitStr, Path, Token};

use crate::STRIP;
use crate::args::{Args, Name};
use crate::errors::Errors;
use crate::item;
use crate::keys::SECTION;
use crate::site::{Entrance, Runtime};
use crate::values;

/// What a section is called.
enum Called {
    Text(LitStr),
    Built(Box<Expr>),
}

/// How each macro is written.
const SCOPE: &str = "scope!(\"name\")";
const CONTEXT: &str = "measure_execution_time_context!(\"name\", { … })";
const RECORD: &str = "record_function!(\"name\")";
const RECORD_BLOCK: &str = "record_function!(\"name\", { … })";

/// `scope!([crate] name, arguments…)`.
pub(crate) fn scope(input: TokenStream) -> TokenStream {
    guard(input, SCOPE)
}

/// `context!([crate] name, arguments…, { block })`.
pub(crate) fn context(input: TokenStream) -> TokenStream {
    block(input, CONTEXT)
}

/// `record_function!([crate] name, arguments…)`, with a block at the end or without.
pub(crate) fn record_function(input: TokenStream) -> TokenStream {
    if ends_with_a_block(input.clone()) {
        block(input, RECORD_BLOCK)
    } else {
        guard(input, RECORD)
    }
}

/// Whether braces stand at the end that belong to no argument: after a comma, a name, or nothing.
fn ends_with_a_block(input: TokenStream) -> bool {
    // The path of the runtime comes first.
    let mut trees: Vec<TokenTree> = input.into_iter().skip(1).collect();
    if item::is_punct(trees.last(), ',') {
        trees.pop();
    }
    let block = item::group(trees.pop().as_ref(), Delimiter::Brace);
    block.is_some() && (trees.len() < 2 || item::is_punct(trees.last(), ','))
}

fn guard(input: TokenStream, usage: &str) -> TokenStream {
    let (runtime, tokens) = runtime_of(input);
    let mut errors = Errors::default();
    let section = Section::read(tokens, usage, &mut errors);
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

fn block(input: TokenStream, usage: &str) -> TokenStream {
    let (runtime, tokens) = runtime_of(input);
    let mut errors = Errors::default();
    let (before, block) = part_block(tokens, &mut errors);
    let section = Section::read(before, usage, &mut errors);
    if let Some(block) = &block {
        refuse_await(block.stream(), &mut errors);
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
    // Braces of the macro's own: of the user's, the compiler would say that they are not needed
    // around a single expression.
    let braces = span.located_at(block.map_or(span, |block| block.span()));
    quote_spanned!(braces=> { #first #statements })
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
    called: Called,
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
            let called = read_name(input, usage)?;
            let mut args = Args::default();
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
                args.read(input, SECTION, errors);
            }
            Ok(Self { called, args })
        };
        parser
            .parse2(tokens)
            .map_err(|error| errors.push(error))
            .ok()
    }

    /// An expression that is the guard.
    fn guard(mut self, runtime: &Runtime) -> TokenStream {
        let span = Span::mixed_site();
        match self.called {
            Called::Text(text) => {
                self.args.name = Some(Name::Literal(text));
                let entrance = Entrance {
                    args: &self.args,
                    runtime,
                    place: None,
                };
                entrance.plain_guard().unwrap_or_else(|| {
                    let entry = entrance.entry();
                    quote_spanned!(span=> { #entry __profiler_entry.start() })
                })
            }
            Called::Built(_) => {
                let root = runtime.root();
                let begin = self.begin_built(runtime);
                // Off, not even the name is built.
                let begin = quote_spanned! {span=>
                    if #root::is_enabled() { #begin } else { #runtime::Entry::off() }
                };
                let entry = self.entry(&begin, runtime);
                quote_spanned!(span=> { #entry __profiler_entry.start() })
            }
        }
    }

    /// A statement that does nothing, so that what the arguments mention is not unused in a stripped
    /// build.
    fn unused(self, runtime: &Runtime) -> TokenStream {
        let span = Span::mixed_site();
        let begin = match self.called {
            Called::Text(_) if self.args.is_plain() => return TokenStream::new(),
            Called::Text(_) => quote_spanned!(span=> #runtime::Entry::off()),
            Called::Built(_) => self.begin_built(runtime),
        };
        let entry = self.entry(&begin, runtime);
        quote_spanned!(span=> if false { #entry let __profiler_scope = __profiler_entry.start(); })
    }

    fn begin_built(&self, runtime: &Runtime) -> TokenStream {
        let span = Span::mixed_site();
        let Called::Built(name) = &self.called else {
            return TokenStream::new();
        };
        let every = self.args.every.map(|every| {
            let every = Literal::u32_unsuffixed(every);
            quote_spanned!(span=> .every(#every))
        });
        quote_spanned!(span=> #runtime::begin_dynamic(&(#name)) #every)
    }

    fn entry(&self, begin: &TokenStream, runtime: &Runtime) -> TokenStream {
        Entrance {
            args: &self.args,
            runtime,
            place: None,
        }
        .complete(begin)
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

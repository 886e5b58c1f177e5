//! A `#[test]` attribute that runs each test in a process of its own.
//!
//! The profiler's state belongs to the process: its names, its switch, its threads, its exit handler. Two tests in
//! one process would see each other's calls. The attribute keeps Rust's own test harness, so that filters, `--skip`
//! and the summary work as usual; `profiler_tests::isolated` starts the processes.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Marks a test which runs in a process of its own.
///
/// The function takes no arguments, and returns nothing or a `Result`. Attributes below this one are kept.
#[proc_macro_attribute]
pub fn test(_arguments: TokenStream, function: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let is_fn =
        |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident.to_string() == "fn");
    let name = tokens
        .iter()
        .skip_while(|token| !is_fn(token))
        .nth(1)
        .map(ToString::to_string);
    let (Some(name), Some(TokenTree::Group(body))) = (name, tokens.pop()) else {
        return error("`#[test]` marks a function with a body");
    };
    if body.delimiter() != Delimiter::Brace {
        return error("`#[test]` marks a function with a body");
    }
    let mut isolated = parse(&format!(
        "if ::profiler_tests::isolated::ran_elsewhere(::core::concat!(::core::module_path!(), \"::{name}\")) {{ return ::profiler_tests::isolated::passed(); }}"
    ));
    // As a block, so that its items still precede its statements.
    isolated.extend([TokenTree::Group(body)]);
    let mut test = parse("#[::core::prelude::v1::test]");
    test.extend(tokens);
    test.extend([TokenTree::Group(Group::new(Delimiter::Brace, isolated))]);
    test
}

fn parse(code: &str) -> TokenStream {
    code.parse().unwrap_or_default()
}

fn error(message: &str) -> TokenStream {
    parse(&format!("::core::compile_error!({message:?});"))
}

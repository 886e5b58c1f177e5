//! A `#[test]` attribute that runs each test in a process of its own.
//!
//! The profiler's state belongs to the process: its names, its switch, its threads, its exit handler. Two tests in
//! one process would see each other's calls. The attribute keeps Rust's own test harness, so that filters, `--skip`
//! and the summary work as usual; `profiler_tests::isolated` starts the processes.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// Marks a test which runs in a process of its own.
///
/// The function takes no arguments, and returns nothing or a `Result`. Attributes below this one are kept.
///
/// The attribute takes, separated by commas:
///
/// - `measuring`: where nothing is measured, the test passes at once.
/// - `on = driver()`: the body runs in one more process, which has a simulated driver. `profiler_tests::gpu::OnDriver` says
///   how that process is set up, in which cases, and what must hold after it. Where nothing is measured, the test passes
///   at once.
/// - `env = [("NAME", "value")]`: variables of the test's process.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let arguments = match Arguments::parse(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return error,
    };
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let is_fn =
        |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident.to_string() == "fn");
    let name = tokens
        .iter()
        .skip_while(|token| !is_fn(token))
        .nth(1)
        .map(ToString::to_string);
    let body = match (&name, tokens.pop()) {
        (Some(_), Some(TokenTree::Group(body))) if body.delimiter() == Delimiter::Brace => body,
        _ => return error(Span::call_site(), "`#[test]` marks a function with a body"),
    };
    let name = name.unwrap_or_default();
    let passed = "{ return ::profiler_tests::isolated::passed(); }";
    let mut isolated = parse(&format!(
        "let path = ::core::concat!(::core::module_path!(), \"::{name}\");"
    ));
    isolated.extend(parse("if ::profiler_tests::isolated::ran_elsewhere"));
    let mut of_process = parse("path, &");
    of_process.extend(arguments.env.unwrap_or_else(|| parse("[]")));
    isolated.extend([group(Delimiter::Parenthesis, of_process)]);
    isolated.extend(parse(passed));
    if arguments.measuring {
        isolated.extend(parse(&format!(
            "if ::profiler_tests::isolated::is_unmeasured() {passed}"
        )));
    }
    if let Some(driver) = arguments.on {
        isolated.extend(parse("if ::profiler_tests::gpu::ran_on"));
        let mut closure = parse("||");
        closure.extend(driver);
        isolated.extend([group(Delimiter::Parenthesis, closure)]);
        isolated.extend(parse(passed));
    }
    // As a block, so that its items still precede its statements.
    isolated.extend([TokenTree::Group(body)]);
    let mut test = parse("#[::core::prelude::v1::test]");
    test.extend(tokens);
    test.extend([group(Delimiter::Brace, isolated)]);
    test
}

/// What the attribute says.
#[derive(Default)]
struct Arguments {
    measuring: bool,
    on: Option<TokenStream>,
    env: Option<TokenStream>,
}

impl Arguments {
    /// Parses the tokens in the attribute's parentheses, or returns a compile error where they are wrong.
    fn parse(arguments: TokenStream) -> Result<Self, TokenStream> {
        let mut parsed = Self::default();
        let mut tokens = arguments.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let TokenTree::Ident(name) = token else {
                return Err(error(token.span(), EXPECTED));
            };
            let rest: Vec<TokenTree> =
                std::iter::from_fn(|| tokens.next_if(|token| !is(token, ','))).collect();
            tokens.next();
            parsed.set(&name, rest)?;
        }
        Ok(parsed)
    }

    fn set(&mut self, name: &Ident, rest: Vec<TokenTree>) -> Result<(), TokenStream> {
        let wrong = |message: &str| Err(error(name.span(), message));
        let value = match &rest[..] {
            [] => None,
            [equals, _, ..] if is(equals, '=') => Some(rest.into_iter().skip(1).collect()),
            [token, ..] => return Err(error(token.span(), EXPECTED)),
        };
        let is_set = match (name.to_string().as_str(), value) {
            ("measuring", None) => std::mem::replace(&mut self.measuring, true),
            ("on", Some(driver)) => self.on.replace(driver).is_some(),
            ("env", Some(variables)) => self.env.replace(variables).is_some(),
            _ => return wrong(EXPECTED),
        };
        if is_set {
            return wrong("the argument is given twice");
        }
        Ok(())
    }
}

const EXPECTED: &str =
    "`#[test]` takes `measuring`, `on = driver()` and `env = [(\"NAME\", \"value\")]`";

fn is(token: &TokenTree, punctuation: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == punctuation)
}

fn group(delimiter: Delimiter, tokens: TokenStream) -> TokenTree {
    TokenTree::Group(Group::new(delimiter, tokens))
}

fn parse(code: &str) -> TokenStream {
    code.parse().unwrap_or_default()
}

/// Returns a compile error at a place.
fn error(place: Span, message: &str) -> TokenStream {
    let at_place = |mut token: TokenTree| {
        token.set_span(place);
        token
    };
    parse(&format!("::core::compile_error!{{{message:?}}}"))
        .into_iter()
        .map(at_place)
        .collect()
}

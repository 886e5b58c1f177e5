//! stub docs
mod args;
mod attributes;
mod block;
mod errors;
mod function;
mod futures;
mod item;
mod keys;
mod refuse;
mod section;
mod site;
mod values;

use args::Args;
use errors::Errors;
use item::{Head, Kind};
use proc_macro2::TokenStream;

const STRIP: bool = cfg!(feature = "strip");

/// attr
#[proc_macro_attribute]
pub fn measure_execution_time(
    arguments: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let as_written = if STRIP { Some(item.clone()) } else { None };
    let mut errors = Errors::default();
    let args = Args::of_attribute(arguments.into(), &mut errors);
    let measured = measured(item.into(), &args, &mut errors);
    if errors.is_empty() {
        return as_written.unwrap_or_else(|| measured.into());
    }
    let mut tokens = proc_macro::TokenStream::from(errors.into_tokens());
    tokens.extend(as_written.unwrap_or_else(|| measured.into()));
    tokens
}

fn measured(item: TokenStream, args: &Args, errors: &mut Errors) -> TokenStream {
    let trees = item::trees(item);
    let head = Head::read(&trees);
    match head.kind {
        _ if args.skip => trees.into_iter().collect(),
        Kind::Impl | Kind::Module => {
            refuse::name_on_block(args, head.kind, errors);
            refuse::module_elsewhere(&trees, errors);
            block::measured(trees, args, errors)
        }
        _ => refuse::or_measure(trees, head, args, errors),
    }
}

/// scope
#[doc(hidden)]
#[proc_macro]
pub fn scope(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    section::scope(input.into(), STRIP).into()
}

/// context
#[doc(hidden)]
#[proc_macro]
pub fn context(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    section::context(input.into(), STRIP).into()
}

//! `impl` blocks and inline modules: every function inside that can be measured.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::args::Args;
use crate::attributes::{self, Attribute};
use crate::errors::Errors;
use crate::function::Function;
use crate::item::{self, Head, Kind};
use crate::refuse;
use crate::split::{self, Part};

/// A block with the functions inside it measured; what is wrong inside is noted, and left as it
/// was written.
pub(crate) fn measured(mut trees: Vec<TokenTree>, args: &Args, errors: &mut Errors) -> TokenStream {
    let Some(body) = item::group(trees.last(), Delimiter::Brace) else {
        return trees.into_iter().collect();
    };
    trees.pop();
    let mut group = Group::new(Delimiter::Brace, inside(&item_trees(&body), args, errors));
    group.set_span(body.span());
    trees.into_iter().chain([TokenTree::Group(group)]).collect()
}

fn item_trees(body: &Group) -> Vec<TokenTree> {
    body.stream().into_iter().collect()
}

/// The items of a block, one after the other. Once one has no end that is certain, what is left stays as
/// it was written, and the mistake is noted: nothing is left out silently.
fn inside(mut rest: &[TokenTree], args: &Args, errors: &mut Errors) -> TokenStream {
    let mut tokens = TokenStream::new();
    while !rest.is_empty() {
        let length = match split::first(rest) {
            Part::InnerAttribute(length) => {
                tokens.extend(rest[..length].iter().cloned());
                length
            }
            Part::Item(length) => {
                tokens.extend(member(rest[..length].to_vec(), args, errors));
                length
            }
            Part::Unfinished => {
                tokens.extend(rest.iter().cloned());
                rest.len()
            }
            Part::Unclear => {
                refuse::unclear_item(rest, errors);
                tokens.extend(rest.iter().cloned());
                rest.len()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

/// One item of a block.
fn member(trees: Vec<TokenTree>, block: &Args, errors: &mut Errors) -> TokenStream {
    let trees = item::without_fragment(trees);
    let head = Head::read(&trees);
    let own = Own::of(&trees, &head, errors);
    let bare = own.without_attributes(trees);
    let head = Head::read(&bare);
    let explicit = own.arguments.is_some();
    let args = own.arguments.unwrap_or_default();
    if args.skip || own.refused {
        return bare.into_iter().collect();
    }
    let args = args.or(block);
    match head.kind {
        Kind::Function if explicit => refuse::or_measure(bare, head, &args, true, errors),
        Kind::Function if head.constant.is_some() || own.naked => bare.into_iter().collect(),
        Kind::Function => match Function::new(head, bare) {
            Ok(function) => refuse::or_measure_function(function, &args, true, errors),
            Err(trees) => trees.into_iter().collect(),
        },
        Kind::Impl | Kind::Module => {
            refuse::name_on_block(&args, head.kind, errors);
            measured(bare, &args, errors)
        }
        Kind::Trait => measured(bare, &args, errors),
        _ if explicit => refuse::or_measure(bare, head, &args, true, errors),
        _ => bare.into_iter().collect(),
    }
}

/// What the attributes of a member say to this crate.
#[derive(Default)]
struct Own {
    arguments: Option<Args>,
    at: Vec<usize>,
    naked: bool,
    refused: bool,
}

impl Own {
    fn of(trees: &[TokenTree], head: &Head, errors: &mut Errors) -> Self {
        let mut own = Self::default();
        for (at, attribute) in attributes::of(trees, head.attributes_end) {
            match attribute {
                Attribute::Own { span, .. } if own.arguments.is_some() => {
                    errors.at(span, refuse::TWICE);
                    own.at.push(at);
                }
                Attribute::Own { arguments, .. } => {
                    own.arguments = Some(Args::of_attribute(arguments, errors));
                    own.at.push(at);
                }
                Attribute::ConditionalOwn(span) => {
                    errors.at(span, refuse::CONDITIONAL);
                    own.refused = true;
                }
                Attribute::Naked(_) => own.naked = true,
                Attribute::Other => {}
            }
        }
        own
    }

    /// The member without this crate's attributes.
    fn without_attributes(&self, trees: Vec<TokenTree>) -> Vec<TokenTree> {
        if self.at.is_empty() {
            return trees;
        }
        let own = |index: usize| self.at.iter().any(|at| index == *at || index == at + 1);
        trees
            .into_iter()
            .enumerate()
            .filter(|(index, _)| !own(*index))
            .map(|(_, tree)| tree)
            .collect()
    }
}

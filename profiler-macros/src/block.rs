//! The expansion of `impl` blocks and inline modules: measures every function inside that can be
//! measured.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::args::Args;
use crate::attributes::{self, Attribute};
use crate::errors::Errors;
use crate::function::Function;
use crate::item::{self, Head, Kind};
use crate::reject;
use crate::split::{self, Part};

/// Returns a block with the functions inside it measured. Reports an item that is wrong, and leaves
/// it as it was written.
pub(crate) fn measured(mut trees: Vec<TokenTree>, args: &Args, errors: &mut Errors) -> TokenStream {
    let Some(body) = item::group(trees.last(), Delimiter::Brace) else {
        return trees.into_iter().collect();
    };
    trees.pop();
    let end = item::skip_attributes(&trees);
    let mut args = args.clone();
    args.keeps_names |= !attributes::are_built_in(&trees, end);
    let mut group = Group::new(Delimiter::Brace, inside(&item_trees(&body), &args, errors));
    group.set_span(body.span());
    trees.into_iter().chain([TokenTree::Group(group)]).collect()
}

fn item_trees(body: &Group) -> Vec<TokenTree> {
    body.stream().into_iter().collect()
}

/// Expands the items of a block one after the other. If the end of an item cannot be found, reports
/// that and leaves the rest of the block as it was written, so that no function is skipped
/// silently.
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
                reject::unclear_item(rest, errors);
                tokens.extend(rest.iter().cloned());
                rest.len()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

/// Expands one item of a block.
fn member(trees: Vec<TokenTree>, block: &Args, errors: &mut Errors) -> TokenStream {
    let trees = item::without_fragment(trees);
    let head = Head::read(&trees);
    let own = OwnAttributes::of(&trees, &head, errors);
    let bare = own.without_attributes(trees);
    let head = Head::read(&bare);
    let explicit = own.arguments.is_some();
    let args = own.arguments.unwrap_or_default();
    if args.skip || own.rejected {
        return bare.into_iter().collect();
    }
    let args = args.inherit(block);
    match head.kind {
        Kind::Function if explicit => reject::measure_or_reject(bare, head, &args, true, errors),
        Kind::Function if head.constant.is_some() || own.naked => bare.into_iter().collect(),
        Kind::Function => match Function::new(head, bare) {
            Ok(function) => reject::measure_function(function, &args, true, errors),
            Err(trees) => trees.into_iter().collect(),
        },
        Kind::Impl | Kind::Module | Kind::Trait => {
            reject::name_on_block(&args, head.kind, errors);
            if explicit {
                reject::module_in_another_file(&bare, head.kind, errors);
            }
            measured(bare, &args, errors)
        }
        _ if explicit => reject::measure_or_reject(bare, head, &args, true, errors),
        _ => bare.into_iter().collect(),
    }
}

/// The attributes of a member that matter to this crate.
#[derive(Default)]
struct OwnAttributes {
    arguments: Option<Args>,
    /// The index of the `#` of each attribute of this crate.
    at: Vec<usize>,
    naked: bool,
    rejected: bool,
}

impl OwnAttributes {
    fn of(trees: &[TokenTree], head: &Head, errors: &mut Errors) -> Self {
        let mut own = Self::default();
        for (at, attribute) in attributes::of(trees, head.attributes_end) {
            match attribute {
                Attribute::Own { span, .. } if own.arguments.is_some() => {
                    errors.at(span, reject::TWICE);
                    own.at.push(at);
                }
                Attribute::Own { arguments, .. } => {
                    own.arguments = Some(Args::of_attribute(arguments, errors));
                    own.at.push(at);
                }
                Attribute::ConditionalOwn(span) => {
                    errors.at(span, reject::CONDITIONAL);
                    own.rejected = true;
                }
                Attribute::Naked(_) => own.naked = true,
                Attribute::Other => {}
            }
        }
        own
    }

    /// Returns the member without this crate's attributes.
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

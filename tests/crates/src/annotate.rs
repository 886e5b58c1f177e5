//! Adds the attribute to the functions of a source file, and changes nothing else.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{AttrStyle, Attribute, ImplItemFn, ItemFn, ItemImpl, Signature, TraitItemFn};

const ATTRIBUTE: &str = "#[::profiler_runtime::measure_execution_time]";

/// The items to annotate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each function.
    Functions,
    /// Each `impl` block, and the functions outside of such blocks.
    Blocks,
}

/// A source file with the attributes added.
#[derive(Debug)]
pub(crate) struct Annotated {
    pub(crate) text: String,
    /// The number of functions that are measured.
    pub(crate) functions: usize,
}

/// Annotates the text of a source file.
///
/// Skips each `const fn`, which the attribute rejects, and the arguments of macros, which contain
/// no functions before expansion.
///
/// # Errors
///
/// Returns an error if the text is not Rust.
pub(crate) fn annotate(text: &str, form: Form) -> Result<Annotated, syn::Error> {
    let file = syn::parse_file(text)?;
    let mut places = Places {
        form,
        found: Vec::new(),
        functions: 0,
    };
    places.visit_file(&file);
    let mut annotated = text.to_owned();
    // From the end, so that earlier positions stay valid.
    places.found.sort_by_key(|place| place.at);
    for place in places.found.iter().rev() {
        annotated.insert_str(place.at, &place.written());
    }
    Ok(Annotated {
        text: annotated,
        functions: places.functions,
    })
}

/// A position at which to insert an attribute.
struct Place {
    /// The offset in bytes from the beginning of the file.
    at: usize,
    /// The attribute follows others, and the last of them may be a comment that ends with the line.
    follows: bool,
}

impl Place {
    fn written(&self) -> String {
        if self.follows {
            format!("\n{ATTRIBUTE}\n")
        } else {
            format!("{ATTRIBUTE} ")
        }
    }
}

struct Places {
    form: Form,
    found: Vec<Place>,
    functions: usize,
}

impl Places {
    /// Inserts the attribute alternately above and below the other ones of an item: both must work.
    fn add(&mut self, attributes: &[Attribute], item: &impl Spanned) {
        let outer = attributes
            .iter()
            .rfind(|attribute| matches!(attribute.style, AttrStyle::Outer));
        self.found.push(match outer {
            Some(last) if self.found.len() % 2 == 1 => Place {
                at: last.span().byte_range().end,
                follows: true,
            },
            _ => Place {
                at: item.span().byte_range().start,
                follows: false,
            },
        });
    }

    fn add_function(
        &mut self,
        attributes: &[Attribute],
        signature: &Signature,
        item: &impl Spanned,
    ) {
        if can_be_measured(attributes, signature) {
            self.functions += 1;
            self.add(attributes, item);
        }
    }
}

fn can_be_measured(attributes: &[Attribute], signature: &Signature) -> bool {
    let is_naked = |attribute: &Attribute| attribute.path().is_ident("naked");
    signature.constness.is_none() && !attributes.iter().any(is_naked)
}

impl<'ast> Visit<'ast> for Places {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.add_function(&function.attrs, &function.sig, function);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if self.form == Form::Functions {
            self.add_function(&function.attrs, &function.sig, function);
        } else if can_be_measured(&function.attrs, &function.sig) {
            self.functions += 1;
        }
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if function.default.is_some() {
            self.add_function(&function.attrs, &function.sig, function);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        // Skip a block without functions: the attribute would do nothing on it.
        let measures = block.items.iter().any(|item| match item {
            syn::ImplItem::Fn(function) => can_be_measured(&function.attrs, &function.sig),
            _ => false,
        });
        if self.form == Form::Blocks && measures {
            self.add(&block.attrs, block);
        }
        visit::visit_item_impl(self, block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotated(text: &str, form: Form) -> String {
        annotate(text, form).expect("it is Rust").text
    }

    #[test]
    fn each_function_gets_the_attribute_above_or_below_its_others() {
        let text = "/// One\nfn a() {}\n/// Two\npub fn b() {}\nfn c() {}\n";
        assert_eq!(
            annotated(text, Form::Functions),
            format!(
                "{ATTRIBUTE} /// One\nfn a() {{}}\n/// Two\n{ATTRIBUTE}\n\npub fn b() {{}}\n\
                 {ATTRIBUTE} fn c() {{}}\n"
            )
        );
    }

    #[test]
    fn functions_inside_of_functions_blocks_and_modules_are_found() {
        let text = "mod m { impl X { fn a() { fn b() {} } } trait T { fn c() {} fn d(); } }";
        let functions = annotate(text, Form::Functions).expect("it is Rust");
        assert_eq!(functions.functions, 3);
        assert_eq!(functions.text.matches(ATTRIBUTE).count(), 3);
    }

    #[test]
    fn a_const_fn_is_left_alone_and_so_is_a_block_of_nothing_else() {
        let text = "impl X { const fn a() {} const N: u32 = 1 << 3; }";
        assert_eq!(annotated(text, Form::Functions), text);
        assert_eq!(annotated(text, Form::Blocks), text);
    }

    #[test]
    fn a_block_gets_one_attribute_for_all_its_functions() {
        let text = "impl X { fn a() {} fn b() {} }\nfn c() {}";
        let blocks = annotate(text, Form::Blocks).expect("it is Rust");
        assert_eq!(blocks.functions, 3);
        assert_eq!(
            blocks.text,
            format!("{ATTRIBUTE} impl X {{ fn a() {{}} fn b() {{}} }}\n{ATTRIBUTE} fn c() {{}}")
        );
    }

    #[test]
    fn places_count_bytes_and_not_characters() {
        let text = "// ä€\nfn a() {}";
        assert_eq!(
            annotated(text, Form::Functions),
            format!("// ä€\n{ATTRIBUTE} fn a() {{}}")
        );
    }
}

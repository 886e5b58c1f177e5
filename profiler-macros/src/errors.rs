//! Collects errors, so that one build shows all of them.

use std::fmt::Display;

use proc_macro2::{Span, TokenStream};

/// The errors found in one use of a macro.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds an error at `span`.
    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.push(syn::Error::new(span, message));
    }

    /// Adds an error.
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            none => *none = Some(error),
        }
    }

    /// Returns `true` if no error was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns one `compile_error!` for each error.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0
            .map(syn::Error::into_compile_error)
            .unwrap_or_default()
    }
}

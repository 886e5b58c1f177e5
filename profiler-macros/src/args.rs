//! The grammar of the arguments, shared by the attribute and the section macros.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, LitStr, Path, Token};

use crate::errors::Errors;
use crate::keys::{self, Key};
use crate::values::{self, Name};

/// The arguments of one attribute, or those of a section after its name.
#[derive(Clone, Default)]
pub(crate) struct Args {
    pub(crate) name: Option<Name>,
    pub(crate) log: Option<Expr>,
    pub(crate) global_step: Option<Expr>,
    pub(crate) bypass: Option<Expr>,
    pub(crate) log_every: Option<u32>,
    pub(crate) stream: Option<Expr>,
    pub(crate) shapes: Option<Vec<Expr>>,
    pub(crate) parent: Option<Expr>,
    pub(crate) sync: Option<bool>,
    pub(crate) cuda_graph: Option<bool>,
    pub(crate) per_instance: Option<bool>,
    pub(crate) skip: bool,
    pub(crate) krate: Option<Path>,
    /// `true` in a block with other attributes, which may read the names of parameters.
    pub(crate) keeps_names: bool,
    /// The span of each argument, in the order they were written.
    spans: Vec<(Key, Span)>,
}

impl Args {
    /// Reads the arguments of the attribute.
    pub(crate) fn of_attribute(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        if tokens.is_empty() {
            return args;
        }
        let parser = |input: ParseStream| {
            args.read(input, keys::ATTRIBUTE, errors);
            Ok(())
        };
        if let Err(error) = parser.parse2(tokens) {
            errors.push(error);
        }
        args
    }

    /// Reads arguments to the end of `input`. Reports and skips those that are wrong.
    pub(crate) fn read(&mut self, input: ParseStream, allowed: &[Key], errors: &mut Errors) {
        while !input.is_empty() {
            if let Err(error) = self.argument(input, allowed, errors) {
                errors.push(error);
                skip_argument(input);
            } else if !input.is_empty() && !input.peek(Token![,]) {
                errors.push(input.error("expected `,` between two arguments"));
                skip_argument(input);
            }
            // The input is now at its end or at a comma.
            let _comma = input.parse::<Option<Token![,]>>();
        }
        self.check_combination(errors);
    }

    /// Returns the arguments of a function inside a measured block: its own, and the block's for
    /// those that it does not have.
    pub(crate) fn inherit(self, block: &Self) -> Self {
        let named = self.name.is_some();
        let (sync, cuda_graph) = (self.sync == Some(true), self.cuda_graph == Some(true));
        Self {
            name: self.name,
            log: self.log.or_else(|| block.log.clone()),
            global_step: self.global_step.or_else(|| block.global_step.clone()),
            bypass: self.bypass.or_else(|| block.bypass.clone()),
            log_every: self.log_every.or(block.log_every),
            stream: self.stream.or_else(|| block.stream.clone()),
            shapes: self.shapes.or_else(|| block.shapes.clone()),
            parent: self.parent.or_else(|| block.parent.clone()),
            sync: inherited(self.sync, cuda_graph, block.sync),
            cuda_graph: inherited(self.cuda_graph, sync, block.cuda_graph),
            per_instance: inherited(self.per_instance, named, block.per_instance),
            skip: self.skip,
            krate: self.krate.or_else(|| block.krate.clone()),
            keeps_names: block.keeps_names,
            spans: self.spans,
        }
    }

    /// Returns `true` if nothing is to be evaluated at a call, because the arguments only give the
    /// call site its name.
    pub(crate) fn is_name_only(&self) -> bool {
        self.stream.is_none() && self.is_name_and_stream()
    }

    /// Returns `true` if nothing but the stream is to be evaluated at a call, if there is one.
    pub(crate) fn is_name_and_stream(&self) -> bool {
        !matches!(self.name, Some(Name::Const(_)))
            && self.per_instance != Some(true)
            && self.log.is_none()
            && self.global_step.is_none()
            && self.bypass.is_none()
            && self.log_every.is_none()
            && self.shapes.is_none()
            && self.parent.is_none()
            && self.sync != Some(true)
            && self.cuda_graph != Some(true)
    }

    /// Returns the arguments that are evaluated at each call.
    pub(crate) fn expressions(&self) -> TokenStream {
        let expressions = [
            &self.log,
            &self.global_step,
            &self.bypass,
            &self.stream,
            &self.parent,
        ];
        let shapes = self.shapes.iter().flatten();
        let expressions = expressions.into_iter().flatten().chain(shapes);
        expressions.map(ToTokens::to_token_stream).collect()
    }

    /// Returns the span of an argument, if it was written.
    pub(crate) fn span_of(&self, key: Key) -> Option<Span> {
        self.spans
            .iter()
            .find(|(other, _)| *other == key)
            .map(|(_, span)| *span)
    }

    /// Returns the span of the last argument that is among `keys`.
    fn last_span_of(&self, keys: &[Key]) -> Option<Span> {
        self.spans
            .iter()
            .rfind(|(key, _)| keys.contains(key))
            .map(|(_, span)| *span)
    }

    /// Reports arguments that exclude each other.
    fn check_combination(&self, errors: &mut Errors) {
        if let Some(span) = self.span_of(Key::Skip).filter(|_| self.spans.len() > 1) {
            errors.at(
                span,
                "`skip` excludes the function from measuring, so other arguments have no effect; \
                 keep `skip` alone, or remove it",
            );
        }
        if let (Some(_), Some(true)) = (&self.name, self.per_instance)
            && let Some(span) = self.span_of(Key::PerInstance)
        {
            errors.at(
                span,
                "`name` gives all instances one name and `per_instance` gives each its own; \
                 remove one of the two",
            );
        }
        if let (Some(true), Some(true)) = (self.sync, self.cuda_graph)
            && let Some(span) = self.last_span_of(&[Key::Sync, Key::CudaGraph])
        {
            errors.at(
                span,
                "`sync` waits for the device at the end of the call, but captured work runs only \
                 when its graph is launched; remove one of the two",
            );
        }
    }

    fn argument(
        &mut self,
        input: ParseStream,
        allowed: &[Key],
        errors: &mut Errors,
    ) -> syn::Result<()> {
        let word = argument_word(input, allowed)?;
        let key = Key::find(&word.to_string()).filter(|key| allowed.contains(key));
        let Some(key) = key else {
            errors.at(word.span(), unknown(&word, allowed));
            skip_argument(input);
            return Ok(());
        };
        if self.span_of(key).is_some() {
            errors.at(
                word.span(),
                format_args!("`{}` is given twice; keep one", key.word()),
            );
            skip_argument(input);
            return Ok(());
        }
        self.spans.push((key, word.span()));
        self.value(key, &word, input)
    }

    /// Reads the value of an argument, after its word.
    fn value(&mut self, key: Key, word: &Ident, input: ParseStream) -> syn::Result<()> {
        if key == Key::Skip {
            self.skip = true;
            return values::none(key, input);
        }
        if let Some(flag) = self.flag(key) {
            *flag = Some(values::flag(key, word, input)?);
            return Ok(());
        }
        values::equals(key, word, input)?;
        match key {
            Key::Name => self.name = Some(values::name(input)?),
            Key::Log => self.log = Some(values::logger(input)?),
            Key::GlobalStep => self.global_step = Some(values::step(input)?),
            Key::Bypass => self.bypass = Some(values::condition(input)?),
            Key::LogEvery => self.log_every = Some(values::log_every(input)?),
            Key::Stream => self.stream = Some(values::stream(input)?),
            Key::Shapes => self.shapes = Some(values::shapes(input)?),
            Key::Parent => self.parent = Some(values::parent(input)?),
            Key::Crate => self.krate = Some(values::path(input)?),
            Key::PerInstance | Key::Sync | Key::CudaGraph | Key::Skip => {}
        }
        Ok(())
    }

    /// Returns the field of an argument that takes `true` or `false`.
    fn flag(&mut self, key: Key) -> Option<&mut Option<bool>> {
        match key {
            Key::PerInstance => Some(&mut self.per_instance),
            Key::Sync => Some(&mut self.sync),
            Key::CudaGraph => Some(&mut self.cuda_graph),
            _ => None,
        }
    }
}

/// Returns the value of a flag for a function in a block: its own value if it has one, else the
/// block's, unless another argument of the function excludes the flag.
fn inherited(own: Option<bool>, excluded: bool, block: Option<bool>) -> Option<bool> {
    own.or(block.filter(|_| !excluded))
}

/// Reads the word that an argument begins with.
fn argument_word(input: ParseStream, allowed: &[Key]) -> syn::Result<Ident> {
    if input.peek(LitStr) && allowed.contains(&Key::Name) {
        let text: LitStr = input.parse()?;
        let message = format!(
            "every argument has a name; write `name = \"{}\"`",
            text.value()
        );
        return Err(syn::Error::new(text.span(), message));
    }
    input.call(Ident::parse_any).map_err(|error| {
        let message = format!(
            "expected an argument; the arguments are {}",
            keys::list(allowed)
        );
        syn::Error::new(error.span(), message)
    })
}

/// Returns the error for a word that is not among the allowed arguments.
fn unknown(word: &Ident, allowed: &[Key]) -> String {
    let word = word.to_string();
    if word == Key::Name.word() {
        return "the name of a section comes first, without `name =`".to_owned();
    }
    match (Key::nearest(&word, allowed), Key::find(&word)) {
        (_, Some(_)) => format!(
            "`{word}` has no meaning for a section; the arguments are {}",
            keys::list(allowed)
        ),
        (Some(key), None) => format!("unknown argument `{word}`; did you mean `{}`?", key.word()),
        (None, None) => {
            format!(
                "unknown argument `{word}`; the arguments are {}",
                keys::list(allowed)
            )
        }
    }
}

/// Skips to the next comma that is not inside of a value, as between the parameters of a closure.
fn skip_argument(input: ParseStream) {
    while !values::ends(input) && (skip_value(input) || input.parse::<TokenTree>().is_ok()) {}
}

/// Skips a whole value with the `=` before it. Returns `false`, and skips nothing, if none comes next.
fn skip_value(input: ParseStream) -> bool {
    let ahead = input.fork();
    let is_value = ahead.parse::<Token![=]>().is_ok() && ahead.parse::<Expr>().is_ok();
    if is_value {
        input.advance_to(&ahead);
    }
    is_value
}

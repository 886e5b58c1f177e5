//! Compares expansions with the expected tokens, without compiling them.

mod blocks;
mod sections;

use proc_macro2::TokenStream;
use quote::quote;

use crate::args::Args;
use crate::errors::Errors;

/// Returns the expansion of the attribute, without spaces.
fn expand(arguments: TokenStream, item: TokenStream) -> String {
    let mut errors = Errors::default();
    let args = Args::of_attribute(arguments, &mut errors);
    let tokens = crate::expand(item, &args, &mut errors);
    assert!(errors.is_empty(), "{}", errors.into_tokens());
    text(&tokens)
}

/// Prints tokens without spaces, whose placement depends on the printer.
fn text(tokens: &TokenStream) -> String {
    tokens.to_string().split_whitespace().collect()
}

fn same(one: &str, other: &TokenStream) {
    assert_eq!(one, text(other));
}

#[cfg(not(feature = "strip"))]
fn contains(expanded: &str, tokens: &TokenStream) {
    assert!(expanded.contains(&text(tokens)), "{expanded}");
}

#[cfg(not(feature = "strip"))]
#[test]
fn the_documented_expansion_is_the_expansion() {
    let expanded = expand(
        quote!(),
        quote! {
            fn load(path: &Path) -> io::Result<Vec<u8>> {
                std::fs::read(path)
            }
        },
    );
    let documentation: String = include_str!("lib.rs")
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .skip_while(|line| *line != " becomes")
        .skip_while(|line| *line != " ```text")
        .skip(1)
        .take_while(|line| *line != " ```")
        .collect();
    let documented: TokenStream = documentation.parse().expect("it is code");
    same(&expanded, &documented);
}

#[cfg(not(feature = "strip"))]
#[test]
fn the_documented_arguments_are_the_expansion() {
    let expanded = expand(
        quote!(
            stream = &self.stream,
            sync,
            shapes = [x.shape(), w.shape()],
            log = self.board,
            global_step = self.epoch
        ),
        quote! {
            fn train(&mut self) {}
        },
    );
    let documentation: String = include_str!("lib.rs")
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .skip_while(|line| !line.starts_with(" if __profiler_builder.wants_stream()"))
        .take_while(|line| *line != " ```")
        .collect();
    let documented: TokenStream = documentation.parse().expect("it is code");
    contains(&expanded, &documented);
}

#[test]
fn half_typed_statements_are_unchanged() {
    // The compiler or the editor closes brackets before it calls the macro.
    for body in [
        "self.",
        "let x =",
        "if let Some()",
        "foo(&mut self.bar, )",
        "match x { Some(y) => }",
    ] {
        let statements: TokenStream = body.parse().expect("brackets match");
        let expanded = expand(quote!(), quote!(fn half(&self) { #statements }));
        let end = format!("{}}}", text(&statements));
        assert!(expanded.ends_with(&end), "{expanded}");
    }
}

#[test]
fn incomplete_items_are_unchanged() {
    for item in [
        "pub",
        "pub fn",
        "fn half",
        "fn half(",
        "impl",
        "impl Half",
        "async",
        "#[inline]",
    ] {
        let closed = if item.ends_with('(') {
            format!("{item})")
        } else {
            item.to_owned()
        };
        let tokens: TokenStream = closed.parse().expect("brackets match");
        same(&expand(quote!(), tokens.clone()), &tokens);
    }
}

#[cfg(not(feature = "strip"))]
#[test]
fn a_section_before_a_boxed_future_leaves_the_function_only_by_its_own_statements() {
    for (section, leaves) in [
        (quote!(measure!("clone", { self.clone() })), false),
        (quote!(profiler_runtime::scope!("clone")), false),
        (quote!(measure!("clone", { return ready() })), true),
        (quote!(vec![self.clone()]), true),
    ] {
        let expanded = expand(
            quote!(),
            quote! {
                fn poll(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
                    let this = #section;
                    Box::pin(async move { this.run().await })
                }
            },
        );
        assert_eq!(expanded.contains("call_once"), leaves, "{expanded}");
    }
}

#[cfg(not(feature = "strip"))]
#[test]
fn the_body_of_a_boxed_future_is_measured_in_place() {
    let expanded = expand(
        quote!(name = "poll"),
        quote! {
            fn poll(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
                let this = self.clone();
                Box::pin(async move { this.run().await })
            }
        },
    );
    // `tracing::instrument` looks for a boxed `async` block.
    let expected = quote! {
        let __profiler_task = {
            static SITE: ::profiler_runtime::__private::CallSite =
                ::profiler_runtime::__private::NEW_SITE;
            SITE.task_named("poll")
        };
        Box::pin(async move {
            ::profiler_runtime::__private::measure_in_place(
                &mut { __profiler_task },
                ::profiler_runtime::__private::pin!(async move { this.run().await })
            ).await
        })
    };
    assert!(
        expanded.ends_with(&format!("{}}}", text(&expected))),
        "{expanded}"
    );
    assert_eq!(
        expanded.matches("Box::pin").count(),
        1,
        "no second box: {expanded}"
    );
}

#[cfg(not(feature = "strip"))]
#[test]
fn an_async_function_moves_its_parameters_into_the_block() {
    let expanded = expand(
        quote!(),
        quote!(
            async fn f(&self, a: T, b: &str, (c, _): (u8, u8), mut d: u8, _: u8, _e: u8) {
                self.run(a, b, c, d).await
            }
        ),
    );
    let signature =
        quote!(async fn f(&self, a: T, b: &str, __arg0: (u8, u8), d: u8, __arg2: u8, _e: u8));
    assert!(expanded.starts_with(&text(&signature)), "{expanded}");
    let bindings = quote! {
        async move {
            let _ = &a;
            let __arg0 = __arg0;
            let (c, _) = __arg0;
            let mut d = d;
            let __arg2 = __arg2;
            let _ = __arg2;
            let _e = match _e { __profiler_value => __profiler_value };
            if false { return ::profiler_runtime::__private::never::<()>(); };
            { use {}; self.run(a, b, c, d).await }
        }
    };
    contains(&expanded, &bindings);
}

#[cfg(not(feature = "strip"))]
#[test]
fn an_attribute_may_use_the_parameters_of_an_async_function_by_name() {
    for attribute in [
        quote!(#[instrument(fields(b = b.len()))]),
        quote!(#[inline]),
    ] {
        let is_other = !attribute.to_string().contains("inline");
        let expanded = expand(
            quote!(),
            quote!(
                #attribute
                async fn f((a, _): (u8, u8), b: &str) { run(a, b).await }
            ),
        );
        let pattern = quote!((a, _): (u8, u8));
        assert_eq!(expanded.contains(&text(&pattern)), is_other, "{expanded}");
    }
}

#[cfg(not(feature = "strip"))]
#[test]
fn an_async_function_that_never_waits_keeps_its_statements() {
    for (body, waits) in [
        (
            quote!(spawn(async move { x.get().await }); assert!(x.is_set())),
            false,
        ),
        (quote!(x.get().await), true),
        (quote!(select!(x.get())), true),
    ] {
        let expanded = expand(quote!(), quote!(async fn f(x: X) { #body }));
        assert_eq!(expanded.contains("measure_in_place"), waits, "{expanded}");
        assert_eq!(expanded.contains("only_poll"), !waits, "{expanded}");
    }
}

#[cfg(not(feature = "strip"))]
#[test]
fn a_return_before_a_future_leaves_a_block_and_not_that_of_a_closure() {
    for (statement, expected) in [
        (
            quote!(if a || b {
                return x;
            }),
            quote!(if a || b {
                break '__profiler_body x;
            }),
        ),
        (
            quote!(match a {
                1 | 2 => return x,
                _ => {}
            }),
            quote!(1 | 2 => break '__profiler_body x),
        ),
        (
            quote!(
                fn inner() -> u8 {
                    return 1;
                }
            ),
            quote!(
                fn inner() -> u8 {
                    return 1;
                }
            ),
        ),
        (
            quote!(let f: fn(u8) = g; return x;),
            quote!(break '__profiler_body x;),
        ),
        (
            quote!(let f = async move { return 1 };),
            quote!(async move { return 1 };),
        ),
        (
            quote!(let f = |a| { if a { return 1 } 2 };),
            quote!(call_once),
        ),
        (quote!(ensure!(a);), quote!(call_once)),
    ] {
        let expanded = expand(
            quote!(),
            quote!(fn f() -> BoxFuture<'static, u8> { #statement made() }),
        );
        contains(&expanded, &expected);
    }
}

#[test]
fn a_block_keeps_items_that_cannot_be_measured() {
    let block = quote! {
        impl<T, const N: usize> Model<T, { N }> where T: Fn() -> u8 {
            const LIMIT: usize = { 1 };
            type Item = Vec<T>;
            pub const fn new() -> Self { Self }
            made!();
            fn declared(&self);
        }
    };
    same(&expand(quote!(), block.clone()), &block);
}

#[cfg(not(feature = "strip"))]
#[test]
fn a_functions_arguments_override_those_of_its_block() {
    let expanded = expand(
        quote!(log_every = 10, bypass = off()),
        quote! {
            mod m {
                #[inline]
                #[measure_execution_time(log_every = 2, name = "own")]
                fn own() {}
                #[profiler_runtime::measure_execution_time(skip)]
                fn skipped() {}
            }
        },
    );
    contains(&expanded, &quote!(begin_named("own", 2)));
    contains(&expanded, &quote!(= off();));
    contains(&expanded, &quote!(#[inline] fn own()));
    let skipped = quote! { fn skipped() {} };
    contains(&expanded, &skipped);
    assert!(!expanded.contains("#[measure_execution_time"), "{expanded}");
}

#[cfg(not(feature = "strip"))]
#[test]
fn the_stream_is_set_before_the_logger_and_the_step() {
    let expanded = expand(
        quote!(
            global_step = self.epoch,
            log = self.board,
            stream = &self.stream,
            bypass = off()
        ),
        quote!(
            fn train(&mut self) {}
        ),
    );
    let expected = quote! {
        if __profiler_builder.wants_stream() { __profiler_builder.stream(&self.stream); }
        if __profiler_builder.wants_log() { __profiler_builder.log_in_place(&self.board); }
        if __profiler_builder.wants_step() { __profiler_builder.step(self.epoch); }
        __profiler_builder.start()
    };
    contains(&expanded, &expected);
    let binding = "let__profiler_scope={letmut__profiler_builder=";
    assert!(expanded.contains(binding), "{expanded}");
    // The expression may be expensive, so it occurs once.
    assert_eq!(expanded.matches("self.stream").count(), 1, "{expanded}");
}

#[cfg(not(feature = "strip"))]
#[test]
fn only_a_stream_alone_has_the_builder_of_streams() {
    let begins_on_stream = |arguments, function| {
        let expanded = expand(arguments, function);
        let begins = expanded.contains(&text(&quote!(SITE.begin_on_stream::<Here>())));
        assert!(begins || expanded.contains("SITE.begin"), "{expanded}");
        begins
    };
    let function = || {
        quote!(
            fn train(&self) {}
        )
    };
    assert!(begins_on_stream(quote!(stream = &self.stream), function()));
    assert!(!begins_on_stream(
        quote!(stream = &self.stream, log_every = 2),
        function()
    ));
    assert!(!begins_on_stream(
        quote!(stream = &self.stream, sync),
        function()
    ));
    assert!(!begins_on_stream(
        quote!(stream = &self.stream, bypass = off()),
        function()
    ));
    assert!(!begins_on_stream(quote!(log = self.board), function()));
    assert!(!begins_on_stream(
        quote!(stream = STREAM),
        quote!(
            async fn fetch() {}
        )
    ));
}

#[cfg(not(feature = "strip"))]
#[test]
fn the_stream_of_a_future_is_set_before_its_task_is_created() {
    let expected = quote!(if __profiler_builder.wants_stream() {
        __profiler_builder.stream(stream);
    });
    for function in [
        quote!(
            async fn fetch(stream: &CudaStream) {}
        ),
        quote!(
            fn fetch(stream: &CudaStream) -> BoxFuture<'_, ()> {
                Box::pin(async {})
            }
        ),
    ] {
        let expanded = expand(quote!(stream = stream), function);
        contains(&expanded, &expected);
        assert!(
            expanded.find("__profiler_builder.stream") < expanded.find("__profiler_builder.task"),
            "{expanded}"
        );
    }
}

#[cfg(not(feature = "strip"))]
#[test]
fn a_flag_without_a_value_means_true() {
    let function = quote!(
        fn f() {}
    );
    for (alone, set, unset, statement) in [
        (
            quote!(sync),
            quote!(sync = true),
            quote!(sync = false),
            quote!(__profiler_builder.synchronous(); __profiler_builder.start()),
        ),
        (
            quote!(cuda_graph),
            quote!(cuda_graph = true),
            quote!(cuda_graph = false),
            quote!(__profiler_builder.cuda_graph(); __profiler_builder.start()),
        ),
    ] {
        let expanded = expand(alone, function.clone());
        contains(&expanded, &statement);
        assert_eq!(expanded, expand(set, function.clone()));
        let plain = expand(quote!(), function.clone());
        assert_eq!(expand(unset, function.clone()), plain);
    }
    expand(quote!(sync = false, cuda_graph), function);
}

#[cfg(not(feature = "strip"))]
#[test]
fn a_function_inherits_the_stream_and_the_flags_of_its_block() {
    let expanded = expand(
        quote!(stream = &self.stream, sync),
        quote! {
            impl Trainer {
                fn train(&self) { 1 }
                #[measure_execution_time(cuda_graph)]
                fn capture(&self) { 2 }
                #[measure_execution_time(sync = false, stream = other)]
                async fn fetch(&self) { self.get().await }
            }
        },
    );
    let expected = |stream: TokenStream, how: TokenStream, last: TokenStream| quote!(if __profiler_builder.wants_stream() { __profiler_builder.stream(#stream); } #how #last);
    let start = quote!(__profiler_builder.start());
    let one = expected(
        quote!(&self.stream),
        quote!(__profiler_builder.synchronous();),
        start.clone(),
    );
    // The block of the guard ends before the body.
    assert!(expanded.contains(&(text(&one) + "};1")), "{expanded}");
    let two = expected(
        quote!(&self.stream),
        quote!(__profiler_builder.cuda_graph();),
        start,
    );
    assert!(expanded.contains(&(text(&two) + "};2")), "{expanded}");
    let three = expected(
        quote!(other),
        quote!(),
        quote!(::profiler_runtime::__private::measure),
    );
    contains(&expanded, &three);
}

#[cfg(not(feature = "strip"))]
#[test]
fn shapes_are_evaluated_in_order_and_only_if_wanted() {
    let expected = quote! {
        if __profiler_builder.wants_stream() { __profiler_builder.stream(stream); }
        if __profiler_builder.wants_shapes() { __profiler_builder.shape(&(x.shape())); __profiler_builder.shape(&(w)); }
        if __profiler_builder.wants_log() { __profiler_builder.log_in_place(&board); }
    };
    let arguments = quote!(log = board, shapes = [x.shape(), w], stream = stream);
    for function in [
        quote!(
            fn linear(x: &Array, w: (usize, usize)) {}
        ),
        quote!(
            async fn linear(x: &Array, w: (usize, usize)) {}
        ),
        quote!(
            fn linear(x: &Array, w: (usize, usize)) -> BoxFuture<'_, ()> {
                Box::pin(async {})
            }
        ),
    ] {
        contains(&expand(arguments.clone(), function), &expected);
    }
    let expanded = expand(
        arguments,
        quote!(
            impl Model {
                fn linear(&self) {}
                #[measure_execution_time(shapes = [y])]
                fn other(&self) {}
            }
        ),
    );
    contains(&expanded, &expected);
    contains(
        &expanded,
        &quote!(if __profiler_builder.wants_shapes() {
            __profiler_builder.shape(&(y));
        }),
    );
}

#[cfg(not(feature = "strip"))]
#[test]
fn a_parameter_that_only_the_shapes_use_is_marked_as_used() {
    let expanded = expand(
        quote!(shapes = [rows]),
        quote!(
            async fn f(x: u8, rows: usize) {
                run(x).await
            }
        ),
    );
    contains(&expanded, &quote!(let rows = rows; let _ = &rows;));
}

#[cfg(feature = "strip")]
#[test]
fn a_stripped_function_is_unchanged() {
    let function = quote! {
        /// Documented.
        #[inline]
        pub async unsafe fn f<T>(mut a: T) -> Vec<T> where T: Copy { #![allow(unused)] vec![a] }
    };
    same(
        &expand(
            quote!(
                log = logger,
                log_every = 2,
                stream = stream,
                shapes = [a.shape()]
            ),
            function.clone(),
        ),
        &function,
    );
}

#[cfg(not(feature = "strip"))]
#[test]
fn a_parameter_that_only_the_attribute_uses_is_marked_as_used() {
    for argument in [
        quote!(global_step = step + 1),
        quote!(log = logger(&format!("at {step}"))),
        quote!(log = logger(&format!("at {step:>3}"))),
    ] {
        let expanded = expand(
            argument,
            quote!(
                async fn f(x: u8, step: u64, other: u64) {
                    run(x).await
                }
            ),
        );
        contains(&expanded, &quote!(let step = step; let _ = &step;));
        assert!(!expanded.contains("&other"), "{expanded}");
    }
}

#[cfg(feature = "strip")]
#[test]
fn a_stripped_build_ignores_sync_and_captured() {
    let function = quote!(
        fn f(stream: &CudaStream) {}
    );
    for flag in [quote!(sync), quote!(cuda_graph)] {
        same(
            &expand(quote!(#flag, stream = stream), function.clone()),
            &function,
        );
    }
}

#[cfg(feature = "strip")]
#[test]
fn a_stripped_block_loses_only_the_attributes_of_this_crate() {
    let expanded = expand(
        quote!(),
        quote!(
            mod m {
                #[measure_execution_time(skip)]
                fn one() {}
                #[inline]
                fn two() {}
            }
        ),
    );
    same(
        &expanded,
        &quote!(
            mod m {
                fn one() {}
                #[inline]
                fn two() {}
            }
        ),
    );
}

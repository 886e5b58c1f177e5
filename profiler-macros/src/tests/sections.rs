//! The expansions of the section macros.

use quote::quote;

#[cfg(not(feature = "strip"))]
use super::contains;
use super::text;

#[cfg(not(feature = "strip"))]
#[test]
fn a_section_sets_its_stream_as_a_function_does() {
    let expected = quote! {
        if __profiler_builder.wants_stream() { __profiler_builder.stream(&stream); }
        __profiler_builder.synchronous();
        if __profiler_builder.wants_step() { __profiler_builder.step(1); }
        __profiler_builder.start()
    };
    for name in [quote!("launch"), quote!(format!("launch {layer}"))] {
        let section = quote!([profiler_runtime] #name, global_step = 1, sync, stream = &stream);
        contains(&text(&crate::section::guard(section.clone())), &expected);
        let section = quote!(#section, { launch() });
        contains(&text(&crate::section::block(section)), &expected);
    }
}

#[test]
fn a_section_rejects_awaits_of_its_own_but_not_those_of_futures_inside() {
    for (block, is_rejected) in [
        (quote!({ load().await }), true),
        (quote!({ join(async { a.await }, b.await) }), true),
        (quote!({ join(async |x, y| a.await, b.await) }), true),
        (quote!({ join(async || a.await, b) }), false),
        (
            quote!({ join(async move |x, y| a.await, async { b.await }) }),
            false,
        ),
        (
            quote!({
                async fn load() {
                    a.await
                }
            }),
            false,
        ),
    ] {
        let expanded = text(&crate::section::block(
            quote!([profiler_runtime] "load", #block),
        ));
        let rejected = expanded.contains("compile_error!");
        assert_eq!(rejected, is_rejected, "{expanded}");
    }
}

#[test]
fn measure_measures_a_block_at_its_end_and_else_returns_a_guard() {
    let name = quote!([profiler_runtime] "load");
    let run = quote!({ run() });
    for (arguments, is_block) in [
        (quote!(#name), false),
        (quote!(#name,), false),
        (quote!(#name, #run), true),
        (quote!(#name, #run,), true),
        (quote!(#name, global_step = 1, #run), true),
        (quote!(#name, global_step = { 1 }), false),
        (quote!(#name, log = move |_, _, _| { run() }), false),
        (quote!([profiler_runtime] format!("load {i}"), #run), true),
        (quote!([profiler_runtime] format!("load {i}")), false),
        // Errors name the form that the user meant.
        (quote!(#name #run), true),
        (quote!([profiler_runtime] #run), true),
    ] {
        let same = if is_block {
            crate::section::block(arguments.clone())
        } else {
            crate::section::guard(arguments.clone())
        };
        let measure = crate::section::measure(arguments);
        assert_eq!(text(&measure), text(&same));
    }
}

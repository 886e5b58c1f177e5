//! Mistakes are reported at the token at fault, with what to do. Code without mistakes compiles and runs.
//!
//! The files in `ui` are compiled one by one. `PROFILER_TESTS_BLESS=1` writes the expected messages anew.

use profiler_tests::compiler::Compiler;

#[test]
fn every_mistake_has_a_compile_error_with_its_remedy() {
    Compiler::of_this_build().all_fail("ui/fail");
}

/// Here the compiler itself finds the mistake, in code that a stripped build does not have.
#[test]
#[cfg_attr(feature = "strip", ignore = "a stripped build has no code to be wrong")]
fn mistakes_in_the_values_of_arguments_are_type_errors() {
    Compiler::of_this_build().all_fail("ui/fail_unless_stripped");
}

#[test]
fn every_form_of_function_and_argument_compiles_and_runs() {
    Compiler::of_this_build().all_pass("ui/pass");
}

#[test]
fn functions_compile_and_run_as_without_the_attribute_in_every_edition() {
    Compiler::of_this_build().all_pass_in_every_edition("ui/editions");
}

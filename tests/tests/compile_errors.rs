//! Every mistake is told at the token at fault, with what to do; everything that is no mistake
//! compiles and runs.

#[test]
fn every_mistake_is_told_with_what_to_do() {
    trybuild::TestCases::new().compile_fail("ui/fail/*.rs");
}

/// Of these the compiler itself finds the mistake, in code that a stripped build does not have.
#[test]
#[cfg_attr(feature = "strip", ignore = "a stripped build has no code to be wrong")]
fn mistakes_in_the_values_of_arguments_are_told_by_the_compiler() {
    trybuild::TestCases::new().compile_fail("ui/fail_unless_stripped/*.rs");
}

#[test]
fn every_form_of_function_and_argument_compiles_and_runs() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}

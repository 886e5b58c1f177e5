use super::*;

/// Two functions in the compiler's format, the first with a constant and a jump table.
const TEXT: &str = r#"
	.text
	.section	.rodata.cst8,"aM",@progbits,8
.LCPI0_0:
	.quad	0x3fc0000000000000              # double 0.125
	.section	.text._RNvCs1a_4bare5scale,"ax",@progbits
	.globl	_RNvCs1a_4bare5scale            # -- Begin function
	.type	_RNvCs1a_4bare5scale,@function
_RNvCs1a_4bare5scale:                       # @scale
	.cfi_startproc
# %bb.0:
	movsd	.LCPI0_0(%rip), %xmm0           # xmm0 = [1.25E-1,0.0E+0]
	leaq	.LJTI0_0(%rip), %rax
	jmpq	*%rax
.LBB0_2:
	retq
.Lfunc_end0:
	.size	_RNvCs1a_4bare5scale, .Lfunc_end0-_RNvCs1a_4bare5scale
	.cfi_endproc
	.section	.rodata,"a",@progbits
.LJTI0_0:
	.long	.LBB0_2-.LJTI0_0
	.section	.text.other,"ax",@progbits
	.type	other,@function
other:
	jmp	_RNvCs1a_4bare5scale@PLT
	.size	other, .-other
	.globl	again
	.type	again,@function
.set again, other
"#;

fn parsed(text: &str) -> Assembly {
    Assembly::parse(text, "bare").unwrap()
}

#[test]
fn functions_are_found_by_their_paths() {
    let assembly = parsed(TEXT);
    let paths: Vec<&String> = assembly.functions.keys().collect();
    assert_eq!(paths, ["again", "other", "twin::scale"]);
    assert_eq!(assembly.functions["other"].lines, ["jmp\ttwin::scale@PLT"]);
}

#[test]
fn code_comes_with_the_constants_it_refers_to() {
    let scale = &parsed(TEXT).functions["twin::scale"];
    assert_eq!(
        scale.lines,
        [
            ".cfi_startproc",
            "movsd\tlabel0(%rip), %xmm0",
            "leaq\tlabel1(%rip), %rax",
            "jmpq\t*%rax",
            "label2:",
            "retq",
            "label3:",
            "label0:",
            ".quad\t0x3fc0000000000000",
            "label1:",
            ".long\tlabel2-label1"
        ]
    );
    assert_eq!(scale.instructions(), 4);
}

#[test]
fn another_constant_is_another_function() {
    let other = parsed(&TEXT.replace("0x3fc0000000000000", "0x3fd0000000000000"));
    assert_ne!(
        other.functions["twin::scale"],
        parsed(TEXT).functions["twin::scale"]
    );
}

#[test]
fn other_numbers_of_labels_are_the_same_function() {
    let other = TEXT
        .replace("LBB0_", "LBB9_")
        .replace("LCPI0_", "LCPI4_")
        .replace("LJTI0_", "LJTI7_");
    assert_eq!(parsed(&other).functions, parsed(TEXT).functions);
}

#[test]
fn a_merged_function_is_the_one_it_was_merged_with() {
    assert_eq!(parsed(TEXT).functions["again"].lines, ["same as other"]);
}

#[test]
fn names_of_other_crates_are_found_anywhere() {
    let text = TEXT.replace(
        "jmpq\t*%rax",
        "callq\t_RNvCs2b_16profiler_runtime5enter@PLT",
    );
    assert!(parsed(TEXT).mentions_of("profiler_runtime").is_empty());
    assert_eq!(
        parsed(&text).mentions_of("profiler_runtime"),
        ["profiler_runtime::enter"]
    );
}

#[test]
fn numbers_are_not_taken_for_comments() {
    assert_eq!(without_comment("\tmov\tw0, #1\t// one"), "mov\tw0, #1");
    assert_eq!(without_comment("\tretq   # done"), "retq");
    assert_eq!(without_comment("# %bb.0:"), "");
    assert_eq!(without_comment("\t.asciz\t\"a # b\""), ".asciz\t\"a # b\"");
}

#[test]
fn text_without_a_function_is_refused() {
    let error = Assembly::parse(".text\n", "bare").unwrap_err();
    assert_eq!(error, AssemblyError::NoFunction("bare".to_owned()));
}

#[test]
fn half_a_function_is_refused() {
    let half = TEXT.split("\t.size").next().unwrap();
    assert_eq!(
        Assembly::parse(half, "bare").unwrap_err(),
        AssemblyError::Unfinished("bare".to_owned(), "twin::scale".to_owned())
    );
}

//! Builds the twins and reports if they are identical.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use strip_proof::{Assembly, Comparison, Function, Verdict};

const USAGE: &str = "\
Shows that the feature `strip` of profiler-runtime leaves nothing behind.

usage: cargo run -p strip-proof [-- --without-strip]

    --without-strip    build without the feature: every annotated function must differ then
    --help             show this";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let stripped = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => true,
        ["--without-strip"] => false,
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!(
                "error: unknown arguments: {}\n\n{USAGE}",
                arguments.join(" ")
            );
            return ExitCode::from(2);
        }
    };
    match run(stripped) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Builds and compares. Returns `true` if the result is the expected one.
fn run(stripped: bool) -> Result<bool, Box<dyn Error>> {
    let annotated = build("strip_proof_annotated", stripped)?;
    let bare = build("strip_proof_bare", stripped)?;
    let comparison = Comparison::of(&annotated, &bare);
    if stripped {
        Ok(say_identity(&comparison))
    } else {
        Ok(say_difference(&comparison))
    }
}

/// Compiles one of the twins to assembly.
fn build(twin: &str, stripped: bool) -> Result<Assembly, Box<dyn Error>> {
    let target = target_dir();
    let folder = target.join(if stripped { "stripped" } else { "measured" });
    fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot write to {}: {error}", folder.display()))?;
    let file = folder.join(format!("{twin}.s"));
    let emit = format!("--emit=asm={}", file.display());
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["rustc", "--quiet", "--release", "--example", twin])
        .args(stripped.then_some("--features=strip"))
        .arg("--target-dir")
        .arg(&target)
        // Use one codegen unit: with several, inlining depends on how the crate is split.
        .args(["--", "-Ccodegen-units=1", "-Cdebuginfo=0"])
        .args(["-Csymbol-mangling-version=v0", &emit]);
    if !cargo.status()?.success() {
        return Err(format!("`{twin}` cannot be built; see above").into());
    }
    let text = fs::read_to_string(&file).map_err(|error| {
        let target = target.display();
        format!(
            "cannot read {}: {error}; remove {target} and try again",
            file.display()
        )
    })?;
    Ok(Assembly::parse(&text, twin)?)
}

/// Returns a separate target folder: the workspace builds without these flags and, most of the
/// time, without the feature.
fn target_dir() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let default = || workspace.unwrap_or(Path::new(".")).join("target");
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(default, PathBuf::from)
        .join("strip-proof")
}

fn say_identity(comparison: &Comparison<'_>) -> bool {
    for pair in &comparison.pairs {
        let instructions = pair
            .bare
            .or(pair.annotated)
            .map_or(0, Function::instructions);
        println!(
            "{:<14}  {instructions:>4} instructions  {}",
            pair.verdict.to_string(),
            pair.path
        );
        if pair.verdict != Verdict::Identical
            && let Some((annotated, bare)) = pair.first_difference()
        {
            println!("    annotated: {annotated}\n    bare:      {bare}");
        }
    }
    for name in &comparison.leftovers {
        println!("remaining name: {name}");
    }
    let of = |verdict| {
        let pairs = comparison.pairs.iter();
        pairs.filter(|pair| pair.verdict == verdict).count()
    };
    let identical = of(Verdict::Identical);
    println!(
        "{} functions: {identical} identical to their bare twins, {} different; {} names of the profiler remain",
        comparison.pairs.len(),
        comparison.pairs.len() - identical,
        comparison.leftovers.len()
    );
    comparison.proves_identity()
}

fn say_difference(comparison: &Comparison<'_>) -> bool {
    let unchanged = comparison.unchanged();
    for function in &unchanged {
        println!("not measured: {function}");
    }
    let annotated = comparison.pairs.iter().filter(|pair| pair.is_annotated());
    println!(
        "{} functions of the twins: {} identical although annotated; {} names of the profiler found",
        annotated.count(),
        unchanged.len(),
        comparison.leftovers.len()
    );
    unchanged.is_empty() && !comparison.leftovers.is_empty() && !comparison.proves_identity()
}

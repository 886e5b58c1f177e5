//! Compares two assemblies function by function.

use std::collections::BTreeSet;
use std::fmt;

use crate::assembly::{Assembly, Function};

/// The crates that a stripped build must not mention.
const CRATES: [&str; 6] = [
    "profiler_runtime",
    "profiler_macros",
    "profiler_report",
    "profiler_log",
    "profiler_host",
    "profiler_cuda_sys",
];

/// The result of comparing a function with its twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both have the same instructions, directives and constants.
    Identical,
    /// The two differ.
    Differs,
    /// Only the annotated crate has the function.
    OnlyAnnotated,
    /// Only the bare crate has the function.
    OnlyBare,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Identical => "identical",
            Self::Differs => "differs",
            Self::OnlyAnnotated => "only annotated",
            Self::OnlyBare => "only bare",
        })
    }
}

/// A function and its twin.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The path, which is the same in both.
    pub path: &'a str,
    /// The result of the comparison.
    pub verdict: Verdict,
    /// The annotated function, if it exists.
    pub annotated: Option<&'a Function>,
    /// The bare function, if it exists.
    pub bare: Option<&'a Function>,
}

impl<'a> Pair<'a> {
    /// Returns the path of the function, or of the function that contains this part.
    fn function(&self) -> &'a str {
        let path = self.path;
        path.split_once("::{closure")
            .map_or(path, |(function, _)| function)
    }

    /// Returns `true` if the function is annotated: it belongs to the twins, and not to their
    /// `callers`.
    pub fn is_annotated(&self) -> bool {
        let of_twins = self.path.starts_with("twin::") || self.path.starts_with("<twin::");
        of_twins && !self.path.starts_with("twin::callers::")
    }

    /// Returns the first line that differs, of the annotated function and of the bare one.
    pub fn first_difference(&self) -> Option<(&str, &str)> {
        let (annotated, bare) = (lines(self.annotated), lines(self.bare));
        let longer = annotated.len().max(bare.len());
        let at = (0..longer).find(|&at| annotated.get(at) != bare.get(at))?;
        Some((line(annotated, at), line(bare, at)))
    }
}

fn line(lines: &[String], at: usize) -> &str {
    lines.get(at).map_or("(end)", String::as_str)
}

fn lines(function: Option<&Function>) -> &[String] {
    function.map_or(&[], |function| &function.lines)
}

/// The comparison of all functions of two crates.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// Sorted by path.
    pub pairs: Vec<Pair<'a>>,
    /// The names of the profiler that the annotated crate mentions.
    pub leftovers: Vec<&'a str>,
}

impl<'a> Comparison<'a> {
    /// Compares a crate with its bare twin.
    ///
    /// ```
    /// use strip_proof::{Assembly, Comparison};
    ///
    /// let bare = "\t.type\tf,@function\nf:\n\tretq\n\t.size\tf, .-f\n";
    /// let bare = Assembly::parse(bare, "bare")?;
    /// assert!(Comparison::of(&bare, &bare).proves_identity());
    /// # Ok::<(), strip_proof::AssemblyError>(())
    /// ```
    pub fn of(annotated: &'a Assembly, bare: &'a Assembly) -> Self {
        let paths: BTreeSet<&String> = annotated
            .functions
            .keys()
            .chain(bare.functions.keys())
            .collect();
        let pair = |path: &'a String| {
            let (annotated, bare) = (annotated.functions.get(path), bare.functions.get(path));
            let verdict = match (annotated, bare) {
                (Some(annotated), Some(bare)) if annotated == bare => Verdict::Identical,
                (Some(_), None) => Verdict::OnlyAnnotated,
                (None, _) => Verdict::OnlyBare,
                _ => Verdict::Differs,
            };
            Pair {
                path,
                verdict,
                annotated,
                bare,
            }
        };
        Self {
            pairs: paths.into_iter().map(pair).collect(),
            leftovers: CRATES
                .into_iter()
                .flat_map(|name| annotated.mentions_of(name))
                .collect(),
        }
    }

    /// Returns `true` if the annotations left no trace: each function has an identical twin, and no
    /// name of the profiler remains.
    pub fn proves_identity(&self) -> bool {
        self.leftovers.is_empty()
            && !self.pairs.is_empty()
            && self
                .pairs
                .iter()
                .all(|pair| pair.verdict == Verdict::Identical)
    }

    /// Returns the annotated functions, with their closures and futures, that are identical to
    /// their bare twins. With measuring on there must be none, or the comparison detects nothing.
    pub fn unchanged(&self) -> Vec<&'a str> {
        let annotated = |pair: &&Pair<'a>| pair.is_annotated();
        let changed: BTreeSet<&str> = self
            .pairs
            .iter()
            .filter(|pair| pair.verdict != Verdict::Identical)
            .map(Pair::function)
            .collect();
        let functions = self.pairs.iter().filter(annotated).map(Pair::function);
        let mut unchanged: Vec<&str> = functions
            .filter(|function| !changed.contains(function))
            .collect();
        unchanged.dedup();
        unchanged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(symbol: &str, code: &str) -> String {
        format!("\t.type\t{symbol},@function\n{symbol}:\n\t{code}\n\t.size\t{symbol}, 1\n")
    }

    fn assembly(crate_name: &str, functions: &[(&str, &str)]) -> Assembly {
        let functions = functions.iter().map(|(name, code)| {
            let (in_crate, in_name) = (crate_name.len(), name.len());
            text(
                &format!("_RNvCs1a_{in_crate}{crate_name}{in_name}{name}"),
                code,
            )
        });
        Assembly::parse(&functions.collect::<Vec<_>>().concat(), crate_name).unwrap()
    }

    fn verdicts(annotated: &Assembly, bare: &Assembly) -> Vec<(String, Verdict)> {
        let comparison = Comparison::of(annotated, bare);
        let pairs = comparison.pairs.iter();
        pairs
            .map(|pair| (pair.path.to_owned(), pair.verdict))
            .collect()
    }

    #[test]
    fn twins_with_the_same_code_prove_identity() {
        let annotated = assembly("annotated", &[("f", "retq"), ("g", "ud2")]);
        let bare = assembly("bare", &[("g", "ud2"), ("f", "retq")]);
        assert!(Comparison::of(&annotated, &bare).proves_identity());
    }

    #[test]
    fn one_other_instruction_refutes_it() {
        let annotated = assembly("annotated", &[("f", "retq"), ("g", "retq")]);
        let bare = assembly("bare", &[("f", "retq"), ("g", "ud2")]);
        let comparison = Comparison::of(&annotated, &bare);
        assert!(!comparison.proves_identity());
        assert_eq!(
            comparison.pairs[1].first_difference(),
            Some(("retq", "ud2"))
        );
    }

    #[test]
    fn a_function_without_a_twin_refutes_it() {
        let annotated = assembly("annotated", &[("f", "retq"), ("g", "retq")]);
        let bare = assembly("bare", &[("f", "retq"), ("h", "retq")]);
        assert_eq!(
            verdicts(&annotated, &bare),
            [
                ("twin::f".to_owned(), Verdict::Identical),
                ("twin::g".to_owned(), Verdict::OnlyAnnotated),
                ("twin::h".to_owned(), Verdict::OnlyBare)
            ]
        );
        assert!(!Comparison::of(&annotated, &bare).proves_identity());
    }

    #[test]
    fn a_name_of_the_profiler_anywhere_refutes_it() {
        let mut annotated = assembly("annotated", &[("f", "retq")]);
        let bare = assembly("bare", &[("f", "retq")]);
        annotated
            .mentions
            .push("core::ptr::drop_in_place::<profiler_runtime::Scope>".to_owned());
        let comparison = Comparison::of(&annotated, &bare);
        assert_eq!(comparison.leftovers.len(), 1);
        assert!(!comparison.proves_identity());
    }

    #[test]
    fn annotated_functions_that_do_not_differ_are_found() {
        let annotated = assembly("annotated", &[("f", "retq"), ("g", "ud2")]);
        let bare = assembly("bare", &[("f", "retq"), ("g", "retq")]);
        assert_eq!(Comparison::of(&annotated, &bare).unchanged(), ["twin::f"]);
    }

    #[test]
    fn a_function_is_changed_where_a_closure_in_it_is() {
        let both = |code| {
            let function = text("_RNvCs1a_4bare1f", "retq");
            let closure = text("_RNCNvCs1a_4bare1f0", code);
            Assembly::parse(&(function + &closure), "bare").unwrap()
        };
        let (one, other) = (both("retq"), both("ud2"));
        assert_eq!(Comparison::of(&one, &one).unchanged(), ["twin::f"]);
        assert!(Comparison::of(&one, &other).unchanged().is_empty());
    }
}

//! Two assemblies, function by function.

use std::collections::BTreeSet;
use std::fmt;

use crate::assembly::{Assembly, Function};

/// How a function of one crate stands to its twin in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same instructions, directives and constants.
    Identical,
    /// Not the same.
    Differs,
    /// Only the annotated crate has it.
    OnlyAnnotated,
    /// Only the bare crate has it.
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
    /// Its path, in both.
    pub path: &'a str,
    /// How the two stand to each other.
    pub verdict: Verdict,
    /// The annotated one, where there is one.
    pub annotated: Option<&'a Function>,
    /// The bare one, where there is one.
    pub bare: Option<&'a Function>,
}

impl<'a> Pair<'a> {
    /// The function that it is, or that it is a part of.
    fn function(&self) -> &'a str {
        let path = self.path;
        path.split_once("::{closure")
            .map_or(path, |(function, _)| function)
    }

    /// Whether an annotation stands on it: it belongs to the twins, and not to their `callers`.
    pub fn is_annotated(&self) -> bool {
        let of_twins = self.path.starts_with("twin::") || self.path.starts_with("<twin::");
        of_twins && !self.path.starts_with("twin::callers::")
    }

    /// The first line that differs, of the annotated one and of the bare one.
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

/// All functions of two crates.
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
            leftovers: annotated
                .mentions_of("profiler_runtime")
                .into_iter()
                .chain(annotated.mentions_of("profiler_macros"))
                .collect(),
        }
    }

    /// Whether annotations left nothing behind: each function has an identical twin, and nothing
    /// names the profiler.
    pub fn proves_identity(&self) -> bool {
        self.leftovers.is_empty()
            && !self.pairs.is_empty()
            && self
                .pairs
                .iter()
                .all(|pair| pair.verdict == Verdict::Identical)
    }

    /// The annotated functions, with the closures and futures in them, that measuring left as they
    /// are: none, where the comparison can tell.
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

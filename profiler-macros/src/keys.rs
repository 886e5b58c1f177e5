//! The names of the arguments, and suggestions for misspelt ones.

/// One argument of `#[measure_execution_time(…)]`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Name,
    Log,
    GlobalStep,
    Bypass,
    LogEvery,
    Stream,
    Shapes,
    Parent,
    Sync,
    CudaGraph,
    PerInstance,
    Skip,
    Crate,
}

/// The arguments of the attribute.
pub(crate) const ATTRIBUTE: &[Key] = &[
    Key::Name,
    Key::Log,
    Key::GlobalStep,
    Key::Bypass,
    Key::LogEvery,
    Key::Stream,
    Key::Shapes,
    Key::Parent,
    Key::Sync,
    Key::CudaGraph,
    Key::PerInstance,
    Key::Skip,
    Key::Crate,
];

/// The arguments of a section after its name.
pub(crate) const SECTION: &[Key] = &[
    Key::Log,
    Key::GlobalStep,
    Key::Bypass,
    Key::LogEvery,
    Key::Stream,
    Key::Shapes,
    Key::Parent,
    Key::Sync,
    Key::CudaGraph,
];

/// Names that other profilers use for an argument, and other likely words for it.
const SYNONYMS: &[(&str, Key)] = &[
    ("step", Key::GlobalStep),
    ("label", Key::Name),
    ("tag", Key::Name),
    ("rename", Key::Name),
    ("logger", Key::Log),
    ("writer", Key::Log),
    ("experiment_log_func", Key::Log),
    ("disable", Key::Bypass),
    ("disabled", Key::Bypass),
    ("skip_if", Key::Bypass),
    ("every", Key::LogEvery),
    ("sample", Key::LogEvery),
    ("interval", Key::LogEvery),
    ("cuda_stream", Key::Stream),
    ("on", Key::Stream),
    ("dims", Key::Shapes),
    ("inputs", Key::Shapes),
    ("input_shapes", Key::Shapes),
    ("record_shapes", Key::Shapes),
    ("handle", Key::Parent),
    ("caller", Key::Parent),
    ("inside", Key::Parent),
    ("synchronize", Key::Sync),
    ("synchronise", Key::Sync),
    ("blocking", Key::Sync),
    ("capture", Key::CudaGraph),
    ("captured", Key::CudaGraph),
    ("graph", Key::CudaGraph),
    ("ignore", Key::Skip),
    ("exclude", Key::Skip),
    ("krate", Key::Crate),
];

impl Key {
    /// Returns the name that a user writes.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Log => "log",
            Self::GlobalStep => "global_step",
            Self::Bypass => "bypass",
            Self::LogEvery => "log_every",
            Self::Stream => "stream",
            Self::Shapes => "shapes",
            Self::Parent => "parent",
            Self::Sync => "sync",
            Self::CudaGraph => "cuda_graph",
            Self::PerInstance => "per_instance",
            Self::Skip => "skip",
            Self::Crate => "crate",
        }
    }

    /// Returns an example of the whole argument, for error messages.
    pub(crate) fn usage(self) -> &'static str {
        match self {
            Self::Name => "name = \"text\"",
            Self::Log => "log = logger",
            Self::GlobalStep => "global_step = step",
            Self::Bypass => "bypass = condition",
            Self::LogEvery => "log_every = 100",
            Self::Stream => "stream = &stream",
            Self::Shapes => "shapes = [x.shape(), w.shape()]",
            Self::Parent => "parent = handle",
            Self::Sync => "sync = true",
            Self::CudaGraph => "cuda_graph = true",
            Self::PerInstance => "per_instance",
            Self::Skip => "skip",
            Self::Crate => "crate = path::to::profiler_runtime",
        }
    }

    /// Returns the argument with exactly this name.
    pub(crate) fn find(word: &str) -> Option<Self> {
        ATTRIBUTE.iter().copied().find(|key| key.word() == word)
    }

    /// Returns the argument among `allowed` that a misspelt word most likely means.
    pub(crate) fn nearest(word: &str, allowed: &[Self]) -> Option<Self> {
        let synonym = SYNONYMS
            .iter()
            .find(|(other, _)| *other == word)
            .map(|(_, key)| *key);
        if let Some(key) = synonym.filter(|key| allowed.contains(key)) {
            return Some(key);
        }
        let (distance, key) = allowed
            .iter()
            .map(|key| (distance(word, key.word()), *key))
            .min_by_key(|pair| pair.0)?;
        (distance <= (key.word().len() / 3).max(1)).then_some(key)
    }
}

/// Lists the names of `keys` for a sentence: "`a`, `b` and `c`".
pub(crate) fn list(keys: &[Key]) -> String {
    let words: Vec<String> = keys.iter().map(|key| format!("`{}`", key.word())).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Returns the Damerau–Levenshtein distance (optimal string alignment) of two words: how many
/// letters to insert, delete, replace or swap with a neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let change = usize::from(one[i - 1] != other[j - 1]);
            let mut least = (rows[i - 1][j - 1] + change)
                .min(rows[i - 1][j] + 1)
                .min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_the_argument_it_meant() {
        for (wrong, right) in [
            ("nmae", "name"),
            ("nam", "name"),
            ("logs", "log"),
            ("globalstep", "global_step"),
            ("step", "global_step"),
            ("by_pass", "bypass"),
            ("log_evry", "log_every"),
            ("every", "log_every"),
            ("skipp", "skip"),
            ("label", "name"),
            ("steam", "stream"),
            ("cuda_stream", "stream"),
            ("on", "stream"),
            ("shape", "shapes"),
            ("input_shapes", "shapes"),
            ("paernt", "parent"),
            ("handle", "parent"),
            ("sycn", "sync"),
            ("synchronize", "sync"),
            ("synchronise", "sync"),
            ("blocking", "sync"),
            ("capture", "cuda_graph"),
            ("captured", "cuda_graph"),
            ("graph", "cuda_graph"),
        ] {
            assert_eq!(
                Key::nearest(wrong, ATTRIBUTE).map(Key::word),
                Some(right),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_word_like_none_of_them_finds_nothing() {
        for word in ["colour", "x", "temperature"] {
            assert!(Key::nearest(word, ATTRIBUTE).is_none(), "{word}");
        }
    }

    #[test]
    fn only_what_is_allowed_is_proposed() {
        assert!(Key::nearest("nmae", SECTION).is_none());
    }
}

//! The names of spans.

use tracing::Metadata;

use crate::name::{self, Name, SourceLocation};

/// Returns the name of the spans of a call site.
pub(super) fn name_of(metadata: &Metadata<'static>) -> &'static Name {
    let text = spelled(metadata.target(), metadata.name());
    let file = metadata.file().unwrap_or_default();
    let line = metadata.line().unwrap_or_default();
    name::of_span(&text, SourceLocation::of_line(file, line))
}

/// Returns the name as the attribute on the same function would spell it: the target of a span is by default the path of
/// its module. A name that begins with the target is complete.
fn spelled(target: &str, name: &str) -> String {
    let rest = name.strip_prefix(target);
    if target.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::")) {
        return name.to_owned();
    }
    format!("{target}::{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths() {
        for (target, name, spelling) in [
            ("app::train", "forward", "app::train::forward"),
            ("app", "load data", "app::load data"),
            ("app", "app::load", "app::load"),
            ("app", "app", "app"),
            ("app", "apple", "app::apple"),
            ("", "load", "load"),
        ] {
            assert_eq!(spelled(target, name), spelling);
        }
    }
}

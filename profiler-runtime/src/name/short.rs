//! Short forms of function names, for viewers that show a name in little space.

use super::path::segments;

/// Returns the forms of a function's name, shortest first: the last two parts of its path without the crate, then more
/// of the path, and finally the name itself. `app::model::Mlp::forward` has the forms `Mlp::forward`,
/// `model::Mlp::forward` and `app::model::Mlp::forward`.
pub(crate) fn short_forms(name: &str) -> Vec<String> {
    let parts = segments(name);
    let without_crate = parts.len() - 1;
    let mut forms: Vec<String> = (2.min(without_crate)..=without_crate)
        .filter(|count| *count > 0)
        .map(|count| joined(&parts[parts.len() - count..]))
        .collect();
    forms.retain(|form| form.len() < name.len());
    forms.push(name.to_owned());
    forms
}

fn joined(parts: &[&str]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| without_paths(part)).collect();
    parts.join("::")
}

/// Removes the paths of types inside a part: `W<X, Y>` for `W<app::X, app::Y>`.
fn without_paths(part: &str) -> String {
    let mut short = String::with_capacity(part.len());
    for piece in part.split_inclusive(|letter: char| !is_of_path(letter)) {
        let end = piece.trim_end_matches(|letter| !is_of_path(letter)).len();
        let (path, delimiter) = piece.split_at(end);
        let kept = path.rfind("::").map_or(0, |colons| colons + 2);
        short.push_str(&path[kept..]);
        short.push_str(delimiter);
    }
    short
}

fn is_of_path(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == ':'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_shortest_form_is_the_end_of_the_path() {
        for (name, forms) in [
            (
                "app::model::Mlp::forward",
                &["Mlp::forward", "model::Mlp::forward"][..],
            ),
            ("app::Trainer::forward", &["Trainer::forward"]),
            ("app::io::load", &["io::load"]),
            ("app::main", &["main"]),
            ("main", &[]),
            ("app::main (src/main.rs:7)", &["main (src/main.rs:7)"]),
            ("app::W<app::X<u8>>::get", &["W<X<u8>>::get"]),
            (
                "app::model::Mlp::Layer<app::X>::forward",
                &[
                    "Layer<X>::forward",
                    "Mlp::Layer<X>::forward",
                    "model::Mlp::Layer<X>::forward",
                ],
            ),
            ("<&mut [app::M]>::Clone::clone", &["Clone::clone"]),
            ("app::C<':'>::f", &["C<':'>::f"]),
        ] {
            let (last, shorter) = short_forms(name)
                .split_last()
                .map_or_else(Default::default, |(last, shorter)| {
                    (last.clone(), shorter.to_vec())
                });
            assert_eq!(last, name);
            assert_eq!(shorter, forms, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_name_has_its_forms(name in "[a-z:<>'{} (),&;é…]{0,40}") {
            let forms = short_forms(&name);
            prop_assert_eq!(forms.last(), Some(&name));
            prop_assert!(forms.iter().rev().skip(1).all(|form| form.len() < name.len()));
        }
    }
}

//! Short forms of the names of a window, for viewers that show a name in little space.

use profiler_report::internal::distinct;

use crate::name::{self, Name, Origin};

/// Returns the end of each function's path, as much of it as no other name ends with; `None` if that is the whole name. A
/// name that the program chose is not shortened.
pub(crate) fn short_names(names: &[&'static Name]) -> Vec<Option<String>> {
    let forms: Vec<Vec<String>> = names
        .iter()
        .map(|name| forms(name.origin, &name.text))
        .collect();
    let names = forms.iter().zip(distinct(&forms));
    let short = names.map(|(forms, short)| {
        let is_whole = forms.last().is_none_or(|whole| whole == short);
        (!is_whole).then(|| short.to_owned())
    });
    short.collect()
}

/// Returns the forms of a name, shortest first.
fn forms(origin: Origin, text: &str) -> Vec<String> {
    match origin {
        Origin::Function => name::short_forms(text),
        Origin::Given => vec![text.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: &[(Origin, &str)]) -> Vec<String> {
        let forms: Vec<_> = names
            .iter()
            .map(|(origin, text)| forms(*origin, text))
            .collect();
        distinct(&forms).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn slices_show_the_end_of_a_path() {
        let names = [
            (Origin::Function, "app::Trainer::forward"),
            (Origin::Function, "app::Mlp::Layer::forward"),
            (Origin::Function, "app::main"),
            (Origin::Given, "app::data::load"),
        ];
        let expected = [
            "Trainer::forward",
            "Layer::forward",
            "main",
            "app::data::load",
        ];
        assert_eq!(shown(&names), expected);
    }

    #[test]
    fn names_with_equal_ends_show_as_much_as_tells_them_apart() {
        let names = [
            (Origin::Function, "app::train::Net::forward"),
            (Origin::Function, "app::test::Net::forward"),
            (Origin::Function, "app::Net::forward"),
            (Origin::Function, "app::load"),
            (Origin::Function, "data::load"),
            (Origin::Given, "load"),
            (Origin::Function, "app::Net::step"),
        ];
        let expected = [
            "train::Net::forward",
            "test::Net::forward",
            "app::Net::forward",
            "app::load",
            "data::load",
            "load",
            "Net::step",
        ];
        assert_eq!(shown(&names), expected);
    }
}

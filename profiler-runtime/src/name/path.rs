//! Names and tags of functions, from the output of `std::any::type_name`.
//!
//! `type_name` guarantees no format. The functions here parse the format of today's compilers; from any other text they
//! still return some name.

/// Returns the name of a function, given the type name of an item or closure inside it: `app::model::Mlp::forward` for
/// `app::model::Mlp::forward::Here`.
///
/// A method of a trait is named after the type, the last part of the trait's path, and the method:
/// `app::model::Mlp::Layer::forward`. The trait is part of the name because a type may implement two traits that have a
/// method in common (`Display` and `Debug`).
///
/// Lifetimes are left out, and so are the arguments of a type if all are parameters of the `impl`, which the compiler writes as `_`
/// or by their names: `app::Lines` for `app::Lines<'_, _, N>`.
pub(crate) fn function_name(inner: &str) -> String {
    if depths(inner).last().is_some_and(|(_, depth)| depth > 0) {
        // Brackets do not match: an unknown format.
        return inner.to_owned();
    }
    let mut parts = segments(inner);
    parts.pop();
    parts.retain(|part| *part != "{{closure}}");
    // The last `impl` is the function's: a function inside a method has the method's path before its own name.
    let owner = parts
        .iter()
        .rposition(|part| implementation(part).is_some());
    let Some((index, owner)) = owner.and_then(|at| Some((at, implementation(parts[at])?))) else {
        return without_parameters(&parts.join("::"));
    };
    // The compiler writes the module of an `impl` before it, if that is not the module of the type.
    let rest = parts[index + 1..].iter().copied();
    let parts: Vec<&str> = std::iter::once(&*owner).chain(rest).collect();
    without_parameters(&parts.join("::"))
}

/// Returns a path without lifetimes, and without lists of arguments that are all parameters.
fn without_parameters(path: &str) -> String {
    let mut shown = String::with_capacity(path.len());
    let (mut copied, mut before, mut literal_end) = (0, 0, 0);
    let mut all = depths(path);
    while let Some((index, depth)) = all.next() {
        let rest = &path[index..];
        let is_opened = depth > before;
        before = depth;
        if index < copied.max(literal_end) {
            continue;
        }
        literal_end = index + char_literal(rest).unwrap_or(0);
        let of_name =
            || path[..index].ends_with(|char: char| char.is_alphanumeric() || char == '_');
        if rest.starts_with('<') && is_opened && of_name() {
            // The end of the list is where as many brackets are open as before it.
            let Some((end, _)) = all.find(|&(_, inside)| inside < depth) else {
                break;
            };
            before = depth - 1;
            shown += &path[copied..index];
            shown += &arguments(&path[index + 1..end]);
            copied = end + 1;
        } else if let Some(length) = lifetime(rest) {
            // As in `&'a app::M` and `dyn app::Tr + 'a`.
            let start = &path[copied..index];
            let is_bound = start.ends_with(" + ");
            shown += start.strip_suffix(" + ").unwrap_or(start);
            copied = index + length;
            if !is_bound && path[copied..].starts_with(' ') {
                copied += 1;
            }
        }
    }
    shown + &path[copied..]
}

/// Returns a list of arguments in its brackets, without lifetimes; nothing if all are parameters.
fn arguments(list: &str) -> String {
    let commas = depths(list).filter(|&(at, depth)| depth == 0 && list[at..].starts_with(','));
    let ends = commas.map(|(at, _)| at).chain([list.len()]);
    let mut start = 0;
    let mut arguments = Vec::new();
    for end in ends {
        let argument = list[start..end].trim();
        start = end + 1;
        if lifetime(argument) != Some(argument.len()) {
            arguments.push(argument);
        }
    }
    if arguments.iter().all(|argument| is_parameter(argument)) {
        return String::new();
    }
    let shown: Vec<String> = arguments.into_iter().map(without_parameters).collect();
    format!("<{}>", shown.join(", "))
}

/// Returns `true` for `_`, and for the name of a constant parameter: types are written with their paths, except for those of the
/// language, which are in small letters.
fn is_parameter(argument: &str) -> bool {
    let is_part = |char: char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_';
    argument.chars().all(is_part) && !argument.starts_with(|char: char| char.is_ascii_digit())
}

/// Returns the length of the lifetime at the start of `text`, or `None` if there is none.
fn lifetime(text: &str) -> Option<usize> {
    let name = text.strip_prefix('\'')?;
    if char_literal(text).is_some() {
        return None;
    }
    let end = name.find(|char: char| !(char.is_alphanumeric() || char == '_'));
    Some(1 + end.unwrap_or(name.len()))
}

/// Returns the path that stands for an `impl` in a name, or `None` if a part of a path is no `impl`.
///
/// The `impl` of a trait appears as `<app::Mlp as app::Layer>`, or outside of the type's module as
/// `<impl app::Layer for app::Mlp>`; an `impl` without a trait appears there as `<impl app::Mlp>`.
fn implementation(part: &str) -> Option<String> {
    let inside = part.strip_prefix('<')?.strip_suffix('>')?;
    if let Some(header) = inside.strip_prefix("impl ") {
        return Some(match split_at_word(header, " for ") {
            Some((of, target)) => trait_path(target, of),
            None => header.to_owned(),
        });
    }
    split_at_word(inside, " as ").map(|(target, of)| trait_path(target, of))
}

/// Returns the path of a trait's methods for a type.
fn trait_path(target: &str, of: &str) -> String {
    let of = segments(of).pop().unwrap_or(of);
    if is_path(target) {
        format!("{target}::{of}")
    } else {
        format!("<{target}>::{of}")
    }
}

/// Returns `false` for `&[app::M]`, `dyn app::Tr` and other types that `::` cannot follow.
fn is_path(target: &str) -> bool {
    let first = segments(target)[0];
    let name = first.split('<').next().unwrap_or(first);
    is_crate(name)
}

/// Returns the tag of a function: its path without the crate and with `/` as separator, by which viewers group tags.
/// `app::model::Mlp::forward` becomes `model/Mlp/forward`.
pub(crate) fn function_tag(name: &str) -> String {
    let full = full_tag(name);
    match full.split_once('/') {
        Some((first, tag)) if is_crate(first) => tag.to_owned(),
        _ => full,
    }
}

/// Returns `false` for `&[app::M]` and other types that no crate defines.
fn is_crate(part: &str) -> bool {
    part.chars()
        .all(|char| char.is_alphanumeric() || char == '_')
}

/// Returns the tag with the crate, for functions of two crates that would have the same tag.
pub(crate) fn full_tag(name: &str) -> String {
    let mut tag = Vec::new();
    for part in segments(name) {
        // The brackets around a type that is no path.
        match part
            .strip_prefix('<')
            .and_then(|part| part.strip_suffix('>'))
        {
            Some(target) => tag.extend(segments(target)),
            None => tag.push(part),
        }
    }
    tag.join("/")
}

/// Splits a path at `::`, except inside brackets.
pub(super) fn segments(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (index, depth) in depths(path) {
        if depth == 0 && index >= start && path[index..].starts_with("::") {
            parts.push(&path[start..index]);
            start = index + 2;
        }
    }
    parts.push(&path[start..]);
    parts
}

/// Splits `Type as Trait` or `Trait for Type` at the word that is in no brackets.
fn split_at_word<'a>(header: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let (at, _) =
        depths(header).find(|&(index, depth)| depth == 0 && header[index..].starts_with(word))?;
    Some((&header[..at], &header[at + word.len()..]))
}

/// Returns the index of each character and the number of brackets that are open after it.
///
/// The value of a constant parameter appears as in the source. Inside braces, and after the `;` of an array type, `<` and
/// `>` are operators (`app::W<{ 1 << 3 }>`). A character literal may contain any bracket (`app::C<'<'>`).
fn depths(path: &str) -> impl Iterator<Item = (usize, usize)> {
    let (mut open, mut literal_end) = (Vec::new(), 0);
    let mut last = ' ';
    path.char_indices().map(move |(index, char)| {
        let top = open.last().copied();
        match char {
            _ if index < literal_end => {}
            '\'' => literal_end = index + char_literal(&path[index..]).unwrap_or(0),
            '{' | '(' | '[' => open.push(char),
            ';' if top == Some('[') => open.push(';'),
            '<' if !matches!(top, Some('{' | ';')) => open.push('<'),
            // Not the arrow of `fn(u8) -> u8`.
            '>' if top == Some('<') && last != '-' => _ = open.pop(),
            '}' => close(&mut open, '{'),
            ')' => close(&mut open, '('),
            ']' => close(&mut open, '['),
            _ => {}
        }
        last = char;
        (index, open.len())
    })
}

/// Closes a bracket, and everything inside it that looked like an open bracket.
fn close(open: &mut Vec<char>, bracket: char) {
    if let Some(at) = open.iter().rposition(|one| *one == bracket) {
        open.truncate(at);
    }
}

/// Returns the length of the character literal at the start of `text`, or `None` if its `'` begins a lifetime.
fn char_literal(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let skipped = match inside.strip_prefix('\\') {
        Some(escaped) => 1 + escaped.chars().next()?.len_utf8(),
        None => inside.chars().next()?.len_utf8(),
    };
    // An escape can be several characters long, as `\u{10ffff}` is.
    let rest = inside.get(skipped..)?;
    let end = rest
        .find('\'')
        .filter(|end| *end == 0 || inside.starts_with('\\'))?;
    Some(1 + skipped + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_paths_of_functions_with_their_types() {
        for (inner, name) in [
            ("app::main::Here", "app::main"),
            ("app::model::Mlp::forward::Here", "app::model::Mlp::forward"),
            ("app::W<_>::get::Here", "app::W::get"),
            ("app::W<i32>::get::{{closure}}", "app::W<i32>::get"),
            ("<app::W<_> as app::Tr>::g::Here", "app::W::Tr::g"),
            ("app::Tr::d::Here", "app::Tr::d"),
            ("app::load::{{closure}}::{{closure}}::Here", "app::load"),
            (
                "app::io::<impl app::model::Mlp>::save::Here",
                "app::model::Mlp::save",
            ),
            (
                "app::io::<impl app::W<app::X<u8>>>::save::Here",
                "app::W<app::X<u8>>::save",
            ),
            (
                "app::io::<impl app::Tr for app::M>::save::Here",
                "app::M::Tr::save",
            ),
            (
                "app::io::<impl app::Tr<fn(u8) -> u8> for app::W<app::X<u8>>>::save::Here",
                "app::W<app::X<u8>>::Tr<fn(u8) -> u8>::save",
            ),
            (
                "<app::Matrix as core::fmt::Display>::fmt::Here",
                "app::Matrix::Display::fmt",
            ),
            (
                "<app::Matrix as core::fmt::Display>::fmt::inner::Here",
                "app::Matrix::Display::fmt::inner",
            ),
            (
                "<app::A as app::Tr>::f::<impl app::Tr for app::f::B>::g::Here",
                "app::f::B::Tr::g",
            ),
            (
                "<app::Model<_, N> as core::ops::index::Index<usize>>::index::Here",
                "app::Model::Index<usize>::index",
            ),
            ("<dyn app::Tr>::g::Here", "<dyn app::Tr>::g"),
            (
                "<dyn app::Tr as app::Other>::g::Here",
                "<dyn app::Tr>::Other::g",
            ),
            ("<u8 as app::Tr>::g::Here", "u8::Tr::g"),
            (
                "<(u8, [app::M]) as app::Tr>::g::Here",
                "<(u8, [app::M])>::Tr::g",
            ),
            (
                "<fn(u8) -> app::M as app::Tr>::g::Here",
                "<fn(u8) -> app::M>::Tr::g",
            ),
            (
                "<app::W<{ 1 << 3 }> as app::Tr>::g::Here",
                "app::W<{ 1 << 3 }>::Tr::g",
            ),
            ("app::C<'<'>::g::{{closure}}::Here", "app::C<'<'>::g"),
            (
                "app::C<'\\'', '\\u{3c}'>::g::Here",
                "app::C<'\\'', '\\u{3c}'>::g",
            ),
            ("<&'a app::M as app::Tr<'b>>::g::Here", "<&app::M>::Tr::g"),
            (
                "<[u8; 1 << 3] as app::Tr<{ (1 >> 3) }, (u8, [u8; 1])>>::g::Here",
                "<[u8; 1 << 3]>::Tr<{ (1 >> 3) }, (u8, [u8; 1])>::g",
            ),
            ("app::W<<<::g::Here", "app::W<<<::g::Here"),
            (
                "app::ReadByLine<'_, _, _, _>::next::Here",
                "app::ReadByLine::next",
            ),
            (
                "<app::Lines<'_, app::W<_>, _> as core::iter::Iterator>::next::Here",
                "app::Lines<app::W, _>::Iterator::next",
            ),
            (
                "<&'a mut app::W<'a, [u8; 3], 7> as app::Tr<(&'_ str, _)>>::g::Here",
                "<&mut app::W<[u8; 3], 7>>::Tr<(&str, _)>::g",
            ),
            (
                "<alloc::boxed::Box<dyn app::Tr + '_> as app::Tr>::g::Here",
                "alloc::boxed::Box<dyn app::Tr>::Tr::g",
            ),
            (
                "<app::W<N, u8> as app::Tr>::g::Here",
                "app::W<N, u8>::Tr::g",
            ),
        ] {
            assert_eq!(function_name(inner), name);
        }
    }

    #[test]
    fn tags_group_by_module() {
        for (name, tag) in [
            ("app::main", "main"),
            ("app::model::Mlp::forward", "model/Mlp/forward"),
            ("app::W<app::X>::get", "W<app::X>/get"),
            ("app::model::Mlp::Layer::forward", "model/Mlp/Layer/forward"),
            ("<&[app::M]>::Clone::clone", "&[app::M]/Clone/clone"),
            ("main", "main"),
        ] {
            assert_eq!(function_tag(name), tag);
        }
        assert_eq!(
            full_tag("app::model::Mlp::forward"),
            "app/model/Mlp/forward"
        );
    }

    #[test]
    fn any_format_gives_some_name() {
        for inner in [
            "",
            "::",
            "<<<",
            ">>",
            "a::<impl ",
            "<impl for >::x",
            "é::ü::x",
        ] {
            let name = function_name(inner);
            let _ = function_tag(&name);
        }
    }
}

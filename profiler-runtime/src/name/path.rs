//! From the compiler's spelling of an item's path to a name and a tag.
//!
//! `std::any::type_name` promises no spelling. What it prints today is tidied here; anything it may
//! print one day still gives a name, only a less tidy one.

/// The name of a function, from the type name of an item or closure inside it:
/// `app::model::Mlp::forward::Here` becomes `app::model::Mlp::forward`.
pub(crate) fn function_name(inner: &str) -> String {
    if depths(inner).last().is_some_and(|(_, depth)| depth > 0) {
        // A spelling that is not known here.
        return inner.to_owned();
    }
    let mut parts = segments(inner);
    parts.pop();
    parts.retain(|part| *part != "{{closure}}");
    // An `impl` outside its type's module is spelled `app::io::<impl app::Mlp>::save`.
    let target = parts.iter().rposition(|part| part.starts_with("<impl "));
    let Some(index) = target else {
        return parts.join("::");
    };
    let header = parts[index]
        .trim_start_matches("<impl ")
        .trim_end_matches('>');
    let target = match header.split_once(" for ") {
        Some((of, target)) => format!("<{target} as {of}>"),
        // A generic's own `>` went with the trim.
        None => balanced(header),
    };
    std::iter::once(target.as_str())
        .chain(parts[index + 1..].iter().copied())
        .collect::<Vec<_>>()
        .join("::")
}

/// The tag of a function: its path without the crate, `/` between the parts, so that viewers group
/// by module: `app::model::Mlp::forward` becomes `model/Mlp/forward`.
pub(crate) fn function_tag(name: &str) -> String {
    let full = full_tag(name);
    match full.split_once('/') {
        Some((first, tag)) if is_crate(first) => tag.to_owned(),
        _ => full,
    }
}

/// Not `&[app::M]` or another type that no crate defines.
fn is_crate(part: &str) -> bool {
    part.chars()
        .all(|char| char.is_alphanumeric() || char == '_')
}

/// The same with the crate, for where two crates would share a tag.
pub(crate) fn full_tag(name: &str) -> String {
    let mut tag = Vec::new();
    for part in segments(name) {
        match part
            .strip_prefix('<')
            .and_then(|part| part.strip_suffix('>'))
        {
            // A trait is known by its last part: `<app::Mlp as app::nn::Layer>`.
            Some(header) => match split_as(header) {
                Some((target, of)) => {
                    tag.extend(segments(target));
                    tag.extend(segments(of).pop());
                }
                None => tag.extend(segments(header)),
            },
            None => tag.push(part),
        }
    }
    tag.join("/")
}

/// The parts between `::`, those inside brackets of any kind left whole.
fn segments(path: &str) -> Vec<&str> {
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

/// `Type as Trait` at its outermost ` as `.
fn split_as(header: &str) -> Option<(&str, &str)> {
    let at =
        depths(header).find(|&(index, depth)| depth == 0 && header[index..].starts_with(" as "))?;
    Some((&header[..at.0], &header[at.0 + 4..]))
}

/// Puts back closing angle brackets that are missing at the end.
fn balanced(path: &str) -> String {
    let open = depths(path).last().map_or(0, |(_, depth)| depth);
    format!("{path}{}", ">".repeat(open))
}

/// Each character's index, with how many brackets are open after it.
///
/// The value of a constant parameter is spelled as it was written: in braces, and in an array behind the
/// `;`, `<` and `>` are operators (`app::W<{ 1 << 3 }>`), and a character may be any of the brackets
/// (`app::C<'<'>`).
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

/// Closes a bracket, and all that seemed to be brackets inside it.
fn close(open: &mut Vec<char>, bracket: char) {
    if let Some(at) = open.iter().rposition(|one| *one == bracket) {
        open.truncate(at);
    }
}

/// The length of the character literal that a text begins with, if its `'` begins no lifetime.
fn char_literal(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let skipped = match inside.strip_prefix('\\') {
        Some(escaped) => 1 + escaped.chars().next()?.len_utf8(),
        None => inside.chars().next()?.len_utf8(),
    };
    // An escape may be as long as `\u{10ffff}`.
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
            ("app::W<_>::get::Here", "app::W<_>::get"),
            ("app::W<i32>::get::{{closure}}", "app::W<i32>::get"),
            (
                "<app::W<_> as app::Tr>::g::Here",
                "<app::W<_> as app::Tr>::g",
            ),
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
                "<app::M as app::Tr>::save",
            ),
            (
                "<fn(u8) -> app::M as app::Tr>::g::Here",
                "<fn(u8) -> app::M as app::Tr>::g",
            ),
            (
                "<app::W<{ 1 << 3 }> as app::Tr>::g::Here",
                "<app::W<{ 1 << 3 }> as app::Tr>::g",
            ),
            ("app::C<'<'>::g::{{closure}}::Here", "app::C<'<'>::g"),
            (
                "app::C<'\\'', '\\u{3c}'>::g::Here",
                "app::C<'\\'', '\\u{3c}'>::g",
            ),
            (
                "<&'a app::M as app::Tr<'b>>::g::Here",
                "<&'a app::M as app::Tr<'b>>::g",
            ),
            (
                "<[u8; 1 << 3] as app::Tr<{ (1 >> 3) }, (u8, [u8; 1])>>::g::Here",
                "<[u8; 1 << 3] as app::Tr<{ (1 >> 3) }, (u8, [u8; 1])>>::g",
            ),
            ("app::W<<<::g::Here", "app::W<<<::g::Here"),
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
            (
                "<app::model::Mlp as app::nn::Layer>::forward",
                "model/Mlp/Layer/forward",
            ),
            (
                "<&[app::M] as core::clone::Clone>::clone",
                "&[app::M]/Clone/clone",
            ),
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
    fn any_spelling_gives_some_name() {
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

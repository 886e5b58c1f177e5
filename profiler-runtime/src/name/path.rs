//! Names and tags of functions, from the output of `std::any::type_name`.
//!
//! `type_name` guarantees no format. The functions here parse the format of today's compilers; from any other text they
//! still return some name.

/// Returns the name of a function, given the type name of an item or closure inside it: `app::model::Mlp::forward` for
/// `app::model::Mlp::forward::Here`.
pub(crate) fn function_name(inner: &str) -> String {
    if depths(inner).last().is_some_and(|(_, depth)| depth > 0) {
        // Brackets do not match: an unknown format.
        return inner.to_owned();
    }
    let mut parts = segments(inner);
    parts.pop();
    parts.retain(|part| *part != "{{closure}}");
    // An `impl` outside the module of its type appears as `app::io::<impl app::Mlp>::save`.
    let target = parts.iter().rposition(|part| part.starts_with("<impl "));
    let Some(index) = target else {
        return parts.join("::");
    };
    let header = parts[index]
        .trim_start_matches("<impl ")
        .trim_end_matches('>');
    let target = match header.split_once(" for ") {
        Some((of, target)) => format!("<{target} as {of}>"),
        // The trim also removed the closing brackets of a generic type.
        None => balanced(header),
    };
    std::iter::once(target.as_str())
        .chain(parts[index + 1..].iter().copied())
        .collect::<Vec<_>>()
        .join("::")
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
        match part
            .strip_prefix('<')
            .and_then(|part| part.strip_suffix('>'))
        {
            // Of a trait only the last part is used: `Layer` in `<app::Mlp as app::nn::Layer>`.
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

/// Splits a path at `::`, except inside brackets.
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

/// Splits `Type as Trait` at the ` as ` that is in no brackets.
fn split_as(header: &str) -> Option<(&str, &str)> {
    let at =
        depths(header).find(|&(index, depth)| depth == 0 && header[index..].starts_with(" as "))?;
    Some((&header[..at.0], &header[at.0 + 4..]))
}

/// Appends the closing angle brackets that are missing at the end.
fn balanced(path: &str) -> String {
    let open = depths(path).last().map_or(0, |(_, depth)| depth);
    format!("{path}{}", ">".repeat(open))
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

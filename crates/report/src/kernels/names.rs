//! Short names of kernels.

use std::collections::HashMap;

use super::ScopeKernels;
use crate::distinct::distinct;

/// Sets the short names of all rows. One name has one short form, whichever scope launched it.
pub(super) fn short_names(scopes: &mut [ScopeKernels]) {
    let rows = || scopes.iter().flat_map(|scope| &scope.rows);
    let mut names: Vec<&str> = rows().map(|row| &*row.name).collect();
    names.sort_unstable();
    names.dedup();
    let forms: Vec<Vec<String>> = names.iter().map(|name| forms(name)).collect();
    let short = names.iter().zip(distinct(&forms));
    let short: HashMap<String, String> = short
        .map(|(name, short)| ((*name).to_owned(), short.to_owned()))
        .collect();
    for row in scopes.iter_mut().flat_map(|scope| &mut scope.rows) {
        row.short = short
            .get(&row.name)
            .map_or_else(|| row.name.clone(), String::clone);
    }
}

/// Returns the forms of the name of a kernel, shortest first: the name alone, with the template arguments without their
/// paths, with all paths, and the whole name.
fn forms(name: &str) -> Vec<String> {
    let Some(function) = function(name) else {
        return vec![name.to_owned()];
    };
    let segment = last_segment(function);
    let plain = match segment.find('<') {
        Some(start) if start > 0 && !segment.starts_with("operator") => &segment[..start],
        _ => segment,
    };
    let mut forms = vec![
        plain.to_owned(),
        without_paths(segment),
        function.to_owned(),
        name.to_owned(),
    ];
    forms.dedup();
    forms
}

/// Returns the path of a function, with its template arguments and without its return type and parameters. `None` for a
/// text that is no function of C++, such as `Memcpy HtoD (Pageable -> Device)`.
fn function(name: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let (mut start, mut end) = (0, name.len());
    let mut is_parameters = false;
    for (at, char) in name.char_indices() {
        match char {
            '(' if depth == 0 && !is_inside_path(&name[at..]) => {
                (end, is_parameters) = (at, true);
                break;
            }
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    let function = &name[start..end];
    // Without parameters, words are no return type.
    let is_function = !function.is_empty() && (is_parameters || start == 0);
    is_function.then_some(function)
}

/// Returns `true` if the parenthesis at the beginning is a part of a path.
fn is_inside_path(rest: &str) -> bool {
    rest.starts_with("(anonymous namespace)") || rest.starts_with("(lambda")
}

/// Returns the part of a path after the last `::` outside of template arguments.
fn last_segment(path: &str) -> &str {
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, char) in path.char_indices() {
        match char {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && path[at..].starts_with("::") => start = at + 2,
            _ => {}
        }
    }
    match &path[start..] {
        "" => path,
        segment => segment,
    }
}

/// Removes the paths in front of all names: `f<a::B<c::D>>` becomes `f<B<D>>`.
fn without_paths(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char == ':' && chars.peek() == Some(&':') {
            chars.next();
            remove_last_name(&mut short);
        } else {
            short.push(char);
        }
    }
    short
}

/// Removes the name at the end of a text, with its template arguments.
fn remove_last_name(text: &mut String) {
    let mut depth = 0_usize;
    while let Some(last) = text.chars().next_back() {
        match last {
            '>' | ')' => depth += 1,
            '<' | '(' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            _ if last == '_' || last.is_alphanumeric() => {}
            _ => break,
        }
        text.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_the_forms_that_lead_to_its_whole_name() {
        let add = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, \
                   std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
        assert_eq!(
            forms(add),
            [
                "vectorized_elementwise_kernel",
                "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, array<char*, 3ul> >",
                "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, \
                 std::array<char*, 3ul> >",
                add,
            ]
        );
        for (name, short) in [
            ("saxpy", "saxpy"),
            ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
            ("saxpy(float*, int)", "saxpy"),
            ("void cutlass::Kernel<a::B>(a::B::Params)", "Kernel"),
            (
                "void (anonymous namespace)::softmax<float>(float*)",
                "softmax",
            ),
            ("kernels::part::step", "step"),
            (
                "Memcpy HtoD (Pageable -> Device)",
                "Memcpy HtoD (Pageable -> Device)",
            ),
            ("Memset (Device)", "Memset (Device)"),
            ("", ""),
            ("(", "("),
        ] {
            assert_eq!(forms(name)[0], short, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_forms(name in "[a<>():, é]{0,12}") {
            let forms = forms(&name);
            proptest::prop_assert_eq!(forms.last(), Some(&name));
        }
    }

    #[test]
    fn paths_are_removed_with_their_arguments() {
        assert_eq!(
            without_paths("f<a::B<c::D>::E, (anonymous namespace)::g>"),
            "f<E, g>"
        );
        assert_eq!(without_paths("::a::b"), "b");
    }
}

//! Names of functions of C++, as they are written with template arguments and parameters.

/// Returns the forms of the name of a kernel, shortest first: the name alone, with the template arguments without their
/// paths, with all paths, and the whole name.
pub(crate) fn forms(name: &str) -> Vec<String> {
    let Some((function, _)) = function(name) else {
        return vec![name.to_owned()];
    };
    let segment = last_segment(function);
    let mut forms = vec![
        plain(segment).to_owned(),
        without_paths(segment),
        function.to_owned(),
        name.to_owned(),
    ];
    forms.dedup();
    forms
}

/// Returns the last part of a path without its template arguments.
fn plain(segment: &str) -> &str {
    match segment.find('<') {
        Some(start) if start > 0 && !segment.starts_with("operator") => &segment[..start],
        _ => segment,
    }
}

/// The parts of the name of a function that can be cut: `softmax`, `<`, `float`, `8`, `>`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Signature {
    /// The name alone.
    pub(crate) plain: String,
    /// The template arguments, or the parameters of a function without any, without their paths.
    pub(crate) arguments: Vec<String>,
    /// The brackets around them.
    pub(crate) brackets: [char; 2],
    /// The name with all template arguments, first with their paths, and then without.
    pub(crate) longer: [String; 2],
}

impl Signature {
    /// Takes a name apart. `None` for a text without template arguments and parameters at its end, such as a path in Rust.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (function, parameters) = function(name)?;
        let segment = last_segment(function);
        let plain = plain(segment);
        let (list, brackets) = match segment.strip_prefix(plain) {
            Some("") | None => (parameters, ['(', ')']),
            Some(arguments) => (arguments, ['<', '>']),
        };
        let is_whole = is_list(parameters) && !plain.is_empty() && !list.is_empty();
        is_whole.then(|| Self {
            plain: plain.to_owned(),
            arguments: arguments(&without_paths(list)),
            brackets,
            longer: [function.to_owned(), without_paths(segment)],
        })
    }
}

/// Returns `true` for nothing, and for a list in parentheses behind which there is nothing but a qualifier.
fn is_list(parameters: &str) -> bool {
    let mut depth = 0_usize;
    let end = parameters.char_indices().find_map(|(at, char)| {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at + char.len_utf8())
    });
    // Profilers cut long names.
    let rest = end.map_or("", |end| parameters[end..].trim_start());
    rest.is_empty() || rest == "const" || rest.starts_with("[clone")
}

/// Splits a list in brackets at its commas.
fn arguments(list: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let mut depth = 0_usize;
    for char in list.trim().chars() {
        match char {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (char, arguments.last_mut()) {
            (',', _) if depth == 1 => arguments.push(String::new()),
            // The brackets around the list.
            ('<' | '(', _) if depth == 1 => {}
            ('>' | ')', _) if depth == 0 => {}
            (_, Some(open)) => open.push(char),
            _ => {}
        }
    }
    for argument in &mut arguments {
        *argument = argument.trim().to_owned();
    }
    arguments
}

/// Returns the path of a function, with its template arguments and without its return type, and then its parameters. `None`
/// for a text that is no function of C++, such as `Memcpy HtoD (Pageable -> Device)`.
fn function(name: &str) -> Option<(&str, &str)> {
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
    is_function.then_some((function, &name[end..]))
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
    fn a_signature_has_the_parts_that_can_be_cut() {
        let softmax = "void (anonymous namespace)::softmax<float, a::B<c::D, 2>, 8>(float*, int)";
        let softmax = Signature::of(softmax).expect("it has arguments");
        assert_eq!((&*softmax.plain, softmax.brackets), ("softmax", ['<', '>']));
        assert_eq!(softmax.arguments, ["float", "B<D, 2>", "8"]);
        let saxpy = Signature::of("saxpy(float*, int)").expect("it has parameters");
        assert_eq!((&*saxpy.plain, saxpy.brackets), ("saxpy", ['(', ')']));
        assert_eq!(saxpy.arguments, ["float*", "int"]);
        for name in [
            "volta_sgemm_64x64_nt",
            "app::Layer<core::ops::Range<u8>>::run",
            "app::main (src/main.rs:7)",
            "Memcpy HtoD (Pageable -> Device)",
            "enumerate(DataLoader)#_Iter.__next__",
            "<&mut [app::M]>::Clone::clone",
        ] {
            assert_eq!(Signature::of(name), None, "{name}");
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

//! Names that fit into a column and still differ.

use std::collections::{HashMap, HashSet};

use crate::signature::Signature;

/// Marks names whose calls are too short to be timed individually.
pub(crate) const TOO_SHORT_MARK: &str = "~ ";

/// Stands in front of names that belong to the row above them.
const INDENTATION: &str = "  ";

const ELLIPSIS: &str = "…";

/// Returns the number of columns that a text takes on a terminal.
#[cfg(feature = "terminal")]
pub(crate) fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Returns the number of characters, which are columns but for a few alphabets.
#[cfg(not(feature = "terminal"))]
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Shortens texts to `limit` columns, so that different texts remain different.
///
/// Of the name of a function in C++, template arguments and parameters are cut, and of those the ones that similar names
/// have in common. Of another text, the beginning is cut off, at the start of a path segment if at least half of the space
/// remains in use. If texts would then look alike, more of their ends is kept, or their middle is cut out instead, and at
/// last they are numbered.
pub fn shorten(texts: &[&str], limit: usize) -> Vec<String> {
    numbered(texts, limit, cut(texts, limit, FROM_THE_BEGINNING))
}

/// Shortens texts as [`shorten`] does, but cuts out their middle: both ends stay where there is room for them.
#[cfg(feature = "terminal")]
pub fn shorten_in_the_middle(texts: &[&str], limit: usize) -> Vec<String> {
    let steps = [both_ends, beginning, whole_end, end];
    numbered(texts, limit, cut(texts, limit, steps))
}

/// The cuts of [`shorten`], in the order in which they are tried.
const FROM_THE_BEGINNING: [Cut; 4] = [end, whole_end, both_ends, beginning];

/// Numbers the texts that would look like another one.
fn numbered<'t>(
    texts: &[&'t str],
    limit: usize,
    (mut short, long): (HashMap<&'t str, String>, Vec<&'t str>),
) -> Vec<String> {
    let mut used: HashSet<String> = short.values().cloned().collect();
    for text in long {
        let numbered = |number: usize| {
            let number = format!(" #{number}");
            marked(text, limit.saturating_sub(number.len()), end_or_arguments) + &number
        };
        // One of these numbers is free: there is one more than texts.
        let free = (1..=texts.len() + 1)
            .map(numbered)
            .find(|text| !used.contains(text));
        let free = free.unwrap_or_default();
        used.insert(free.clone());
        short.insert(text, free);
    }
    texts
        .iter()
        .map(|text| short.get(text).cloned().unwrap_or_default())
        .collect()
}

/// Returns `true` if [`shorten`] need not number any text.
pub(super) fn differ_when_cut(texts: &[&str], limit: usize) -> bool {
    cut(texts, limit, FROM_THE_BEGINNING).1.is_empty()
}

/// Cuts texts. Also returns those that would look like another one.
fn cut<'t>(
    texts: &[&'t str],
    limit: usize,
    steps: [Cut; 4],
) -> (HashMap<&'t str, String>, Vec<&'t str>) {
    let mut short: HashMap<&str, String> = HashMap::new();
    let mut used: HashSet<String> = HashSet::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut long: Vec<&str> = Vec::new();
    for text in texts.iter().copied().filter(|text| seen.insert(text)) {
        if width(text) <= limit {
            used.insert(text.to_owned());
            short.insert(text, text.to_owned());
        } else {
            long.push(text);
        }
    }
    let functions = functions(&long, limit);
    let first = |text: &str| {
        functions
            .get(text)
            .map_or("", |cuts| &cuts.first)
            .to_owned()
    };
    let second = |text: &str| {
        functions
            .get(text)
            .map_or("", |cuts| &cuts.second)
            .to_owned()
    };
    // What is left of a function looks like the others but for its arguments, and then but for its parameters.
    let by = |cut: Cut, of_function: Cut, has_parameters: bool| {
        let functions = &functions;
        move |text: &str| match functions.get(text) {
            Some(cuts) if !has_parameters => of_function(&cuts.name, limit),
            Some(_) => marked(text, limit, of_function),
            None => marked(text, limit, cut),
        }
    };
    let others = [
        by(steps[0], both_ends, false),
        by(steps[1], beginning, false),
        by(steps[2], both_ends, true),
        by(steps[3], beginning, true),
    ];
    let mut steps: Vec<&dyn Fn(&str) -> String> = vec![&first, &second];
    steps.extend(others.iter().map(|step| step as &dyn Fn(&str) -> String));
    for step in steps {
        let cuts: Vec<String> = long.iter().map(|text| step(text)).collect();
        let mut alike: HashMap<&str, usize> = HashMap::new();
        for text in &cuts {
            *alike.entry(text).or_default() += 1;
        }
        let mut left = Vec::new();
        for (text, cut) in long.into_iter().zip(&cuts) {
            let is_alone = !cut.is_empty() && alike.get(&**cut) == Some(&1);
            if is_alone && used.insert(cut.clone()) {
                short.insert(text, cut.clone());
            } else {
                left.push(text);
            }
        }
        long = left;
    }
    (short, long)
}

type Cut = fn(&str, usize) -> String;

/// How the name of a function in C++ can be cut.
struct FunctionCuts {
    /// By itself.
    first: String,
    /// So that it differs from those with an equal first cut.
    second: String,
    /// The name without paths and parameters, uncut.
    name: String,
}

/// Returns the cuts of all texts that are functions in C++.
fn functions<'t>(texts: &[&'t str], limit: usize) -> HashMap<&'t str, FunctionCuts> {
    let mut alike: HashMap<String, Vec<(&str, Signature)>> = HashMap::new();
    for text in texts {
        if let Some(signature) = Signature::of(without_mark(text)) {
            let first = marked(text, limit, |_, limit| cut_arguments(&signature, limit));
            alike.entry(first).or_default().push((text, signature));
        }
    }
    let mut cuts = HashMap::new();
    for (first, group) in alike {
        for (text, signature) in &group {
            let differing = |index: usize| {
                let argument = signature.arguments.get(index);
                let mut others = group.iter().map(|(_, other)| other.arguments.get(index));
                others.any(|other| other != argument)
            };
            let of = FunctionCuts {
                first: first.clone(),
                second: marked(text, limit, |_, limit| {
                    chosen_arguments(signature, limit, differing)
                }),
                name: marked(text, limit, |_, _| signature.longer[1].clone()),
            };
            cuts.insert(*text, of);
        }
    }
    cuts
}

/// Keeps what fits: all template arguments, or the first ones (`softmax<float, …>`), or the end of the name (`…max<…>`).
/// Parameters say less, and are left out.
fn cut_arguments(signature: &Signature, limit: usize) -> String {
    if signature.brackets == ['(', ')'] {
        let plain = &signature.plain;
        return if width(plain) <= limit {
            plain.clone()
        } else {
            end(plain, limit)
        };
    }
    let mut longer = signature.longer.iter();
    if let Some(fits) = longer.find(|name| width(name) <= limit) {
        return fits.clone();
    }
    let counts = (0..=signature.arguments.len()).rev();
    let mut cuts = counts.map(|count| chosen_arguments(signature, limit, |index| index < count));
    cuts.find(|cut| !cut.is_empty()).unwrap_or_else(|| {
        let all = "<…>";
        end(&signature.plain, limit.saturating_sub(width(all))) + all
    })
}

/// Keeps the arguments at some places: `softmax<…, 8, …>`. Empty if that is too long.
fn chosen_arguments(
    signature: &Signature,
    limit: usize,
    is_kept: impl Fn(usize) -> bool,
) -> String {
    let mut shown: Vec<&str> = Vec::new();
    for (index, argument) in signature.arguments.iter().enumerate() {
        if is_kept(index) {
            shown.push(argument);
        } else if shown.last() != Some(&ELLIPSIS) {
            shown.push(ELLIPSIS);
        }
    }
    let [open, close] = signature.brackets;
    let cut = format!("{}{open}{}{close}", signature.plain, shown.join(", "));
    if width(&cut) <= limit {
        cut
    } else {
        String::new()
    }
}

/// Cuts a text and keeps what stands in front of the name.
fn marked(text: &str, limit: usize, cut: impl Fn(&str, usize) -> String) -> String {
    let name = without_mark(text);
    let mark = &text[..text.len() - name.len()];
    mark.to_owned() + &cut(name, limit.saturating_sub(mark.len()))
}

/// Returns the name without the mark or the indentation in front of it.
fn without_mark(text: &str) -> &str {
    let marks = [TOO_SHORT_MARK, INDENTATION];
    let name = marks.iter().find_map(|mark| text.strip_prefix(mark));
    name.unwrap_or(text)
}

/// Cuts a text that is numbered.
fn end_or_arguments(text: &str, limit: usize) -> String {
    match Signature::of(text) {
        Some(signature) => cut_arguments(&signature, limit),
        None => end(text, limit),
    }
}

/// Keeps the end: `…Trainer::backward`.
fn end(text: &str, limit: usize) -> String {
    let space = limit.saturating_sub(1);
    let tail = tail(text, space);
    let start = text.len() - tail.len();
    let segment = segments(text).find(|segment| *segment >= start);
    let segment = segment.map_or("", |segment| &text[segment..]);
    let kept = if width(segment) * 2 >= space {
        segment
    } else {
        tail
    };
    format!("{ELLIPSIS}{kept}")
}

/// Keeps as much of the end as fits: `…ncoder::Block::attend`.
fn whole_end(text: &str, limit: usize) -> String {
    format!("{ELLIPSIS}{}", tail(text, limit.saturating_sub(1)))
}

/// Keeps a third of the space for the beginning: `crate::…Trainer::backward`.
fn both_ends(text: &str, limit: usize) -> String {
    around(text, limit.saturating_sub(1) / 3, limit)
}

/// Keeps most of the space for the beginning.
fn beginning(text: &str, limit: usize) -> String {
    around(text, limit.saturating_sub(1) * 3 / 4, limit)
}

fn around(text: &str, start: usize, limit: usize) -> String {
    let head = head(text, start);
    let space = limit.saturating_sub(1 + width(head));
    format!("{head}{ELLIPSIS}{}", tail(text, space))
}

/// Returns the longest beginning of a text that takes at most `space` columns.
fn head(text: &str, space: usize) -> &str {
    let ends = text.char_indices().map(|(index, _)| index);
    let fitting = ends.take_while(|end| width(&text[..*end]) <= space);
    &text[..fitting.last().unwrap_or(0)]
}

/// Returns the longest end of a text that takes at most `space` columns.
fn tail(text: &str, space: usize) -> &str {
    let starts = text.char_indices().rev().map(|(index, _)| index);
    let fitting = starts.take_while(|start| width(&text[*start..]) <= space);
    &text[fitting.last().unwrap_or(text.len())..]
}

/// Returns where the last segment of a path starts; 0 if it is the only one.
#[cfg(feature = "export")]
pub(crate) fn last_segment(path: &str) -> usize {
    segments(path).last().unwrap_or(0)
}

/// Removes the path of modules that all names begin with, and returns the line that says so.
pub fn leave_out_shared_path<'t>(
    texts: impl IntoIterator<Item = &'t mut String>,
) -> Option<String> {
    let mut texts: Vec<&mut String> = texts.into_iter().collect();
    let names: Vec<&str> = texts.iter().filter_map(|text| name(text)).collect();
    let path = shared_path(&names)?.to_owned();
    for text in &mut texts {
        if let Some(start) = name(text).map(|name| text.len() - name.len()) {
            text.replace_range(start..start + path.len(), "");
        }
    }
    Some(format!("all names begin with `{path}`, which is left out"))
}

/// Returns the name of a function in a label or a cell; `None` for what stands below one, or in its place.
fn name(text: &str) -> Option<&str> {
    let name = text.strip_prefix(TOO_SHORT_MARK).unwrap_or(text);
    let is_name = !name.is_empty() && name != "-" && !name.starts_with([' ', '(']);
    is_name.then_some(name)
}

/// Returns the longest path of modules, up to and with a `::`, that all names begin with and go on after; `None` for fewer than
/// two names. The name of a type, which begins with a capital letter, tells more than a module, and stays.
pub fn shared_path<'t>(names: &[&'t str]) -> Option<&'t str> {
    let (first, others) = names.split_first()?;
    let path = segments(first)
        .map(|start| &first[..start])
        .filter(|path| path.ends_with("::") && !path.contains(' '))
        .take_while(|path| !ends_with_type(path))
        .take_while(|path| others.iter().all(|name| goes_on(name, path)))
        .last();
    path.filter(|_| others.iter().any(|other| other != first))
}

fn ends_with_type(path: &str) -> bool {
    let parent = path.trim_end_matches("::").rsplit("::").next();
    parent.is_some_and(|part| part.starts_with(|first: char| first.is_uppercase() || first == '<'))
}

fn goes_on(name: &str, path: &str) -> bool {
    name.len() > path.len() && name.starts_with(path)
}

/// Returns where the segments of a path start, except the first: after `::`, `/` and `.`, outside of `<…>` and `(…)`.
fn segments(text: &str) -> impl Iterator<Item = usize> {
    let mut depth = 0_usize;
    text.char_indices().filter_map(move |(index, char)| {
        match char {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let next = index + char.len_utf8();
        let ends = text[..next].ends_with("::") || char == '/' || char == '.';
        (depth == 0 && ends && next < text.len()).then_some(next)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn assert_short(texts: &[&str], limit: usize, expected: &[&str]) {
        assert_eq!(shorten(texts, limit), expected);
    }

    #[test]
    fn the_beginning_is_cut_at_the_start_of_a_segment() {
        assert_short(
            &["app::model::Trainer::backward"],
            20,
            &["…Trainer::backward"],
        );
        assert_short(&["app/train/step"], 12, &["…train/step"]);
        assert_short(&["main"], 20, &["main"]);
        assert_short(
            &["~ app::model::Trainer::backward"],
            22,
            &["~ …Trainer::backward"],
        );
    }

    #[test]
    #[cfg(feature = "terminal")]
    fn both_ends_stay_if_the_middle_is_cut() {
        let names = [
            "model::encoder::Block::attend",
            "model::decoder::Block::attend",
            "main",
        ];
        let short = shorten_in_the_middle(&names, 20);
        // The usual cut makes them alike, so these keep more of their beginning.
        assert_eq!(
            short,
            ["model::encoder…ttend", "model::decoder…ttend", "main"]
        );
        let short = shorten_in_the_middle(&["app::data::Loader::next_batch"], 20);
        assert_eq!(short, ["app::d…r::next_batch"]);
    }

    #[test]
    fn a_long_segment_is_cut_anywhere() {
        assert_short(&["a_function_with_a_long_name"], 16, &["…ith_a_long_name"]);
        assert_short(
            &["model::TheLongNameOfSomeType::new"],
            20,
            &["…NameOfSomeType::new"],
        );
    }

    #[test]
    fn generic_arguments_are_no_segments() {
        let name = ["app::Layer<core::ops::Range<u8>>::run"];
        assert_short(&name, 32, &["…ayer<core::ops::Range<u8>>::run"]);
    }

    #[test]
    fn names_that_would_look_alike_keep_more_of_their_end() {
        let names = [
            "app::model::encoder::Block::attend",
            "app::model::decoder::Block::attend",
        ];
        assert_short(
            &names,
            22,
            &["…ncoder::Block::attend", "…ecoder::Block::attend"],
        );
    }

    #[test]
    fn names_that_would_look_alike_keep_their_beginning() {
        let names = [
            "alpha::layers::model::forward",
            "beta::layers::model::forward",
        ];
        assert_short(
            &names,
            20,
            &["alpha:…odel::forward", "beta::…odel::forward"],
        );
    }

    #[test]
    fn names_that_differ_nowhere_near_their_ends_are_numbered() {
        let middle = |letter: char| format!("{}{letter}{}", "x".repeat(100), "y".repeat(100));
        let (one, two) = (middle('1'), middle('2'));
        let short = shorten(&[&one, &two, &one], 20);
        assert_eq!(
            short,
            [
                "…yyyyyyyyyyyyyyyy #1",
                "…yyyyyyyyyyyyyyyy #2",
                "…yyyyyyyyyyyyyyyy #1"
            ]
        );
    }

    #[test]
    fn arguments_of_kernels_are_cut_and_not_their_names() {
        let softmax = "void at::native::(anonymous namespace)::softmax_warp_forward<float, float, float, 8, false>\
                       (float*, float const*, int, int, int, bool const*, int, bool)";
        assert_short(&[softmax], 40, &["softmax_warp_forward<float, float, …>"]);
        assert_short(
            &[softmax],
            80,
            &["softmax_warp_forward<float, float, float, 8, false>"],
        );
        assert_short(&["saxpy(float*, float const*, int)"], 20, &["saxpy"]);
        let overloads = [
            "saxpy(float*, float const*, int)",
            "saxpy(float*, double const*, int)",
        ];
        assert_short(
            &overloads,
            27,
            &["saxpy(…, float const*, …)", "saxpy(…, double const*, …)"],
        );
        assert_short(&["  void at::f<float, int>(int)"], 14, &["  f<float, …>"]);
    }

    #[test]
    fn kernels_that_would_look_alike_show_the_arguments_that_differ() {
        let of = |argument: &str| {
            format!(
                "void at::softmax_warp_forward<float, float, float, {argument}, false>(float*, int)"
            )
        };
        let names = [of("8"), of("10"), of("at::Half")];
        let names = names.each_ref().map(String::as_str);
        assert_short(
            &names,
            40,
            &[
                "softmax_warp_forward<…, 8, …>",
                "softmax_warp_forward<…, 10, …>",
                "softmax_warp_forward<…, Half, …>",
            ],
        );
    }

    #[test]
    fn a_shared_path_ends_where_names_begin_to_differ() {
        for (names, path) in [
            (
                &["app::a::f", "app::a::b::g", "app::a::f"][..],
                Some("app::a::"),
            ),
            (&["app::f", "app::g<app::X>"], Some("app::")),
            (&["app::a", "app::a::f"], Some("app::")),
            (&["app::Mlp::forward", "app::Mlp::new"], Some("app::")),
            (&["Mlp::a::f", "Mlp::a::g"], None),
            (&["app::f", "app"], None),
            (&["app::f", "other::f"], None),
            (&["a.b.c", "a.b.d"], None),
            (&["app::f", "app::f"], None),
            (&["app::f"], None),
            (&[], None),
        ] {
            assert_eq!(shared_path(names), path, "{names:?}");
        }
    }

    #[cfg(feature = "terminal")]
    #[test]
    fn wide_letters_take_two_columns() {
        assert_short(&["模型::训练::前向传播"], 12, &["…前向传播"]);
    }

    proptest! {
        #[test]
        fn texts_fit_and_remain_different(
            texts in prop::collection::hash_set(
                "(~ )?(void )?([a-c]{1,9}(::|/|\\.)){0,6}[a-d漢é]{1,30}(<[ab]{1,9}(, [ab]{1,9}){0,4}>)?(\\([a-c]{0,9}(, [ab])?\\))?( #[12])?",
                1..40,
            ),
            limit in 16_usize..40,
        ) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let short = shorten(&texts, limit);
            let different: HashSet<&String> = short.iter().collect();
            prop_assert_eq!(different.len(), texts.len(), "{:?}", short);
            for (text, short) in texts.iter().zip(&short) {
                prop_assert!(width(short) <= limit, "{:?}", short);
                prop_assert!(width(text) > limit || *text == short);
            }
        }
    }
}

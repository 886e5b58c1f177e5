use super::*;

fn table(labels: &[&str], columns: Vec<Column>) -> Table {
    Table {
        title: "Name",
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        columns,
        hottest: None,
    }
}

fn numbers(title: &str, cells: &[&str]) -> Column {
    Column::numbers(title, cells.iter().map(|cell| (*cell).to_owned()).collect())
}

/// `format!` pads to at most 65,535.
#[test]
fn cells_of_any_length_are_padded() {
    let long = "é".repeat(70_000);
    let columns = vec![
        Column::text("Text", vec![long.clone(), "-".to_owned()]),
        Column::numbers("Number", vec!["1".repeat(70_000), "2".to_owned()]),
    ];
    let drawn = table(&[&long, "short"], columns).draw(usize::MAX, false);
    let lengths: Vec<usize> = drawn.lines().map(|line| line.chars().count()).collect();
    assert_eq!(lengths, [210_004; 4]);
    assert!(drawn.lines().nth(3).unwrap().ends_with(" 2"));
}

#[test]
fn a_table_aligns_its_columns_in_their_groups() {
    let columns = vec![
        Column::of(&[1, 200], "Calls", |calls| Some(calls.to_string())),
        Column::of(&[1, 200], "Total", |calls| {
            (*calls > 1).then(|| "7 ns".to_owned())
        })
        .group(Some("CPU")),
        numbers("Self", &["12.5 µs", "3 s"]).group(Some("CPU")),
        numbers("Total", &["1 s", "2 s"]).group(Some("CUDA")),
        Column::text("Place", vec!["here\nthere".to_owned(), String::new()]),
    ];
    let drawn = table(&["a", "long name"], columns).draw(usize::MAX, false);
    let expected = "                    ───── CPU ────   CUDA
Name       Calls    Total     Self   Total   Place
─────────────────────────────────────────────────
a              1        -  12.5 µs     1 s   here
                                             there
long name    200     7 ns      3 s     2 s
";
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        squeezed(&drawn).replace('─', ""),
        squeezed(expected).replace('─', "")
    );
    let lines: Vec<&str> = drawn.lines().collect();
    let column_of = |line: &str, text: &str| line.find(text).map(|at| width(&line[..at]));
    assert_eq!(column_of(lines[3], "here"), column_of(lines[4], "there"));
    assert_eq!(width(lines[2]), width(lines[4]));
}

#[test]
fn columns_with_high_ranks_are_left_out_first_and_names_shortened_last() {
    let columns = || {
        vec![
            numbers("Total", &["2.29 s"]),
            numbers("Mean", &["2.29 s"]).rank(1),
            numbers("p99", &["2.29 s"]).rank(3),
            numbers("Max", &["2.29 s"]).rank(2),
        ]
    };
    let name = "application::models::layers::attention::Attention::forward";
    let drawn = |width: usize| {
        let drawn = table(&[name], columns()).draw(width, false);
        let lines: Vec<&str> = drawn.lines().collect();
        assert!(
            lines
                .iter()
                .all(|line| self::width(line) <= width.max(MIN_WIDTH)),
            "{drawn}"
        );
        let header = lines[0].split_whitespace().collect::<Vec<_>>().join(" ");
        let label = lines[2].split("  ").next().unwrap_or_default().to_owned();
        (header, label)
    };
    let all = "Name Total Mean p99 Max".to_owned();
    assert_eq!(drawn(90), (all.clone(), name.to_owned()));
    assert_eq!(drawn(75).0, all);
    assert_eq!(drawn(60), (all, "…Attention::forward".to_owned()));
    let wide = "1".repeat(30);
    let columns = vec![
        numbers("Total", &[&wide]),
        numbers("Mean", &["2 s"]).rank(1),
        numbers("p99", &["2 s"]).rank(2),
    ];
    let drawn = table(&[name], columns).draw(0, false);
    assert_eq!(
        drawn
            .lines()
            .next()
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>(),
        ["Name", "Total", "Mean"]
    );
}

#[test]
fn colours_change_no_letter() {
    let columns = vec![numbers("Total", &["2.29 s", "1 s"]).group(Some("CPU"))];
    let mut table = table(&["a", "b"], columns);
    table.hottest = Some(1);
    let plain = table.clone().draw(80, false);
    let colored = table.draw(80, true);
    assert!(colored.contains("\u{1b}[1;33mb\u{1b}[0m"), "{colored:?}");
    let codes = regex_lite::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    assert_eq!(codes.replace_all(&colored, ""), plain);
}

#[test]
fn recursive_calls_show_both_counts() {
    assert_eq!(calls(150, 100), "150/100");
    assert_eq!(calls(7, 7), "7");
}

#[test]
fn a_path_that_all_names_share_is_left_out() {
    let names = [
        "the_application::model::encoder::attention",
        "~ the_application::model::encoder::feed_forward",
        "  a kernel below it",
        "the_application::model::norm",
    ];
    let calls = |names: &[&str]| vec![numbers("Calls", &vec!["12345678901234567890"; names.len()])];
    let narrow = table(&names, calls(&names)).draw(MIN_WIDTH, false);
    let labels: Vec<&str> = narrow.lines().skip(2).collect();
    assert!(labels[0].starts_with("encoder::attention "), "{narrow}");
    assert!(
        labels[1].starts_with("~ encoder::feed_forward "),
        "{narrow}"
    );
    assert!(labels[2].starts_with("  a kernel below it "), "{narrow}");
    assert!(labels[3].starts_with("norm "), "{narrow}");
    let line = "all names begin with `the_application::model::`, which is left out";
    assert_eq!(labels[4..], [line], "{narrow}");
    let wide = table(&names, calls(&names)).draw(200, false);
    let lines = |table: &str| table.lines().map(str::to_owned).collect::<Vec<String>>();
    assert_eq!(lines(&wide)[2..], lines(&narrow)[2..]);
    // What stands in place of a name is none, and a row alone shares nothing.
    let with_outside = [names[0], "(outside of measured functions)", names[3]];
    let drawn = table(&with_outside, calls(&with_outside)).draw(200, false);
    assert!(
        drawn.contains("\nnorm ") && drawn.contains("\n(outside"),
        "{drawn}"
    );
    let alone = table(&names[..1], calls(&names[..1])).draw(200, false);
    assert!(alone.contains(names[0]), "{alone}");
    let other = [names[0], "other::function_with_a_long_name::and_more_of_it"];
    let cut = table(&other, calls(&other)).draw(MIN_WIDTH, false);
    assert!(cut.contains('…') && !cut.contains("left out"), "{cut}");
}

#[test]
fn cells_with_names_lose_the_path_with_the_labels() {
    let other = "the_application::model::function_with_a_long_name".to_owned();
    let columns = vec![Column::names("called", vec!["-".to_owned(), other])];
    let label = "the_application::model::another_with_a_long_name";
    let drawn = table(&[label, ""], columns).draw(80, false);
    let rows: Vec<&str> = drawn.lines().skip(2).collect();
    assert_eq!(rows[0], "another_with_a_long_name  -");
    assert_eq!(rows[1].trim(), "function_with_a_long_name");
    assert!(rows[2].contains("`the_application::model::`"), "{drawn}");
}

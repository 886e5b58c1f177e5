//! Tables to the character, at five widths, and properties that hold for all rows.

use crate::Color;
use crate::text::terminal;
use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::columns::Columns;
use crate::energy::Energy;
use crate::golden::assert_golden;
use crate::share::{share_cpu, share_cuda};
use crate::text::table::MIN_WIDTH;
use crate::times::Times;
use crate::{GroupBy, Summary};

/// Times around a mean, of a name that takes `own` of its total itself.
fn times(calls: u64, mean_ns: f64, own: f64) -> Times {
    Times {
        calls,
        total_ns: mean_ns * calls as f64,
        self_ns: mean_ns * calls as f64 * own,
        mean_ns,
        std_ns: mean_ns / 10.0,
        min_ns: mean_ns / 2.0,
        max_ns: mean_ns * 4.1,
        p50_ns: mean_ns * 0.9,
        p95_ns: mean_ns * 1.5,
        p99_ns: mean_ns * 2.2,
        ..Times::default()
    }
}

fn row(name: &str, calls: u64, mean_ns: f64, own: f64) -> Row {
    Row {
        name: name.to_owned(),
        calls,
        primitive_calls: calls,
        cpu: Some(times(calls, mean_ns, own)),
        too_short: mean_ns < 100.0,
        ..Row::default()
    }
}

fn shared(mut rows: Vec<Row>) -> Vec<Row> {
    share_cpu(&mut rows, |_, row| row.cpu.map_or(0.0, |cpu| cpu.total_ns));
    share_cuda(&mut rows);
    rows
}

/// A program that trains: a recursive function, a future, short calls, names that differ in their beginnings only.
fn on_the_cpu() -> Vec<Row> {
    let mut rows = vec![
        row("quickstart::main", 1, 2.291e9, 0.004),
        row(
            "quickstart::trainer::Trainer::train_epoch",
            12,
            189.4e6,
            0.01,
        ),
        row(
            "quickstart::trainer::Trainer::backward",
            1350,
            812_000.0,
            1.0,
        ),
        row(
            "quickstart::trainer::Trainer::forward",
            1350,
            516_400.0,
            1.0,
        ),
        row("quickstart::data::loader::Loader::fetch", 40, 9.8e6, 0.02),
        row(
            "quickstart::model::encoder::Block::attend",
            150,
            51_640.0,
            1.0,
        ),
        row(
            "quickstart::model::decoder::Block::attend",
            150,
            43_100.0,
            1.0,
        ),
        row("quickstart::metrics::add", 1_048_576, 8.31, 1.0),
    ];
    rows[4].futures = 40;
    rows[4].polled_ns = 7.84e6;
    rows[6].primitive_calls = 100;
    shared(rows)
}

/// The program on a GPU.
fn on_the_gpu() -> Vec<Row> {
    let mut rows = on_the_cpu();
    for (index, mean_ns, launch_bound) in [
        (2, 1.412e6, 0.02),
        (3, 702_000.0, 0.034),
        (5, 20_117.0, 0.985),
        (6, 18_330.0, 1.0),
    ] {
        let row = &mut rows[index];
        row.cuda = Some(times(row.calls, mean_ns, 1.0));
        row.launch_bound = Some(launch_bound);
    }
    shared(rows)
}

fn summary(rows: &[Row], options: &TableOptions) -> String {
    let columns = |rows: &[Row], key| Columns::of_summary(rows, key, options.statistics);
    render(rows.to_vec(), options, columns).text
}

fn averages(rows: &[Row], options: &TableOptions) -> String {
    let columns =
        |rows: &[Row], key| Columns::of_averages(rows, key, options.statistics, GroupBy::new());
    render(rows.to_vec(), options, columns).text
}

/// Compares tables with the file of a width.
#[track_caller]
fn assert_tables(file: &str, options: &TableOptions) {
    let text = [
        (
            "A summary without GPU times",
            summary(&on_the_cpu(), options),
        ),
        ("A summary with GPU times", summary(&on_the_gpu(), options)),
        (
            "Key averages without GPU times",
            averages(&on_the_cpu(), options),
        ),
        (
            "Key averages with GPU times",
            averages(&on_the_gpu(), options),
        ),
    ]
    .map(|(title, table)| format!("{title}\n\n{table}"))
    .join("\n");
    assert_golden(&format!("render/golden/{file}"), &text);
}

#[test]
fn tables_at_80_columns_look_like_this() {
    assert_tables("80.txt", &TableOptions::new().width(80));
}

#[test]
fn tables_at_100_columns_look_like_this() {
    assert_tables("100.txt", &TableOptions::new().width(100));
}

#[test]
fn tables_at_120_columns_look_like_this() {
    assert_tables("120.txt", &TableOptions::new().width(120));
}

#[test]
fn tables_at_200_columns_look_like_this() {
    assert_tables("200.txt", &TableOptions::new().width(200));
}

#[test]
fn tables_without_a_terminal_look_like_this() {
    assert_tables("piped.txt", &TableOptions::new().width(terminal::PIPE));
}

/// The program on a GPU whose energy was measured.
fn with_energy() -> Vec<Row> {
    let mut rows = on_the_gpu();
    for (index, joules) in [
        (2, Some(620.4)),
        (3, Some(289.1)),
        (5, None),
        (6, Some(0.25)),
    ] {
        rows[index].energy = Some(Energy {
            joules,
            gpu_self_ns: rows[index].cuda.map_or(0.0, |cuda| cuda.self_ns),
        });
    }
    rows
}

#[test]
fn tables_with_energy_look_like_this() {
    let by_energy = TableOptions::new().width(110).sort_by(SortKey::Energy);
    let wide = TableOptions::new().width(250);
    let tables = [
        summary(&with_energy(), &by_energy),
        averages(&with_energy(), &wide),
    ];
    assert_golden("render/golden/energy.txt", &tables.join("\n"));
}

#[test]
fn the_column_that_rows_are_sorted_by_stays() {
    let options = TableOptions::new().width(80).sort_by("cpu_time_p99");
    for table in [
        summary(&on_the_gpu(), &options),
        averages(&on_the_gpu(), &options.clone().statistics(true)),
    ] {
        assert!(table.contains("p99") && !table.contains("p95"), "{table}");
    }
}

#[test]
fn an_unknown_key_changes_no_order_and_is_reported() {
    let options = TableOptions::new().sort_by("self_time").row_limit(2);
    let table = summary(&on_the_cpu(), &options);
    assert!(
        table.contains(
            "\nnot sorted: `self_time` is not a sort key; did you mean `self_cpu_time_total`?\n"
        ),
        "{table}"
    );
    assert!(
        table.contains("\n… and 6 more\n") && table.contains("\nmain "),
        "{table}"
    );
}

#[test]
fn a_note_about_the_order_holds_until_the_rows_are_sorted_again() {
    let summary = Summary {
        rows: on_the_cpu(),
        ..Summary::default()
    };
    let is_noted = |table: String| table.contains("not sorted: `self_time`");
    let unsorted = summary.clone().sort_by("self_time");
    assert!(is_noted(unsorted.to_string()));
    assert!(!is_noted(
        unsorted.table(TableOptions::new().sort_by("count"))
    ));
    assert!(!is_noted(unsorted.clone().sort_by("count").to_string()));
    let averages = unsorted.key_averages();
    assert!(!is_noted(averages.clone().sort_by("count").to_string()));
    assert!(!is_noted(
        averages.table(TableOptions::new().sort_by("count"))
    ));
    // Nor is it among the warnings that each later summary of the process repeats.
    let warnings = profiler_host::diagnostics::notices();
    assert!(!warnings.iter().any(|warning| warning.contains("self_time")));
}

#[test]
fn the_row_with_the_longest_self_time_stands_out() {
    let options = TableOptions::new().width(200).color(Color::Always);
    let table = summary(&on_the_gpu(), &options);
    assert!(
        table.contains("\u{1b}[1;33mtrainer::Trainer::backward\u{1b}[0m"),
        "{table}"
    );
    assert_eq!(table.matches("\u{1b}[1;33m").count(), 1);
    assert!(!summary(&on_the_gpu(), &TableOptions::new()).contains('\u{1b}'));
}

fn any_row() -> impl Strategy<Value = Row> {
    let name = "([a-z]{1,9}::){0,6}[A-Za-z_漢]{1,40}(<[a-z:]{1,20}>)?(::new)?";
    let cpu = prop::option::of((0.0_f64..1e13, 0.0_f64..1.0));
    let cuda = prop::option::of((0.0_f64..1e13, 0.0_f64..1.0));
    (name, 0_u64..1_000_000_000_000, any::<bool>(), cpu, cuda).prop_map(
        |(name, calls, recursive, cpu, cuda)| {
            let of =
                |part: Option<(f64, f64)>| part.map(|(mean, own)| times(calls.max(1), mean, own));
            Row {
                name,
                calls,
                primitive_calls: if recursive { calls / 2 } else { calls },
                cpu: of(cpu),
                cuda: of(cuda),
                launch_bound: cuda.map(|(_, share)| share),
                too_short: recursive,
                ..Row::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_line_is_wider_than_the_table_may_be_and_no_two_rows_look_alike(
        rows in prop::collection::vec(any_row(), 1..30),
        width in 0_usize..260,
        statistics: bool,
        key in prop::sample::select(SortKey::ALL.to_vec()),
    ) {
        let names: HashSet<String> = rows.iter().map(|row| row.name.clone()).collect();
        let rows = shared(rows);
        let options = TableOptions::new().width(width).statistics(statistics).sort_by(key);
        for table in [summary(&rows, &options), averages(&rows, &options)] {
            // Notes follow the table, at any length.
            let lines = || table.lines().filter(|line| !line.starts_with("sorted by "));
            for line in lines() {
                prop_assert!(crate::text::width(line) <= width.max(MIN_WIDTH), "{}", table);
            }
            let rule = lines().position(|line| line.starts_with('─')).unwrap();
            let cells: Vec<&str> = lines().skip(rule + 1).collect();
            prop_assert_eq!(cells.len(), rows.len());
            let labels: HashSet<&str> = cells
                .iter()
                .filter_map(|line| line.trim_start_matches("~ ").split("  ").next())
                .collect();
            prop_assert_eq!(labels.len(), names.len(), "{}", table);
        }
    }
}

#[test]
fn memory_that_was_not_counted_has_no_columns() {
    let of = |memory: crate::MemoryStats| {
        let rows = vec![Row {
            memory: Some(memory),
            ..row("load", 1, 1e6, 1.0)
        }];
        let rendered = render(rows, &TableOptions::new(), |rows, sorted_by| {
            Columns::of_averages(rows, sorted_by, false, GroupBy::new())
        });
        let has = |title: &str| rendered.text.contains(title);
        (has("CPU Mem"), has("CUDA Mem"))
    };
    let nothing = crate::MemoryStats::default();
    let on_the_device = crate::MemoryStats {
        cuda_net: Some(0),
        ..nothing
    };
    let on_the_host = crate::MemoryStats {
        cpu_in_use: 4_096,
        ..nothing
    };
    assert_eq!(of(nothing), (false, false));
    assert_eq!(of(on_the_device), (false, true));
    assert_eq!(of(on_the_host), (true, false));
}

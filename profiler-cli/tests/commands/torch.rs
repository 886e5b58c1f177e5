//! A trace that PyTorch's profiler wrote, through every command. `../traces/make_torch_trace.py` recorded it, with what
//! `key_averages` said of it.

use std::collections::BTreeMap;
use std::io::Read;

use crate::support::{Folder, profiler};

const TRACE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/traces/torch.pt.trace.json.gz"
);
const AVERAGES: &str = include_str!("../traces/torch.csv");

/// The calls, the total and the self time of a function, in nanoseconds.
type Numbers = (u64, u64, u64);

/// Returns what PyTorch said.
fn expected() -> BTreeMap<String, Numbers> {
    let rows = AVERAGES.lines().skip(1);
    rows.map(|row| {
        // Names may contain commas.
        let mut fields = row.rsplitn(4, ',');
        let mut next = || fields.next().expect("four fields");
        let nanoseconds =
            |microseconds: &str| microseconds.replace('.', "").parse().expect("a time");
        let (own, total) = (nanoseconds(next()), nanoseconds(next()));
        let calls = next().parse().expect("a number");
        (next().trim_matches('"').to_owned(), (calls, total, own))
    })
    .collect()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("valid JSON")
}

fn numbers(report: &serde_json::Value) -> BTreeMap<String, Numbers> {
    let rows = report["rows"].as_array().expect("a list").iter();
    rows.map(|row| {
        let name = row["name"].as_str().expect("a name").to_owned();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "times are whole and short"
        )]
        let time = |key: &str| row["cpu"][key].as_f64().expect("a time") as u64;
        let calls = row["calls"].as_u64().expect("a number");
        (name, (calls, time("total_ns"), time("self_ns")))
    })
    .collect()
}

#[test]
fn the_report_has_the_numbers_of_pytorch() {
    let expected = expected();
    assert!(expected.len() > 40, "{}", expected.len());
    let run = profiler(&["report", TRACE, "--format", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let report = json(&run.stdout);
    assert_eq!(numbers(&report), expected);
    let own: u64 = expected.values().map(|(_, _, own)| own).sum();
    assert_eq!(report["self_cpu_time_total_ns"].as_f64(), Some(own as f64));
}

#[test]
fn a_key_that_no_row_has_hides_no_row_that_takes_long() {
    let hottest = expected().into_iter().max_by_key(|(_, (_, _, own))| *own);
    let hottest = hottest.expect("the trace has functions").0;
    let by_cuda = ["report", TRACE, "--sort", "self_cuda_time_total"];
    let note = "sorted by self_cpu_time_total: no row has self_cuda_time_total";

    let run = profiler(&[&by_cuda[..], &["--row-limit", "1"]].concat());
    assert!(
        run.stdout.contains(&hottest) && run.stdout.contains(note),
        "{}",
        run.stdout
    );
    let run = profiler(&[&by_cuda[..], &["--format", "csv"]].concat());
    let first = run.stdout.lines().nth(1).expect("a row");
    assert!(
        first.contains(&hottest) && run.stderr.contains(note),
        "{first}{}",
        run.stderr
    );
    let run = profiler(&[&by_cuda[..], &["--format", "json"]].concat());
    assert_eq!(json(&run.stdout)["notes"][0], note);
}

#[test]
fn the_table_is_sorted_limited_and_restricted() {
    let table = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["report", TRACE, "--width", "150"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let run = profiler(&arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
        run.stdout
    };
    // These tables have operators alone.
    let left_out = "all names begin with `aten::`, which is left out";
    let first_names = |text: &str| -> Vec<String> {
        let lines = text.lines().skip(2).take_while(|line| *line != left_out);
        let names = lines.map(|line| line.split("  ").next().unwrap_or_default());
        names.map(|name| format!("aten::{name}")).collect()
    };
    let mut by_calls: Vec<(u64, String)> = expected()
        .into_iter()
        .map(|(name, (calls, ..))| (calls, name))
        .collect();
    by_calls.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    let three: Vec<String> = by_calls.into_iter().take(3).map(|(_, name)| name).collect();
    assert_eq!(
        first_names(&table(&["--sort", "count", "--row-limit", "3"])),
        three
    );
    let restricted = table(&["--restrict", "^aten::", "--restrict", "2"]);
    let names = first_names(&restricted);
    assert!(
        names.len() == 2 && restricted.contains(left_out),
        "{restricted}"
    );
    assert!(!table(&["--color", "auto"]).contains('\u{1b}'));
    assert!(table(&["--color", "always"]).contains('\u{1b}'));
    let callers = table(&["--restrict", "^aten::addmm$", "--callers"]);
    assert!(
        callers.contains("was called by") && callers.contains("\naddmm     linear "),
        "{callers}"
    );
    let called = table(&[
        "--restrict",
        "^aten::linear$",
        "--callees",
        "--format",
        "csv",
    ]);
    assert!(
        called
            .lines()
            .any(|line| line.starts_with("aten::linear,aten::addmm,4,")),
        "{called}"
    );
}

#[test]
fn the_trace_is_valid() {
    let run = profiler(&["validate", "--strict", TRACE]);
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (0, "", "")
    );
}

#[test]
fn the_page_and_every_format_hold_its_functions() {
    let folder = Folder::new();
    let page = folder.path("torch.html");
    let run = profiler(&["html", TRACE, "-o", &page, "--title", "my <training>"]);
    let wrote = format!("profiler: wrote {page}\n");
    assert_eq!(
        (run.code, run.stdout.as_str(), &run.stderr),
        (0, "", &wrote)
    );
    let html = std::fs::read_to_string(&page).expect("it was written");
    assert!(html.contains("my &lt;training>") || html.contains("my &lt;training&gt;"));
    for name in [
        "torch.prof",
        "torch.pb.gz",
        "torch.folded",
        "torch.pftrace",
        "torch.trace.json",
        "torch.json",
        "torch.csv",
    ] {
        let path = folder.path(name);
        let run = profiler(&["convert", TRACE, "-o", &path]);
        assert_eq!(
            (run.code, run.stdout.as_str(), run.stderr),
            (0, "", format!("profiler: wrote {path}\n")),
            "{name}"
        );
        let content = std::fs::read(&path).expect("it was written");
        let holds = |text: &[u8]| content.windows(text.len()).any(|window| window == text);
        if name == "torch.pb.gz" {
            assert!(content.starts_with(&[0x1f, 0x8b]));
        } else {
            assert!(holds(b"aten::linear"), "{name}");
        }
    }
    let stacks = std::fs::read_to_string(folder.path("torch.folded")).expect("it was written");
    let linear = "ProfilerStep*;forward;aten::linear ";
    let own = stacks
        .lines()
        .find_map(|line| line.strip_prefix(linear))
        .expect("its stack");
    assert_eq!(own.parse::<u64>().ok(), Some(expected()["aten::linear"].2));
    let written = folder.names();
    assert_eq!(written.len(), 8, "{written:?}");
    // A written trace is read again.
    let again = profiler(&[
        "report",
        &folder.path("torch.trace.json"),
        "--format",
        "json",
    ]);
    let (mut read, mut expected) = (numbers(&json(&again.stdout)), expected());
    // Steps are on a track of their own there.
    for numbers in [&mut read, &mut expected] {
        numbers.retain(|name, _| !name.starts_with("Profiler"));
    }
    assert_eq!(read, expected);
}

#[test]
fn the_trace_does_not_differ_from_the_same_work_of_another_process() {
    let file = std::fs::File::open(TRACE).expect("it is there");
    let mut text = String::new();
    let mut content = flate2::read::MultiGzDecoder::new(file);
    content.read_to_string(&mut text).expect("JSON");
    let text = text.replace("\"pid\": 16089", "\"pid\": 16090");
    let folder = Folder::new();
    let other = folder.file("other.pt.trace.json", text.as_bytes());
    let run = profiler(&["diff", "--base", TRACE, "--new", &other]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(run.stdout.contains("aten::addmm"), "{run:?}");
    assert!(
        !run.stdout.contains("slower") && !run.stdout.contains("faster"),
        "{run:?}"
    );
}

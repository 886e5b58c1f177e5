//! Files that are damaged, huge or written to do harm: one clear line each.

use std::fmt::Write as _;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use profiler_report::Timeline;

use super::{complete, of_text, own, read, refused};
use crate::input::{Input, Limits};

fn message(text: &str) -> String {
    refused(text.as_bytes(), Limits::DEFAULT)
}

fn event(fields: &str) -> String {
    format!(r#"{{"traceEvents": [{{"ph": "X", "name": "f", "pid": 1, "tid": 1, {fields}}}]}}"#)
}

fn compressed(parts: &[&[u8]]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    for part in parts {
        gzip.write_all(part).expect("memory takes everything");
    }
    gzip.finish().expect("memory takes everything")
}

#[test]
fn files_that_hold_something_else_are_refused() {
    assert!(message("").starts_with("is empty"));
    assert!(message(" \n").starts_with("is empty"));
    assert!(message("Name  Calls\n").starts_with("is neither a summary nor a trace"));
    assert!(message("\u{7f}ELF").starts_with("is neither a summary nor a trace"));
    assert!(message(r#"{"a": 1}"#).starts_with("is neither a summary nor a trace"));
    assert!(message(r#"{"traceEvents": 3}"#).contains("a list of events"));
    assert!(message(r#"{"traceEvents": [3]}"#).contains("expected an event"));
}

#[test]
fn files_that_are_cut_off_or_damaged_say_where() {
    for text in [
        r#"{"traceEvents": [{"ph": "X""#,
        r#"{"traceEvents": []"#,
        "[",
        "{",
    ] {
        assert!(
            message(text).starts_with("is cut off"),
            "{text}: {}",
            message(text)
        );
    }
    assert!(message("{\"traceEvents\": [\n{\"ph\" 3}]}").starts_with("line 2, column 7: "));
    assert!(message(r#"{"traceEvents": []} x"#).contains("trailing characters"));
    let list = message(&event(r#""ts": [1], "dur": 1"#));
    assert!(
        list.starts_with("line 1, column ") && list.contains("a number of microseconds"),
        "{list}"
    );
    let whole = compressed(&[event(r#""ts": 1, "dur": 1"#).as_bytes()]);
    assert!(Input::from_reader(&*whole, "", Limits::DEFAULT).is_ok());
    let half = refused(&whole[..whole.len() / 2], Limits::DEFAULT);
    assert!(half.starts_with("is cut off"), "{half}");
    let mut damaged = whole.clone();
    let at = damaged.len() - 6;
    damaged[at] ^= 0xff;
    let Ok(Input::Timeline(damaged)) = Input::from_reader(&*damaged, "", Limits::DEFAULT) else {
        panic!("its event is whole");
    };
    let (reason, _) = &damaged.missing[0];
    assert!(
        reason.starts_with("the rest of the file is not read: it is damaged"),
        "{reason}"
    );
}

#[test]
fn events_whose_time_cannot_be_right_are_left_out_and_counted() {
    let good = complete("cpu_op", "f", (1.0, 1.0), "");
    let outside =
        "events have a time or a duration outside of the years 1685 to 2255: they are left out";
    for (times, reason) in [
        (r#""ts": 1e19, "dur": 1"#, outside),
        (r#""ts": 1e999, "dur": 1"#, outside),
        (r#""ts": 1, "dur": "inf""#, outside),
        (
            r#""ts": 1, "dur": -1"#,
            "events have a negative duration: they are left out",
        ),
        (
            r#""ts": null, "dur": 1"#,
            "events have no time or no duration: they are left out",
        ),
        (
            r#""ts": 1"#,
            "events have no time or no duration: they are left out",
        ),
        (
            r#""ts": 0, "dur": 0, "cat": "kernel""#,
            "kernels, copies and fills have no time (`ts` and `dur` are 0): they are left out",
        ),
    ] {
        let bad = format!(r#"{{"ph": "X", "name": "f", "pid": 1, "tid": 1, {times}}}"#);
        let timeline = read(&[&*good, &*bad, &*bad].join(","));
        assert_eq!(timeline.slices.len(), 1);
        assert_eq!(timeline.missing, [(reason.to_owned(), 2)]);
    }
}

#[test]
fn times_that_cannot_be_right_together_are_refused() {
    let apart = format!(
        r#"{{"traceEvents": [{}, {}]}}"#,
        complete("", "f", (-9e15, 1.0), ""),
        complete("", "f", (9e15, 9e15), "")
    );
    assert!(message(&apart).contains("centuries apart"));
    for (base, start) in [(9_000_000_000_000_000_000_i64, 3e14), (i64::MIN, -1.0)] {
        let based = format!(
            r#"{{"baseTimeNanoseconds": {base}, "traceEvents": [{}]}}"#,
            complete("", "f", (start, 1.0), "")
        );
        assert_eq!(
            message(&based),
            "has times outside of the years 1677 to 2262 (with `baseTimeNanoseconds` added); write the trace again"
        );
    }
    let one = of_text(&event(r#""ts": 9e15, "dur": 9e15"#));
    assert!(one.duration_ns >= 0);
}

#[test]
fn events_that_cannot_be_read_are_left_out_and_counted() {
    let good = complete("", "f", (1.0, 1.0), "");
    let long = format!(r#"{{"name": "{}"}}"#, "[,\\\"".repeat(2 << 20));
    for (bad, what) in [
        (
            r#"{"ph": "X", "x": nul, "y": "]}\""}"#,
            "the first at line 3, column 21: expected ident",
        ),
        (
            "3",
            "the first at line 3, column 1: invalid type: integer `3`, expected an event",
        ),
        (&*long, "the first has more than 4194304 bytes"),
    ] {
        let timeline = of_text(&format!("[{good},\n{bad}, {bad},{good}]"));
        assert_eq!(timeline.slices.len(), 2);
        let [(reason, 2)] = &timeline.missing[..] else {
            panic!("{:?}", timeline.missing);
        };
        let expected = format!("events cannot be read and are left out ({what})");
        assert_eq!(*reason, expected);
    }
    // A quote too many costs no other event: where lines end, its own end is found, and otherwise the file is refused.
    let quote = r#"{"ph": "X", "name": "a"b", "args": {"c": 1}}"#;
    let timeline = of_text(&format!("[{good},\n{quote},\n{good},\n{quote},\n{good}\n]"));
    assert_eq!(timeline.slices.len(), 3);
    assert_eq!(timeline.missing[0].1, 2);
    // Where no line tells the end of the event, the rest is left out, and said.
    let one_line = format!("[{good}, {quote}, {good}, {quote}, {good}]").replace('\n', " ");
    let timeline = of_text(&one_line);
    assert_eq!(timeline.slices.len(), 1);
    assert!(
        timeline.missing[0]
            .0
            .starts_with("the rest of the file is not read: line 1, column ")
    );
    // What is not an event is not counted as one.
    assert!(message(&format!("[,{good}]")).contains("column 2: "));
}

#[test]
fn a_table_of_names_that_cannot_be_read_costs_no_event() {
    let text = |table: &str, profiler: &str| {
        let event = complete("", "load", (1.0, 1.0), "");
        of_text(&format!(
            r#"{{"nameTable": {table}, "profiler": {{"name": "{profiler}"}}, "traceEvents": [{event}]}}"#
        ))
    };
    let about = |timeline: &Timeline| {
        let name = &timeline.names[timeline.slices[0].name as usize];
        [&name.text, &name.short, &name.location].map(ToString::to_string)
    };
    let table = r#"{"load": ["a::load", "a.rs:1"], "f": [null, null]}"#;
    let own = text(table, "profiler-runtime");
    assert_eq!(about(&own), ["a::load", "load", "a.rs:1"]);
    assert_eq!(own.missing, []);
    let of_another = text(table, "another");
    assert_eq!(about(&of_another), ["load", "", ""]);
    let long = format!(r#"{{"load": ["{}", null]}}"#, "a".repeat(5 << 20));
    for (table, missing) in [
        (r#"{"load": "a::load", "f": [1, null], "g": []}"#, 3),
        ("[3, {}]", 1),
        ("null", 1),
        (&long, 1),
        ("{}", 0),
    ] {
        let timeline = text(table, "profiler-runtime");
        assert_eq!(about(&timeline), ["load", "", ""]);
        let counts = timeline.missing.iter().map(|(_, count)| *count);
        assert_eq!(counts.sum::<u64>(), missing, "{table:.100}");
    }
    let half = message(r#"{"nameTable": {"load": ["a::"#);
    assert!(half.starts_with("is cut off"), "{half}");
}

#[test]
fn events_are_whole_wherever_the_window_ends() {
    let event = complete(
        "",
        "f",
        (1.5, 2.25),
        r#""correlation": 12.5e1, "x": [-1.5, true, "\u00e9"]"#,
    );
    let whole = of_text(&format!("[{}]", [event.as_str(); 3].join(",")));
    let before = (256 << 10) - event.len() - 1;
    for cut in 0..event.len() {
        let spaces = " ".repeat(before + cut - event.len());
        let text = format!("[{event},{spaces}{event},{event}]");
        let timeline = of_text(&text);
        assert_eq!(timeline.missing, [], "{cut}");
        assert_eq!(timeline.slices, whole.slices, "{cut}");
    }
}

#[test]
fn waits_of_unknown_kinds_are_counted() {
    let timeline = read(&complete("cuda_sync", "Sync of the Future", (1.0, 1.0), ""));
    let reason = "waits (of the category cuda_sync) have names that are not known";
    assert_eq!(timeline.missing, [(reason.to_owned(), 1)]);
}

#[test]
fn large_files_stop_at_the_limits() {
    let mut limits = Limits::DEFAULT;
    limits.max_bytes = 10_000_000;
    let long = format!(r#"{{"name": "{}"}}"#, "[,".repeat(3 << 20));
    let bomb = compressed(&[b"[", long.as_bytes(), b"]"]);
    assert!(bomb.len() < 1 << 20);
    let large = refused(&bomb, limits);
    assert!(
        large.starts_with("has an event of more than 4194304 bytes"),
        "{large}"
    );
    limits.max_bytes = 1_000_000;
    let list = vec![b"{},".repeat(1 << 18); 2];
    let list: Vec<&[u8]> = [&b"["[..]]
        .into_iter()
        .chain(list.iter().map(Vec::as_slice))
        .collect();
    let large = refused(&compressed(&list), limits);
    assert!(
        large.starts_with("has more than 1000000 bytes after decompression"),
        "{large}"
    );
    limits.max_events = 2;
    let three = [(0.0, 1.0), (2.0, 1.0), (4.0, 1.0)].map(|times| complete("", "f", times, ""));
    let three = format!("[{}]", three.join(","));
    let many = refused(three.as_bytes(), limits);
    assert!(many.starts_with("has more than 2 events"), "{many}");
    let summary = format!(r#"{{"rows": [], "notes": ["{}"]}}"#, "x".repeat(65 << 20));
    let large = refused(summary.as_bytes(), Limits::DEFAULT);
    assert!(large.starts_with("has more than 67108864 bytes"), "{large}");
}

#[test]
fn events_of_which_nothing_is_kept_are_counted_too() {
    let mut limits = Limits::DEFAULT;
    limits.max_events = 3;
    for event in [
        "{}",
        r#"{"ph": "s", "name": "f"}"#,
        r#"{"ph": "X", "ts": []}"#,
    ] {
        let list = |count| {
            format!(
                r#"{{"traceEvents": [{{"ph": "i"}}{}]}}"#,
                format!(",{event}").repeat(count)
            )
        };
        let fits = Input::from_reader(list(2).as_bytes(), "", limits);
        assert!(fits.is_ok(), "{event}: {fits:?}");
        let many = refused(list(3).as_bytes(), limits);
        assert!(
            many.starts_with("has more than 3 events"),
            "{event}: {many}"
        );
    }
}

#[test]
fn names_beyond_the_limit_are_one_row() {
    let mut text = "[".to_owned();
    for name in 0..Limits::NAMES + 10 {
        let _ = write!(
            text,
            r#"{{"ph":"X","name":"n{name}","ts":{name},"dur":1}},"#
        );
    }
    text.push_str(r#"{"ph":"X","name":"n7","ts":0,"dur":1}]"#);
    let timeline = of_text(&text);
    assert_eq!(timeline.names.len(), Limits::NAMES + 1);
    let averages = timeline.key_averages();
    let calls = |name: &str| averages.row(name).map(|row| row.calls);
    assert_eq!(calls("(other names)"), Some(10));
    assert_eq!((calls("n7"), calls("n65536")), (Some(2), None));
    let [(reason, 10)] = &timeline.missing[..] else {
        panic!("{:?}", timeline.missing);
    };
    assert_eq!(
        reason,
        "events have names beyond the first 65536 different ones: they are one row, (other names)"
    );
}

#[test]
fn deep_values_and_deep_calls_take_no_stack() {
    let lists = "[".repeat(100_000);
    let deep = format!(r#"{{"deviceProperties": {lists}"#);
    assert!(message(&deep).contains("recursion limit exceeded"));
    // Values that are not kept may have any depth.
    let deep = format!(r#"{{"x": {}"#, "{\"a\":".repeat(100_000));
    assert!(message(&deep).starts_with("is cut off"));
    let shapes = format!(r#""Input Dims": {lists}{}"#, "]".repeat(100_000));
    let timeline = read(&complete("cpu_op", "f", (0.0, 1.0), &shapes));
    assert_eq!(timeline.slices[0].shapes, None);
    let calls: Vec<String> = (0..50_000)
        .map(|depth| {
            complete(
                "",
                "f",
                (f64::from(depth), f64::from(100_001 - 2 * depth)),
                "",
            )
        })
        .collect();
    let timeline = read(&calls.join(","));
    assert_eq!(timeline.slices.len(), 50_000);
    assert_eq!(timeline.slices[49_999].parent, Some(49_998));
    assert_eq!(
        timeline
            .key_averages()
            .row("f")
            .map(|row| row.primitive_calls),
        Some(1)
    );
}

#[test]
fn spans_that_all_overlap_take_neither_long_nor_many_tracks() {
    let crossing: Vec<String> = (0..20_000)
        .map(|start| complete("", "f", (f64::from(start * 2), 30_000.0), ""))
        .collect();
    let timeline = read(&crossing.join(","));
    assert_eq!(timeline.tracks.len(), 65);
    let shown = timeline.slices.len() as u64;
    let [(reason, missing)] = &timeline.missing[..] else {
        panic!("{:?}", timeline.missing);
    };
    assert!(reason.contains("overlap"), "{reason}");
    assert_eq!(shown + missing, 20_000);
}

#[test]
fn repeated_ids_and_circles_of_futures_do_no_harm() {
    let future = |name: &str| {
        complete(
            "cpu_op",
            name,
            (0.0, 10.0),
            r#""future": true, "External id": 1, "parent": 1"#,
        )
        .replace(r#""tid": 1"#, r#""tid": 7"#)
    };
    let events = [
        future("a"),
        future("b"),
        future("a"),
        complete(
            "user_annotation",
            "a",
            (0.0, 10.0),
            r#""parent": 1, "poll": true"#,
        ),
        complete(
            "user_annotation",
            "b",
            (0.0, 10.0),
            r#""parent": 1, "poll": true"#,
        ),
        complete(
            "user_annotation",
            "a",
            (0.0, 10.0),
            r#""parent": 1, "poll": true"#,
        ),
        complete("cuda_runtime", "l", (0.0, 10.0), r#""correlation": 1"#),
        complete("cuda_runtime", "l", (0.0, 10.0), r#""correlation": 1"#),
    ];
    let timeline = of_text(&own(&events));
    assert_eq!(timeline.slices.len(), 8);
    for (index, slice) in timeline.slices.iter().enumerate() {
        assert!(slice.parent.is_none_or(|parent| (parent as usize) < index));
    }
    let averages = timeline.key_averages();
    assert_eq!(averages.rows.iter().map(|row| row.calls).sum::<u64>(), 5);
}

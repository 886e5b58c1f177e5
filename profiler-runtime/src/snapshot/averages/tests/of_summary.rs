//! Averages of the running statistics.

use profiler_report::internal::{busy, share_cpu, share_cuda};
use profiler_report::{KeyAverages, Row, Summary, TimeSource, Times, Verdict};

fn summary(mut rows: Vec<Row>) -> Summary {
    Summary {
        self_cpu_time_total_ns: share_cpu(&mut rows, |_, row| busy(row)),
        self_cuda_time_total_ns: share_cuda(&mut rows),
        rows,
        nothing_measured: None,
        // Another test of this process may have had calls counted by their callers.
        call_tree: None,
        ..crate::snapshot::summary()
    }
}

fn work(name: &str, total_ns: f64, self_ns: f64) -> Row {
    Row {
        name: name.to_owned(),
        calls: 3,
        primitive_calls: 2,
        cpu: Some(Times {
            calls: 3,
            total_ns,
            self_ns,
            mean_ns: total_ns / 2.0,
            p99_ns: total_ns,
            ..Times::default()
        }),
        source: TimeSource::Cpu,
        ..Row::default()
    }
}

fn shares(averages: &KeyAverages) -> Vec<(&str, f64, f64)> {
    let rows = averages.rows.iter();
    let shares = rows.filter_map(|row| {
        let cpu = row.cpu.as_ref()?;
        Some((row.name.as_str(), cpu.self_percent, cpu.total_percent))
    });
    shares.collect()
}

#[test]
fn rows_of_a_summary_become_rows_with_shares() {
    let mut inner = work("inner", 2e6, 2e6);
    inner.cuda = Some(Times {
        calls: 3,
        total_ns: 5e6,
        self_ns: 4e6,
        ..Times::default()
    });
    inner.launch_bound = Some(1.0);
    inner.without_cuda = 7;
    let open = Row {
        name: "open".to_owned(),
        open: 1,
        ..Row::default()
    };
    let averages = summary(vec![inner, open, work("outer", 3e6, 1e6)])
        .key_averages()
        .sort_by("cpu_time_total");
    assert_eq!(
        shares(&averages),
        [("outer", 33.33, 100.0), ("inner", 66.67, 66.67)]
    );
    assert_eq!(
        averages.rows.len(),
        2,
        "what has not ended yet has no average"
    );
    let inner = &averages.rows[1];
    let cuda = inner.cuda.as_ref().expect("a GPU time");
    assert_eq!(
        (cuda.total_ns, cuda.self_percent, cuda.total_percent),
        (5e6, 100.0, 100.0)
    );
    assert_eq!(inner.verdict().map(Verdict::as_str), Some("launch-bound"));
    assert_eq!(
        (inner.calls, inner.primitive_calls, inner.without_cuda),
        (3, 2, 7)
    );
    assert_eq!(averages.self_cpu_time_total_ns, Some(3e6));
    assert_eq!(averages.self_cuda_time_total_ns, Some(4e6));
}

#[test]
fn a_future_that_waits_takes_no_share_of_the_processor() {
    let fetch = Row {
        futures: 3,
        polled_ns: 2e6,
        ..work("fetch", 900e6, 1e6)
    };
    let averages = summary(vec![fetch, work("parse", 3e6, 3e6)]).key_averages();
    assert_eq!(
        shares(&averages),
        [("fetch", 25.0, 50.0), ("parse", 75.0, 75.0)]
    );
    assert!(averages.to_string().contains("Polled"), "{averages}");
}

#[test]
fn what_statistics_do_not_know_is_said() {
    let averages = summary(vec![work("work", 1e6, 1e6)]).key_averages();
    assert!(averages.callers().edges.is_empty() && averages.callees().edges.is_empty());
    let table = averages.callers().to_string();
    assert!(
        table.contains("take them from the trace of a session"),
        "{table}"
    );

    let out_of_order = Row {
        out_of_order: 2,
        ..work("held", 1e6, 1e6)
    };
    let table = summary(vec![out_of_order]).key_averages().to_string();
    let note = "\nheld: 2 calls ended out of order, or on another thread: self is an upper bound; drop guards in the reverse order of their creation, on their stack and thread\n";
    assert!(table.contains(note), "{table}");

    let nothing = Summary {
        nothing_measured: Some("profiling is off".to_owned()),
        ..summary(Vec::new())
    };
    let table = nothing.key_averages().to_string();
    assert!(
        table.contains("\nnothing was measured: profiling is off\n"),
        "{table}"
    );
}

//! The sentences, at their thresholds.

use super::{DeviceIdle, GpuIdle, IdleCharge};

fn charge(name: &str, idle_ns: i64, inclusive_ns: i64) -> IdleCharge {
    IdleCharge {
        name: (!name.is_empty()).then(|| name.to_owned()),
        idle_ns,
        inclusive_ns,
        ..IdleCharge::default()
    }
}

/// A device that was busy for this long of 100 µs between its first work and its last.
fn device(busy_ns: i64, charges: &[IdleCharge]) -> DeviceIdle {
    let host_ns = charges.iter().map(|charge| charge.idle_ns).sum();
    DeviceIdle {
        busy_ns,
        host_ns,
        launched_ns: 100_000 - busy_ns - host_ns,
        charges: charges.to_vec(),
        ..DeviceIdle::default()
    }
}

#[test]
fn from_nine_tenths_on_the_device_limits() {
    let load = [charge("load", 10_000, 10_000)];
    assert_eq!(
        device(90_000, &load).verdict(),
        "The GPU limits the program: the GPU was busy for 90 % of the time between its first work and its last. `load`, with what \
         it calls, kept it waiting for 100 % of the idle time between its first work and its last: without that, the work \
         would be done at most 1.11 × as fast."
    );
    let mostly = device(89_000, &load).verdict();
    assert!(
        mostly.starts_with("Mostly the GPU limits the program: the GPU was busy for 89 %"),
        "{mostly}"
    );
    assert!(device(60_000, &load).verdict().starts_with("Mostly"));
    assert_eq!(
        device(100_000, &[]).verdict(),
        "The GPU limits the program: the GPU was busy for 100 % of the time between its first work and its last."
    );
}

#[test]
fn a_device_that_mostly_waits_in_collectives_is_limited_by_communication() {
    let load = [charge("load", 5_000, 5_000)];
    let mut waiting = device(95_000, &load);
    waiting.collectives_ns = 60_000;
    let verdict = waiting.verdict();
    let expected = "Communication limits the program: kernels in which processes wait for the last of them took 63 % of the GPU's busy \
                    time, and the GPU was busy for 95 % of the time between its first work and its last.";
    assert!(verdict.starts_with(expected), "{verdict}");
    // Collectives that ran at once are added up, and take no more than all of it.
    waiting.collectives_ns = 300_000;
    assert!(
        waiting
            .verdict()
            .contains(" took 100 % of the GPU's busy time")
    );
    waiting.collectives_ns = 47_000;
    assert!(waiting.verdict().starts_with("The GPU limits the program"));
    let mut idle = device(50_000, &[charge("load", 50_000, 50_000)]);
    idle.collectives_ns = 50_000;
    assert!(idle.verdict().starts_with("`load` keeps the GPU waiting"));
}

#[test]
fn a_device_that_mostly_copies_is_limited_by_copies() {
    let mut copying = device(95_000, &[charge("load", 5_000, 5_000)]);
    copying.copy_ns = 60_000;
    let verdict = copying.verdict();
    assert!(
        verdict.starts_with(
            "Copies limit the program: the GPU was busy for 95 % of the time between its first work and its last, 63 % of that with \
             copies and fills and without kernels."
        ),
        "{verdict}"
    );
}

#[test]
fn the_most_specific_function_with_half_of_the_idle_time_is_named() {
    let mut load = charge("load", 38_000, 48_000);
    load.location = "src/data.rs:12".to_owned();
    let charges = [
        charge("ProfilerStep*", 0, 80_000),
        charge("epoch", 32_000, 80_000),
        load,
        charge("decode", 10_000, 10_000),
    ];
    assert_eq!(
        device(20_000, &charges).verdict(),
        "`load` keeps the GPU waiting: the GPU was idle for 80 % of the time between its first work and its last, 60 % of that \
         inside of it (src/data.rs:12). Without that, the work would be done at most 1.92 × as fast."
    );
}

#[test]
fn where_no_function_has_half_none_dominates() {
    let charges = [
        // With what it calls, the first one kept the device waiting for less time than the second one.
        charge("one", 30_000, 30_000),
        charge("two", 25_000, 39_000),
        charge("", 25_000, 25_000),
    ];
    assert_eq!(
        device(20_000, &charges).verdict(),
        "The host keeps the GPU waiting: the GPU was idle for 80 % of the time between its first work and its last, and no \
         function dominates. `one` itself kept it waiting for 38 % of that: without that, the work would be done at most 1.43 × \
         as fast."
    );
    let outside = [charge("", 60_000, 60_000)];
    let verdict = device(20_000, &outside).verdict();
    assert!(
        verdict.starts_with("Code outside of measured functions keeps the GPU waiting: the GPU"),
        "{verdict}"
    );
}

#[test]
fn what_the_account_does_not_know_is_said() {
    let mut late = device(20_000, &[charge("one", 10_000, 10_000)]);
    late.unexplained_ns = 60_000;
    let verdict = late.verdict();
    assert!(
        verdict.starts_with("Launched work begins late: the GPU was idle for 80 %"),
        "{verdict}"
    );
    late.not_recorded_ns = 110_000;
    let verdict = late.verdict();
    assert!(
        verdict.starts_with("What limits the GPU was not recorded: work is missing for 52 %"),
        "{verdict}"
    );
    let mut early = device(50_000, &[charge("one", 50_000, 50_000)]);
    early.before_first_ns = 300_000;
    let verdict = early.verdict();
    assert!(
        verdict.starts_with(
            "Most of the window is start-up: the first work began after 300 µs, 75 % of the window. `one`, with what it calls, kept it waiting for 100 %"
        ),
        "{verdict}"
    );
    let mut done = device(100_000, &[]);
    done.after_last_ns = 900_000;
    assert_eq!(
        done.verdict(),
        "Most of the window came after the last work of the GPU: 900 µs, 90 % of it."
    );
    assert!(
        DeviceIdle::default()
            .verdict()
            .starts_with("What limits the GPU was not recorded")
    );
}

#[test]
fn where_the_calls_that_launch_take_most_of_a_time_that_is_said_of_the_same_time() {
    let in_calls = "; most of it is in the calls that launch work.";
    let verdict = |in_call_ns, inclusive_in_call_ns| {
        let step = IdleCharge {
            in_call_ns,
            inclusive_in_call_ns,
            ..charge("layer", 10_000, 70_000)
        };
        device(20_000, &[step, charge("launch", 70_000, 39_000)]).verdict()
    };
    assert!(verdict(0, 36_000).contains(in_calls));
    assert!(!verdict(10_000, 35_000).contains(in_calls));
}

#[test]
fn of_a_function_that_mostly_calls_others_the_longest_of_all_is_named_too() {
    let charges = [
        charge("epoch", 5_000, 70_000),
        charge("backward", 35_000, 35_000),
        charge("forward", 30_000, 30_000),
        charge("", 10_000, 10_000),
    ];
    let longest = "Of all functions by themselves, `backward` kept it waiting longest, for 44 %.";
    let verdict = device(20_000, &charges).verdict();
    assert!(verdict.ends_with(longest), "{verdict}");
    let itself = [charge("epoch", 40_000, 70_000), charge("x", 30_000, 30_000)];
    assert!(!device(20_000, &itself).verdict().contains("by themselves"));
}

/// A device of a rank that was in collectives for so long of this time.
fn of_rank(rank: u64, collectives_ns: i64, busy_ns: i64) -> DeviceIdle {
    DeviceIdle {
        rank: Some(rank),
        collectives_ns,
        busy_ns,
        ..DeviceIdle::default()
    }
}

#[test]
fn the_rank_with_the_least_share_of_collectives_comes_last() {
    let said = |devices: &[DeviceIdle]| {
        let devices = devices.to_vec();
        GpuIdle { devices }.ranks().map(|said| said.to_string())
    };
    let (first, second) = (of_rank(0, 30_000, 100_000), of_rank(1, 10_000, 100_000));
    assert_eq!(
        said(&[first.clone(), second.clone()]).as_deref(),
        Some(
            "GPU of rank 1 comes last: it was in collectives for 10.0 µs, 10 % of its time from the first work to the last, and \
             GPU of rank 0 for 30.0 µs, 30 % of its time."
        )
    );
    // One in no collective does not take part, and of one that was not recorded nothing is known.
    let alone = of_rank(2, 0, 100_000);
    let mut unknown = of_rank(3, 1_000, 50_000);
    unknown.not_recorded_ns = 50_000;
    assert_eq!(said(&[first.clone(), alone, unknown]), None);
    // A device that was recorded for less time has as large a share.
    assert_eq!(said(&[first.clone(), of_rank(1, 3_000, 10_000)]), None);
    assert_eq!(said(&[first]), None);
}

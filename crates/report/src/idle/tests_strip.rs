//! The strip against a model that walks through each nanosecond.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tests::{Drawn, programs};
use super::{DeviceIdle, DeviceSegment, IdleStrip, StripColumn, StripPart};
use crate::timeline::Timeline;

/// What the strip shows of one time.
fn part(timeline: &Timeline, device: &DeviceIdle, segment: &DeviceSegment) -> StripPart {
    let name = |call: u32| &*timeline.names[timeline.slices[call as usize].name as usize].text;
    let (StripPart::Function(_) | StripPart::OtherFunctions) = segment.part() else {
        return segment.part();
    };
    let around = std::iter::successors(segment.call, |call| timeline.slices[*call as usize].parent);
    let shown = around.filter_map(|call| {
        let mut functions = device.functions.iter();
        functions.position(|function| function.name == name(call))
    });
    let innermost = shown.map(|at| u32::try_from(at).expect("few")).next();
    innermost.map_or(StripPart::OtherFunctions, StripPart::Function)
}

/// Returns an error if a strip differs from the model in any nanosecond.
fn compare(
    timeline: &Timeline,
    device: &DeviceIdle,
    strip: &IdleStrip,
    columns: usize,
) -> Result<(), String> {
    let window = usize::try_from(device.window_ns()).expect("it is not negative");
    if strip.columns.len() != columns.min(window) {
        return Err(format!("{} columns", strip.columns.len()));
    }
    let mut sums: BTreeMap<StripPart, i64> = BTreeMap::new();
    let mut at = device.segments.first().map_or(0, |first| first.start_ns);
    for column in &strip.columns {
        let length = column.end_ns - column.start_ns;
        let equal = device.window_ns() / i64::try_from(columns).expect("few");
        let is_equal = length.abs_diff(equal) <= 1;
        if column.start_ns != at || !is_equal {
            return Err(format!("{column:?} begins at {at}"));
        }
        let mut parts: BTreeMap<StripPart, i64> = BTreeMap::new();
        for at in column.start_ns..column.end_ns {
            let mut segments = device.segments.iter();
            let segment = segments.find(|segment| segment.start_ns <= at && at < segment.end_ns);
            let segment = segment.ok_or(format!("no state at {at}"))?;
            let part = part(timeline, device, segment);
            *parts.entry(part).or_default() += 1;
            *sums.entry(part).or_default() += 1;
        }
        if column.parts != parts.into_iter().collect::<Vec<_>>() {
            return Err(format!("{column:?}"));
        }
        at = column.end_ns;
    }
    if columns == 0 {
        return Ok(());
    }
    let sum = |part| sums.get(&part).copied().unwrap_or_default();
    let outside = device.charges.iter().find(|charge| charge.name.is_none());
    let expected = [
        (StripPart::Busy, device.busy_ns),
        (
            StripPart::Outside,
            outside.map_or(0, |charge| charge.idle_ns),
        ),
        (StripPart::Launched, device.launched_ns),
        (StripPart::NotRecorded, device.not_recorded_ns),
        (StripPart::BeforeFirst, device.before_first_ns),
        (StripPart::AfterLast, device.after_last_ns),
    ];
    let functions = (0..).zip(&device.functions);
    let functions = functions.map(|(at, function)| (StripPart::Function(at), function.idle_ns));
    for (index, function) in (0..).zip(&device.functions) {
        let of_function = device
            .segments
            .iter()
            .filter(|segment| segment.function == Some(index) && segment.part() == StripPart::Busy);
        let busy: i64 = of_function
            .map(|segment| segment.end_ns - segment.start_ns)
            .sum();
        if busy != function.busy_ns {
            return Err(format!("{function:?} has {busy} of busy time"));
        }
    }
    for (part, expected) in expected.into_iter().chain(functions) {
        if sum(part) != expected {
            return Err(format!("{part:?} is {}, not {expected}", sum(part)));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn each_column_has_each_of_its_nanoseconds_once(program in programs(), columns in 0..200_usize) {
        let timeline = program.timeline();
        for device in &timeline.gpu_idle().devices {
            let strip = device.strip(columns);
            prop_assert_eq!(compare(&timeline, device, &strip, columns), Ok(()));
        }
    }

    #[test]
    fn a_planted_nanosecond_is_found(program in programs(), columns in 1..200_usize, which in 0..1000_usize) {
        let timeline = program.timeline();
        let idle = timeline.gpu_idle();
        prop_assume!(!idle.devices.is_empty());
        let device = &idle.devices[which % idle.devices.len()];
        let mut strip = device.strip(columns);
        let column = which % strip.columns.len();
        strip.columns[column].parts[0].1 += 1;
        prop_assert!(compare(&timeline, device, &strip, columns).is_err());
    }
}

/// A window with a kernel at each end, and a host time between them that scopes share, by name, start and end.
fn between_two_kernels(scopes: &[(&str, i64, i64, Option<u32>)]) -> Vec<(String, i64)> {
    let mut drawn = Drawn::new(1_000);
    let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
    for (name, from, to, parent) in scopes {
        drawn.scope(main, name, (*from, *to), *parent);
    }
    let first = drawn.launch(main, (0, 0));
    let last = drawn.launch(main, (990, 990));
    drawn.work(stream, (0, 10), Some(first));
    drawn.work(stream, (990, 1_000), Some(last));
    let functions = drawn.0.gpu_idle().devices.remove(0).functions.into_iter();
    let function = |function: super::DeviceFunction| (function.name, function.idle_ns / 1000);
    functions.map(function).collect()
}

fn shown(functions: &[(&str, i64)]) -> Vec<(String, i64)> {
    let functions = functions.iter();
    functions
        .map(|(name, us)| ((*name).to_owned(), *us))
        .collect()
}

#[test]
fn small_functions_count_for_their_callers_and_large_ones_do_not() {
    let mut scopes = vec![
        ("main", 0, 1_000, None),
        ("step", 10, 990, Some(0)),
        ("forward", 10, 610, Some(1)),
        ("load", 610, 970, Some(1)),
    ];
    let layers: Vec<String> = (0..20).map(|layer| format!("layer{layer}")).collect();
    for (at, layer) in (0..).zip(&layers) {
        scopes.push((layer, 10 + 30 * at, 40 + 30 * at, Some(2)));
    }
    // Each layer is a thirtieth, `step` itself a fiftieth.
    let expected = shown(&[("forward", 600), ("load", 360)]);
    assert_eq!(between_two_kernels(&scopes), expected);
}

#[test]
fn the_innermost_of_functions_with_the_same_time_is_shown() {
    let scopes = [
        ("a", 0, 1_000, None),
        ("b", 0, 1_000, Some(0)),
        ("c", 0, 1_000, Some(1)),
        ("c", 0, 1_000, Some(2)),
    ];
    assert_eq!(between_two_kernels(&scopes), shown(&[("c", 980)]));
}

#[test]
fn a_step_is_not_shown_and_there_are_at_most_eight_functions() {
    let steps = [("ProfilerStep#1", 0, 1_000, None)];
    assert_eq!(between_two_kernels(&steps), []);
    let names: Vec<String> = (0..16).map(|number| format!("f{number:02}")).collect();
    let mut scopes = vec![("ProfilerStep#1", 0, 1_000, None)];
    for (at, name) in (0..).zip(&names) {
        scopes.push((name, 10 + 60 * at, 70 + 60 * at, Some(0)));
    }
    // Sixteen with a sixteenth each: none has an eighth.
    assert_eq!(between_two_kernels(&scopes), []);
    let few = between_two_kernels(&scopes[..9]);
    assert_eq!(few.len(), super::shown::MOST);
}

#[test]
fn a_column_has_shares() {
    let column = StripColumn {
        start_ns: 0,
        end_ns: 8,
        parts: vec![(StripPart::Busy, 6), (StripPart::Outside, 2)],
    };
    let percent = |part| format!("{:.0}", 100.0 * column.share(part));
    assert_eq!(
        (percent(StripPart::Busy), percent(StripPart::Launched)),
        ("75".into(), "0".into())
    );
}

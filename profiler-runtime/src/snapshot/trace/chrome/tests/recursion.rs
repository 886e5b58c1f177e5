//! Calls of a function from itself, which TensorBoard's trace plugin merges if nothing is beside them.

use proptest::prelude::*;

use super::*;

#[test]
fn direct_recursion_differs_from_one_call() {
    let mut sample = Sample::new();
    let one = sample.scope("chrome: recursive", 0, us(0), long(100));
    let two = sample.scope("chrome: recursive", one, us(10), long(80));
    sample.scope("chrome: recursive", two, us(20), long(10));
    sample.scope("chrome: recursive", two, us(40), long(10));
    let events = events(&sample.trace());
    let markers = of_category(&events, "python");
    assert_eq!(markers.len(), 1, "two inside of one are kept by the plugin");
    let (at, end) = extent(&markers[0]);
    let one = extent(&of_category(&events, "cpu_op")[0]);
    let two = extent(&of_category(&events, "cpu_op")[1]);
    assert_eq!(at, end);
    assert!(one.0 <= at && at < two.0, "beside the inner call");
}

#[test]
fn a_call_as_long_as_its_caller_leaves_room_for_the_marker() {
    let mut sample = Sample::new();
    let one = sample.scope("chrome: recursive", 0, us(0), long(100));
    let two = sample.scope("chrome: recursive", one, us(0), long(100));
    sample.scope("chrome: recursive", two, us(0), long(100));
    let trace = sample.trace();
    assert_eq!(violations(&trace), []);
    let events = events(&trace);
    assert_eq!(of_category(&events, "python").len(), 2);
    let scopes = of_category(&events, "cpu_op");
    let [(_, one), (_, two), (_, three)] = [0, 1, 2].map(|index| extent(&scopes[index]));
    assert!(three < two && two < one);
    assert!(one - three < 10, "some nanoseconds");
}

/// A call inside the preceding one: how long after it the call begins and how long before it the call ends, in ticks, and
/// its name.
type AnyCall = (u64, i64, bool);

fn any_calls() -> impl Strategy<Value = (u64, i64, Vec<AnyCall>)> {
    let call = (0_u64..4, 0_i64..4, prop::bool::weighted(0.2));
    (
        0_u64..1_000_000,
        // Some nanoseconds for each call: within a shorter time, there is no room for a marker of its own for each.
        200_i64..1_000,
        prop::collection::vec(call, 0..12),
    )
}

proptest! {
    #[test]
    fn calls_of_any_length_inside_each_other_stay_apart((start, length, calls) in any_calls()) {
        let mut sample = Sample::new();
        let (mut start, mut length, mut parent) = (start, length, 0);
        for (later, earlier, is_other) in calls {
            let name = ["chrome: recursive", "chrome: other"][usize::from(is_other)];
            parent = sample.scope(name, parent, start, length);
            sample.scope("chrome: empty", parent, start, 0);
            let later = later.min(length.unsigned_abs());
            start += later;
            length = (length - later.cast_signed() - earlier).max(0);
        }
        let found = violations(&sample.trace());
        prop_assert!(found.is_empty(), "{found:#?}");
    }
}

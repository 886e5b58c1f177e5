//! The argument `shapes` costs nothing outside of a window that records shapes, and inside of one each scope has
//! what was listed, in order.

use std::cell::Cell;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use profiler_runtime::session::{ProfileBuilder, ToShape};
use profiler_runtime::{
    MeasureFuture, Profile, Schedule, Trace, measure_execution_time,
    measure_execution_time_context, record_function, scope,
};
use profiler_tests::counts::expected;
use profiler_tests::poll;

type Outcome = Result<(), Box<dyn Error>>;
type Shapes = Vec<Box<[usize]>>;

/// A tensor that counts how often it is asked for its shape.
struct Tensor {
    shape: [usize; 2],
    asked: Cell<u64>,
}

impl Tensor {
    fn new(shape: [usize; 2]) -> Self {
        Self {
            shape,
            asked: Cell::new(0),
        }
    }

    fn shape(&self) -> &[usize] {
        self.asked.set(self.asked.get() + 1);
        &self.shape
    }
}

impl ToShape for Tensor {
    fn to_shape(&self) -> Box<[usize]> {
        self.shape().into()
    }
}

#[measure_execution_time(name = "linear", shapes = [x.shape(), w, w.shape.len()], bypass = bypassed)]
fn linear(x: &Tensor, w: &Tensor, bypassed: bool) -> usize {
    x.shape[0] * w.shape[1]
}

/// The one window of a session, around `work`.
fn window(builder: ProfileBuilder, work: impl FnOnce()) -> Result<Arc<Trace>, Box<dyn Error>> {
    let ((), trace) = builder.run(|_| work());
    Ok(trace?)
}

/// The shapes of each scope with a name.
fn shapes(trace: &Trace, name: &str) -> Vec<Option<Shapes>> {
    let events = trace.events().filter(|event| event.name() == name);
    events
        .map(|event| event.shapes().map(<[_]>::to_vec))
        .collect()
}

/// These, or none where nothing is measured.
fn expected_shapes<const N: usize>(all: [Option<&[&[usize]]>; N]) -> Vec<Option<Shapes>> {
    let boxed = |shapes: &[&[usize]]| shapes.iter().map(|shape| Box::from(*shape)).collect();
    let measured = all.into_iter().filter(|_| expected(1) == 1);
    measured.map(|shapes| shapes.map(boxed)).collect()
}

#[test]
fn shapes_are_evaluated_only_while_a_session_records_shapes() -> Outcome {
    let (x, w) = (Tensor::new([2, 3]), Tensor::new([3, 5]));
    assert_eq!(linear(&x, &w, false), 10);
    let trace = window(Profile::builder(), || {
        linear(&x, &w, false);
    })?;
    assert_eq!(shapes(&trace, "linear"), expected_shapes([None]));
    assert_eq!((x.asked.get(), w.asked.get()), (0, 0));
    Ok(())
}

/// Has no shape, and says so by a panic whose payload panics too.
struct Shapeless;

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(Bomb);
    }
}

impl ToShape for Shapeless {
    fn to_shape(&self) -> Box<[usize]> {
        std::panic::panic_any(Bomb)
    }
}

#[measure_execution_time(name = "shapeless", shapes = [x, 3])]
fn shapeless(x: &Shapeless) -> u32 {
    let _ = x;
    7
}

#[test]
fn a_shape_that_panics_does_not_reach_the_call() -> Outcome {
    let trace = window(Profile::builder().record_shapes(true), || {
        assert_eq!(shapeless(&Shapeless), 7);
    })?;
    let listed: &[&[usize]] = &[&[], &[3]];
    assert_eq!(shapes(&trace, "shapeless"), expected_shapes([Some(listed)]));
    Ok(())
}

#[test]
fn shapes_are_evaluated_only_in_active_steps_and_for_measured_calls() -> Outcome {
    let (x, w) = (Tensor::new([2, 3]), Tensor::new([3, 5]));
    let schedule = Schedule::new().wait(1).warmup(1).active(2).repeat(1);
    let profile = Profile::builder()
        .schedule(schedule)
        .record_shapes(true)
        .start()?;
    let mut asked = Vec::new();
    for _ in 0..6 {
        let before = x.asked.get();
        linear(&x, &w, false);
        linear(&x, &w, true);
        asked.push(x.asked.get() - before);
        profile.step();
    }
    profile.stop();
    linear(&x, &w, false);
    assert_eq!(asked, [0, 0, expected(1), expected(1), 0, 0]);
    assert_eq!((x.asked.get(), w.asked.get()), (expected(2), expected(2)));
    assert!(
        profile.wait(Duration::from_secs(59)),
        "the window is handed over"
    );
    let listed: &[&[usize]] = &[&[2, 3], &[3, 5], &[2]];
    let found = profile.trace().map(|trace| shapes(&trace, "linear"));
    assert_eq!(
        found.unwrap_or_default(),
        expected_shapes([Some(listed), Some(listed)])
    );
    Ok(())
}

#[test]
fn sections_have_the_shapes_they_list_and_those_without_have_none() -> Outcome {
    let x = Tensor::new([4, 5]);
    let trace = window(Profile::builder().record_shapes(true), || {
        let _scope = scope!("guard", shapes = [x]);
        measure_execution_time_context!("block", shapes = [(1, 2, 3), x.shape()], {});
        record_function!("recorded", shapes = [7], {});
        record_function!(format!("layer {}", 1), shapes = [&[8_i64, 9][..]], {});
        let _bare = scope!("bare");
    })?;
    for (name, expected) in [
        ("guard", Some(&[&[4, 5][..]][..])),
        ("block", Some(&[&[1, 2, 3], &[4, 5]])),
        ("recorded", Some(&[&[7]])),
        ("layer 1", Some(&[&[8, 9]])),
        ("bare", None),
    ] {
        assert_eq!(shapes(&trace, name), expected_shapes([expected]), "{name}");
    }
    assert_eq!(x.asked.get(), expected(2));
    Ok(())
}

#[test]
fn a_future_has_the_shapes_it_was_called_with() -> Outcome {
    #[measure_execution_time(name = "later", shapes = [x.shape()])]
    async fn later(x: &Tensor, turns: &Cell<u32>) {
        poll::yields(1).await;
        turns.set(turns.get() + 1);
    }

    let (x, turns) = (Tensor::new([6, 7]), Cell::new(0));
    let trace = window(Profile::builder().record_shapes(true), || {
        poll::run(later(&x, &turns));
        poll::run(later(&x, &turns));
    })?;
    assert_eq!(turns.get(), 2);
    assert_eq!(
        x.asked.get(),
        expected(2),
        "once for each, however often it is polled"
    );
    let called: Option<&[&[usize]]> = Some(&[&[6, 7]]);
    assert_eq!(shapes(&trace, "later"), expected_shapes([called, called]));
    Ok(())
}

#[test]
fn a_future_that_is_measured_by_its_method_has_the_shapes_it_is_given() -> Outcome {
    let x = Tensor::new([8, 9]);
    let work = || {
        let future = std::future::ready(());
        poll::run(
            future
                .measure_execution_time("by method")
                .shape(&x)
                .shape(&[3]),
        );
    };
    work();
    let trace = window(Profile::builder().record_shapes(true), work)?;
    assert_eq!(x.asked.get(), expected(1));
    let given: Option<&[&[usize]]> = Some(&[&[8, 9], &[3]]);
    assert_eq!(shapes(&trace, "by method"), expected_shapes([given]));
    Ok(())
}

#[test]
fn a_session_beside_one_that_records_shapes_has_none() -> Outcome {
    let (x, w) = (Tensor::new([1, 2]), Tensor::new([2, 1]));
    let mut inner = None;
    let outer = window(Profile::builder(), || {
        let builder = Profile::builder().record_shapes(true);
        inner = window(builder, || _ = linear(&x, &w, false)).ok();
    })?;
    let inner = inner.ok_or("the inner session has a window")?;
    let listed: &[&[usize]] = &[&[1, 2], &[2, 1], &[2]];
    assert_eq!(shapes(&outer, "linear"), expected_shapes([None]));
    assert_eq!(shapes(&inner, "linear"), expected_shapes([Some(listed)]));
    Ok(())
}

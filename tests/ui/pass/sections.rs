//! Sections: guards and blocks, with names known and built, and arguments.
#![deny(warnings)]

use std::sync::Arc;

use profiler_runtime::log::LogError;
use profiler_runtime::{ScalarLogger, measure_execution_time_context, scope};

struct Nowhere;

impl ScalarLogger for Nowhere {
    fn add_scalar(&self, _tag: &str, _value: f64, _step: u64) -> Result<(), LogError> {
        Ok(())
    }
}

fn early(number: i32) -> Option<i32> {
    let _whole = scope!("early");
    let half = measure_execution_time_context!("half", {
        if number == 0 {
            return None;
        }
        u32::try_from(number).ok()?;
        number / 2
    });
    Some(half)
}

fn main() {
    let logger = Arc::new(Nowhere);
    let mut total = 0;
    'outer: for step in 0..10_u32 {
        let _step = scope!("step", log = logger.clone(), global_step = step);
        measure_execution_time_context!(
            "all",
            log = |_, _, _| {},
            log_every = 2,
            bypass = step == 3,
            {
                total += step;
            }
        );
        let name = format!("step {step}");
        let _named = scope!(name);
        let _also = scope!(&name, global_step = step,);
        measure_execution_time_context!(format!("{name}, again"), log = logger.clone(), {
            if step == 5 {
                break 'outer;
            }
            if step % 2 == 0 {
                continue 'outer;
            }
        });
    }
    assert_eq!(total, 15);
    assert_eq!(early(4), Some(2));
    assert_eq!(early(0), None);
    assert_eq!(early(-1), None);

    // A future that is made in a section and awaited elsewhere.
    let future = measure_execution_time_context!("make", { async { std::future::ready(1).await } });
    let closure =
        measure_execution_time_context!("closure", { async |x: u8| std::future::ready(x).await });
    drop((future, closure(1)));
    let text = measure_execution_time_context!("borrow", {
        let text = String::from("text");
        text.as_str().len()
    },);
    assert_eq!(text, 4);
    assert_eq!(
        1 + measure_execution_time_context!("nested", {
            measure_execution_time_context!("inner", { 2 })
        }),
        3
    );
}

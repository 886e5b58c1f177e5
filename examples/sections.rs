//! Measures parts of a function: a block, the rest of a block, or parts with names built at run
//! time.
//!
//! ```text
//! cargo run --release --example sections
//! ```

use std::error::Error;

use profiler_examples::digits::{CLASSES, Digits, PIXELS};
use profiler_runtime::report::{SortKey, TableOptions};
use profiler_runtime::{measure_execution_time_context, scope, summary};

/// Recognizes digits by the nearest mean image.
struct Reader {
    means: Vec<Vec<f32>>,
}

impl Reader {
    fn of(digits: &Digits) -> Result<Self, String> {
        // A guard measures from here to the end of its block. It needs a name: `let _ = …` would
        // drop it immediately.
        let _learning = scope!("learn");

        // The context form measures a block and returns its value. `?`, `return` and `break` leave
        // it like any block, and the time until then is counted.
        let by_class = measure_execution_time_context!("learn/group", {
            let mut by_class = vec![Vec::new(); CLASSES];
            for number in 0..digits.len() {
                let class = by_class.get_mut(digits.label(number));
                class.ok_or("a label is no digit")?.push(number);
            }
            by_class
        });

        let mut means = Vec::with_capacity(CLASSES);
        for (class, numbers) in by_class.iter().enumerate() {
            // A name may be built at run time: here each digit has its own row. Use few names:
            // those beyond PROFILER_MAX_NAMES share one row. While measuring is off, the name is
            // not built.
            let _mean = scope!(format!("learn/mean of {class}"));
            means.push(mean(digits, numbers));
        }
        Ok(Self { means })
    }

    fn read(&self, image: &[f32]) -> usize {
        let distance = |mean: &[f32]| -> f32 {
            mean.iter()
                .zip(image)
                .map(|(mean, pixel)| (mean - pixel).powi(2))
                .sum()
        };
        let distances: Vec<f32> = self.means.iter().map(|mean| distance(mean)).collect();
        (0..CLASSES)
            .min_by(|&a, &b| distances[a].total_cmp(&distances[b]))
            .unwrap_or(0)
    }
}

fn mean(digits: &Digits, numbers: &[usize]) -> Vec<f32> {
    let mut mean = vec![0.0; PIXELS];
    for &number in numbers {
        for (mean, pixel) in mean.iter_mut().zip(digits.image(number)) {
            *mean += pixel / numbers.len() as f32;
        }
    }
    mean
}

fn main() -> Result<(), Box<dyn Error>> {
    let digits = Digits::all();
    let reader = Reader::of(&digits)?;

    let mut right = 0;
    for number in 0..digits.len() {
        // Sections take the arguments of the attribute: the first hundred calls are not measured,
        // and every 500th is logged, at the given step.
        let read = measure_execution_time_context!(
            "read",
            bypass = number < 100,
            log_every = 500,
            global_step = number,
            log = |tag, milliseconds, step| println!("{tag} {step}: {:.1} µs", 1e3 * milliseconds),
            { reader.read(digits.image(number)) }
        );
        right += usize::from(read == digits.label(number));
    }
    println!("{right} of {} recognized", digits.len());

    // The logger runs on another thread: wait for it before printing the table.
    profiler_runtime::flush(std::time::Duration::from_secs(1));
    println!(
        "\n{}",
        summary().table(TableOptions::new().sort_by(SortKey::Name))
    );
    Ok(())
}

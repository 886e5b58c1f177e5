//! PyTorch's recipe "PyTorch Profiler" (`profiler_recipe.py`), with the numbers of its steps.
//!
//! ```text
//! cargo run --release --example profiler_recipe
//! ```

use std::error::Error;

use profiler_runtime::{
    Activity, GroupBy, Profile, ProfilerAllocator, Schedule, TableOptions, Trace, measured,
    record_function,
};

// Rust needs this line to count the memory of the host.
#[global_allocator]
static ALLOCATOR: ProfilerAllocator = ProfilerAllocator::system();

struct Model {
    weights: Vec<f32>,
    bias: f32,
}

#[measured]
impl Model {
    fn new() -> Self {
        Model {
            weights: vec![0.5; 30_000],
            bias: 0.1,
        }
    }

    fn forward(&self, inputs: &[f32]) -> f32 {
        let hidden = self.conv(inputs);
        self.linear(&hidden)
    }

    #[measured(shapes = [inputs.len()])]
    fn conv(&self, inputs: &[f32]) -> Vec<f32> {
        inputs
            .iter()
            .zip(&self.weights)
            .map(|(x, w)| (x * w).tanh())
            .collect()
    }

    fn linear(&self, hidden: &[f32]) -> f32 {
        hidden.iter().sum::<f32>() + self.bias
    }
}

fn trace_handler(p: &Trace) {
    let output = p.key_averages().table(
        TableOptions::new()
            .sort_by("self_cpu_time_total")
            .row_limit(10),
    );
    println!("{output}");
    p.export_chrome_trace(format!("trace_{}.json", p.step_num()))
        .unwrap();
}

fn main() -> Result<(), Box<dyn Error>> {
    // 2. Instantiate a simple model.
    let model = Model::new();
    let inputs = vec![1.0; 30_000];

    // 3. Using profiler to analyze execution time.
    let prof = Profile::builder()
        .activities([Activity::Cpu])
        .record_shapes(true)
        .start()?;
    record_function!("model_inference", {
        model.forward(&inputs);
    });
    let trace = prof.finish()?;
    println!(
        "{}",
        trace
            .key_averages()
            .table(TableOptions::new().sort_by("cpu_time_total").row_limit(10))
    );
    println!(
        "{}",
        trace
            .key_averages_by(GroupBy::new().group_by_input_shape(true))
            .table(TableOptions::new().sort_by("cpu_time_total").row_limit(10))
    );

    // 4. Using profiler to analyze memory consumption.
    let prof = Profile::builder()
        .activities([Activity::Cpu])
        .profile_memory(true)
        .record_shapes(true)
        .start()?;
    model.forward(&inputs);
    let trace = prof.finish()?;
    println!(
        "{}",
        trace.key_averages().table(
            TableOptions::new()
                .sort_by("self_cpu_memory_usage")
                .row_limit(10)
        )
    );

    // 5. Using tracing functionality. Without `activities`, GPU times are recorded if the program uses CUDA.
    let prof = Profile::builder().start()?;
    model.forward(&inputs);
    prof.finish()?.export_chrome_trace("trace.json")?;

    // 6. Examining stack traces.
    let prof = Profile::builder().with_stack(true).start()?;
    model.forward(&inputs);
    let trace = prof.finish()?;
    println!(
        "{}",
        trace
            .key_averages_by(GroupBy::new().group_by_stack_n(5))
            .table(
                TableOptions::new()
                    .sort_by("self_cpu_time_total")
                    .row_limit(10)
            )
    );
    trace.export_stacks("profiler_stacks.txt", "self_cpu_time_total")?;

    // 7. Using profiler to analyze long-running jobs.
    let p = Profile::builder()
        .schedule(Schedule::new().wait(1).warmup(1).active(2))
        .on_trace_ready(trace_handler)
        .start()?;
    for _idx in 0..8 {
        model.forward(&inputs);
        p.step();
    }
    Ok(())
}

//! The recipe of torch.profiler, as someone who knows it writes it here at first.

use profiler_runtime::{
    Activity, GroupBy, Profile, Schedule, TableOptions, Trace, measured, record_function,
};

struct Model {
    weights: Vec<f32>,
}

#[measured]
impl Model {
    fn new() -> Self {
        Model {
            weights: vec![0.5; 1000],
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
            .map(|(x, w)| x * w)
            .collect()
    }

    fn linear(&self, hidden: &[f32]) -> f32 {
        hidden.iter().sum()
    }
}

fn trace_handler(p: &Trace) {
    let output = p.key_averages().table(
        TableOptions::new()
            .sort_by("self_cuda_time_total")
            .row_limit(10),
    );
    println!("{output}");
    let path = std::env::temp_dir().join(format!("trace_{}.json", p.step_num()));
    p.export_chrome_trace(path).unwrap();
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Model::new();
    let inputs = vec![1.0; 1000];

    // 3. To analyze execution time.
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

    // 4. To analyze memory consumption, and 6. stack traces.
    let (output, trace) = Profile::builder()
        .activities(vec![Activity::Cpu, Activity::Cuda])
        .profile_memory(true)
        .with_stack(true)
        .run(|_| model.forward(&inputs));
    assert_eq!(output, 500.0);
    let trace = trace?;
    let options = TableOptions::new()
        .sort_by("self_cpu_memory_usage")
        .row_limit(10);
    println!("{}", trace.key_averages().table(&options));
    println!(
        "{}",
        trace
            .key_averages_by(GroupBy::new().group_by_stack_n(5))
            .table(
                TableOptions::new()
                    .sort_by("self_cuda_time_total")
                    .row_limit(2)
            )
    );

    // 5. The tracing functionality.
    trace.export_chrome_trace(std::env::temp_dir().join("from_torch_profiler.json"))?;

    // 7. To analyze long-running jobs.
    let my_schedule = Schedule::new()
        .skip_first(2)
        .wait(1)
        .warmup(1)
        .active(2)
        .repeat(2);
    let p = Profile::builder()
        .activities([Activity::Cpu, Activity::Cuda])
        .schedule(my_schedule)
        .on_trace_ready(trace_handler)
        .start()?;
    for _idx in 0..8 {
        model.forward(&inputs);
        p.step();
    }
    Ok(())
}

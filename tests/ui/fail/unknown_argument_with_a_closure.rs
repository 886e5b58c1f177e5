use profiler_runtime::{measure, measured};

#[measured(experiment_log_func = |tag, milliseconds, step| println!("{tag} {milliseconds} {step}"))]
fn train() {}

#[measured(log = |_, _, _| {}, log = |tag, _, _| println!("{tag}"))]
fn test() {}

fn main() {
    measure!("load", experiment_log_func = |_, milliseconds, _| println!("{milliseconds}"), {});
}

use profiler_runtime::measure_execution_time;

#[measure_execution_time]
fn sum(values: &[u32]) -> u32 {
    let text: String = values.len();
    values.iter().sum::<u32>() + texts.len()
}

#[measure_execution_time]
fn nothing() -> u32 {
    1;
}

#[measure_execution_time]
fn moved(text: String) -> (String, String) {
    (text, text)
}

fn main() {}

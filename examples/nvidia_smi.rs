//! What `nvidia-smi` prints, in the program. In a terminal, `profiler smi` prints the same.
//!
//! ```text
//! cargo run --release --example nvidia_smi
//! ```

use profiler_runtime::report;

fn main() {
    // nvidia-smi
    let gpus = match report::sample_gpus() {
        Ok(gpus) => gpus,
        Err(error) => {
            println!("{error}");
            return;
        }
    };
    for gpu in &gpus {
        println!("{gpu}");
    }

    // nvidia-smi --query-gpu=name,memory.used,power.draw --format=csv
    println!("name, memory.used, power.draw");
    for gpu in &gpus {
        let used = gpu.memory_used_bytes().unwrap_or_default() >> 20;
        let power = gpu.power_w().unwrap_or(f64::NAN);
        println!("{}, {used} MiB, {power:.2} W", gpu.device.name);
    }
}

#![deny(warnings)]

use profiler_runtime::{measure, scope};

fn main() {
    scope!("load");
    measure!("load", global_step = 1);
}

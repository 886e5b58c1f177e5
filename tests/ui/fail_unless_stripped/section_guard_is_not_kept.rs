#![deny(warnings)]

use profiler_runtime::scope;

fn main() {
    scope!("load");
}

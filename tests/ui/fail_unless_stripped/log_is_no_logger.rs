use std::sync::Arc;

use profiler_runtime::measured;

struct Board;

#[measured(log = board)]
fn shared(board: &Arc<Board>) {}

#[measured(log = Board)]
fn by_value() {}

#[measured(log = number + 1)]
fn a_number(number: u32) {}

fn main() {}

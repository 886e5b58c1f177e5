use std::cell::RefCell;
use std::rc::Rc;

use profiler_runtime::{measure, measured};

#[measured(log = { let seen = seen.clone(); move |_: &str, _: f64, step: u64| seen.borrow_mut().push(step) })]
fn in_a_block(seen: Rc<RefCell<Vec<u64>>>) {}

#[measured(log = move |_, _, step| seen.borrow_mut().push(step))]
fn in_a_closure(seen: Rc<RefCell<Vec<u64>>>) {}

fn main() {
    let seen = RefCell::new(Vec::new());
    measure!("train", log = move |_, _, step| seen.borrow_mut().push(step), {});
}

//! Methods with every receiver, and associated functions.
#![deny(warnings)]

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use profiler_runtime::measure_execution_time;

#[derive(Clone)]
struct Cell(u32);

impl Cell {
    #[measure_execution_time]
    fn new(value: u32) -> Self {
        Self(value)
    }

    #[measure_execution_time]
    fn by_value(self) -> u32 {
        self.0
    }

    #[measure_execution_time]
    fn by_mutable_value(mut self) -> u32 {
        self.0 += 1;
        self.0
    }

    #[measure_execution_time]
    fn by_reference(&self) -> &u32 {
        &self.0
    }

    #[measure_execution_time]
    fn by_mutable_reference<'a>(&'a mut self, add: u32) -> &'a mut u32 {
        self.0 += add;
        &mut self.0
    }

    #[measure_execution_time]
    fn by_box(self: Box<Self>) -> u32 {
        self.0
    }

    #[measure_execution_time]
    fn by_rc(self: Rc<Self>) -> u32 {
        self.0
    }

    #[measure_execution_time]
    fn by_arc(self: &Arc<Self>) -> u32 {
        self.0
    }

    #[measure_execution_time]
    fn by_pin(self: Pin<&mut Self>) -> u32 {
        self.0
    }
}

fn main() {
    let mut cell = Cell::new(1);
    assert_eq!(*cell.by_reference(), 1);
    *cell.by_mutable_reference(1) += 1;
    assert_eq!(Pin::new(&mut cell).by_pin(), 3);
    assert_eq!(Box::new(cell.clone()).by_box(), 3);
    assert_eq!(Rc::new(cell.clone()).by_rc(), 3);
    assert_eq!(Arc::new(cell.clone()).by_arc(), 3);
    assert_eq!(cell.clone().by_mutable_value(), 4);
    assert_eq!(cell.by_value(), 3);
}

//! Methods of trait impls, and methods that a trait gives a body.
#![deny(warnings)]

use profiler_runtime::measure_execution_time;

trait Layer {
    const WIDTH: usize;

    fn width(&self) -> usize;

    #[measure_execution_time]
    fn double(&self) -> usize {
        2 * self.width()
    }

    #[measure_execution_time]
    fn fixed() -> usize
    where
        Self: Sized,
    {
        Self::WIDTH
    }
}

struct Dense;

impl Layer for Dense {
    const WIDTH: usize = 3;

    #[measure_execution_time]
    fn width(&self) -> usize {
        Self::WIDTH
    }
}

impl<T: Layer> Layer for Vec<T> {
    const WIDTH: usize = T::WIDTH;

    #[measure_execution_time]
    fn width(&self) -> usize {
        self.iter().map(T::width).sum()
    }
}

fn main() {
    assert_eq!(vec![Dense, Dense].double(), 12);
    assert_eq!(Vec::<Dense>::fixed(), 3);
    let object: &dyn Fn() -> usize = &|| Dense.double();
    assert_eq!(object(), 6);
}

//! A whole `impl` block: what can be measured is, the rest is left alone.
#![deny(warnings)]

use std::ops::Index;

use profiler_runtime::measure_execution_time;

struct Model<T, const N: usize> {
    weights: [T; N],
}

macro_rules! made {
    () => {
        fn made() -> u8 {
            9
        }
    };
}

#[measure_execution_time(log_every = 10)]
impl<T: Copy + Into<f64>, const N: usize> Model<T, N>
where
    [T; N]: Sized,
{
    const LAYERS: usize = { 1 + 1 };

    /// Left alone, because it may run in the compiler.
    pub const fn new(weights: [T; N]) -> Self {
        Self { weights }
    }

    pub fn forward(&self) -> f64 {
        self.weights.iter().copied().map(Into::into).sum()
    }

    #[measure_execution_time(skip)]
    fn left_out(&self) -> usize {
        N
    }

    #[measure_execution_time(name = "its own", log_every = 5)]
    fn own_name(&self) -> usize {
        Self::LAYERS
    }

    #[inline]
    fn with<F: Fn(T) -> T>(&self, f: F) -> Model<T, { N }> {
        Model {
            weights: self.weights.map(f),
        }
    }

    async fn later(&self) -> usize {
        std::future::ready(N).await
    }

    unsafe fn careful(&self) {}

    made!();
}

#[measure_execution_time]
impl<T, const N: usize> Index<usize> for Model<T, N> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.weights[at]
    }
}

fn main() {
    const MODEL: Model<f32, 2> = Model::new([1.0, 2.0]);
    assert!((MODEL.forward() - 3.0).abs() < 1e-9);
    assert_eq!(MODEL.left_out(), 2);
    assert_eq!(MODEL.own_name(), 2);
    assert!((MODEL.with(|weight| 2.0 * weight)[1] - 4.0).abs() < 1e-9);
    assert_eq!(Model::<f32, 2>::made(), 9);
    drop(MODEL.later());
    // SAFETY: it does nothing.
    unsafe { MODEL.careful() }
}

//! Shapes, in every form and from wherever they come; nothing is moved, and nothing stays borrowed.
#![deny(warnings)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use profiler_runtime::session::ToShape;
use profiler_runtime::{measure_execution_time, measure_execution_time_context, record_function, scope};

struct Tensor {
    shape: Vec<usize>,
}

impl Tensor {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn size(&self) -> Vec<i64> {
        self.shape.iter().map(|_| 1).collect()
    }

    fn dims<const RANK: usize>(&self) -> [usize; RANK] {
        [0; RANK]
    }
}

impl ToShape for Tensor {
    fn to_shape(&self) -> Box<[usize]> {
        self.shape.as_slice().into()
    }
}

struct Linear {
    weights: Tensor,
    calls: u32,
}

impl Linear {
    #[measure_execution_time(shapes = [x.shape(), self.weights.shape()])]
    fn borrowed(&mut self, x: &mut Tensor) -> &mut u32 {
        x.shape.push(1);
        self.calls += 1;
        &mut self.calls
    }

    #[measure_execution_time(shapes = [x, self.weights, x.shape], global_step = self.calls)]
    fn moved(self, x: Tensor) -> (Tensor, Tensor) {
        (self.weights, x)
    }

    #[measure_execution_time(shapes = [x.size(), x.dims::<3>(), (x.shape.len(), 2), 1, 1 + 1, ()])]
    async fn later(&mut self, mut x: Tensor) -> Tensor {
        self.calls += 1;
        x.shape.clear();
        std::future::ready(x).await
    }

    #[measure_execution_time(shapes = [x])]
    fn boxed(&self, x: Arc<Tensor>) -> Pin<Box<dyn Future<Output = usize> + Send + '_>> {
        Box::pin(async move { x.shape.len() + self.weights.shape.len() })
    }
}

struct Inheriting(Tensor);

#[measure_execution_time(shapes = [self.0.shape()])]
impl Inheriting {
    fn rank(&self) -> usize {
        self.0.shape.len()
    }

    #[measure_execution_time(shapes = [&self.0, other])]
    fn same(&self, other: &dyn ToShape) -> bool {
        self.0.to_shape() == other.to_shape()
    }
}

#[measure_execution_time(shapes = [x, if true { x } else { &[] },])]
fn generic<T: Copy>(x: &[usize], of: T) -> T {
    drop(x.to_vec());
    of
}

fn sections(x: Tensor, layer: u32) -> usize {
    let _scope = scope!("literal", shapes = [x]);
    let _layer = scope!(format!("layer {layer}"), shapes = [x.shape()], log_every = 2);
    let length = measure_execution_time_context!("block", shapes = [x.shape], { x.shape.len() });
    record_function!("torch", shapes = [x], {
        drop(x);
    });
    let _guard = record_function!("guard");
    record_function!(format!("value {layer}"), { length + 1 })
}

fn main() {
    let tensor = || Tensor { shape: vec![2, 3] };
    let mut linear = Linear {
        weights: tensor(),
        calls: 0,
    };
    let mut x = tensor();
    *linear.borrowed(&mut x) += 1;
    drop(linear.later(tensor()));
    drop(linear.boxed(Arc::new(tensor())));
    assert_eq!(linear.moved(x).1.shape, [2, 3, 1]);
    let inheriting = Inheriting(tensor());
    assert_eq!(inheriting.rank(), 2);
    assert!(inheriting.same(&[2, 3]));
    assert_eq!(generic(&[1, 2], 'a'), 'a');
    assert_eq!(sections(tensor(), 1), 3);
}

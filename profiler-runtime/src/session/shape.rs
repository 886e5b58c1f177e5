//! Shapes: the integers that tensor libraries describe extents with.

/// A type whose shape `shapes = […]` can record.
///
/// Implemented for slices, arrays and vectors of any primitive integer, for tuples of up to six of them, for a single
/// integer, and for references, `Box`, `Rc` and `Arc` of these. This covers `x.shape()` of ndarray, `x.dims()` of
/// candle and burn, and `x.size()` of tch. Implement it for your own tensor type to write `shapes = [x]`.
///
/// # Examples
///
/// ```
/// use profiler_runtime::session::ToShape;
/// use profiler_runtime::measure_execution_time;
///
/// struct Matrix {
///     rows: usize,
///     values: Vec<f32>,
/// }
///
/// impl ToShape for Matrix {
///     fn to_shape(&self) -> Box<[usize]> {
///         Box::new([self.rows, self.values.len() / self.rows])
///     }
/// }
///
/// #[measure_execution_time(shapes = [matrix, vector.len()])]
/// fn multiply(matrix: &Matrix, vector: &[f32]) -> Vec<f32> {
///     let rows = matrix.values.chunks(vector.len());
///     rows.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum()).collect()
/// }
///
/// let matrix = Matrix { rows: 2, values: vec![1.0, 2.0, 3.0, 4.0] };
/// assert_eq!(multiply(&matrix, &[1.0, 1.0]), [3.0, 7.0]);
/// assert_eq!(*matrix.to_shape(), [2, 2]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no shape",
    label = "not a shape",
    note = "a shape is a slice, an array, a vector or a tuple of integers, or one integer: `x.shape()` of \
            ndarray, `x.dims()` of candle and burn, `x.size()` of tch; for a type of your own implement `ToShape`"
)]
pub trait ToShape {
    /// Returns the extents, outermost first.
    fn to_shape(&self) -> Box<[usize]>;
}

/// An integer that counts along one dimension.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no extent of a shape",
    label = "not integers",
    note = "a shape is given by the integers that count along its dimensions, such as `x.shape()`"
)]
pub trait Dimension: Copy {
    #[doc(hidden)]
    fn to_dimension(self) -> usize;
}

macro_rules! integers {
    ($($integer:ty),+) => {$(
        impl Dimension for $integer {
            #[inline]
            fn to_dimension(self) -> usize {
                // Only a negative extent, which libraries use for "unknown", or one that is too large does not fit.
                usize::try_from(self).unwrap_or(if self > 0 { usize::MAX } else { 0 })
            }
        }

        impl ToShape for $integer {
            fn to_shape(&self) -> Box<[usize]> {
                Box::new([self.to_dimension()])
            }
        }
    )+};
}

integers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, isize);

impl Dimension for usize {
    #[inline]
    fn to_dimension(self) -> usize {
        self
    }
}

impl ToShape for usize {
    fn to_shape(&self) -> Box<[usize]> {
        Box::new([*self])
    }
}

impl<T: Dimension> ToShape for [T] {
    fn to_shape(&self) -> Box<[usize]> {
        self.iter().map(|extent| extent.to_dimension()).collect()
    }
}

impl<T: Dimension, const RANK: usize> ToShape for [T; RANK] {
    fn to_shape(&self) -> Box<[usize]> {
        self.as_slice().to_shape()
    }
}

impl<T: Dimension> ToShape for Vec<T> {
    fn to_shape(&self) -> Box<[usize]> {
        self.as_slice().to_shape()
    }
}

/// The shape of a scalar.
impl ToShape for () {
    fn to_shape(&self) -> Box<[usize]> {
        Box::new([])
    }
}

macro_rules! tuples {
    ($(($($extent:ident),+))+) => {$(
        impl<$($extent: Dimension),+> ToShape for ($($extent,)+) {
            fn to_shape(&self) -> Box<[usize]> {
                #[allow(non_snake_case, reason = "values are called as their types")]
                let ($($extent,)+) = *self;
                Box::new([$($extent.to_dimension()),+])
            }
        }
    )+};
}

tuples!((A)(A, B)(A, B, C)(A, B, C, D)(A, B, C, D, E)(
    A, B, C, D, E, F
));

macro_rules! pointers {
    ($($pointer:ty),+) => {$(
        impl<S: ToShape + ?Sized> ToShape for $pointer {
            fn to_shape(&self) -> Box<[usize]> {
                (**self).to_shape()
            }
        }
    )+};
}

pointers!(&S, &mut S, Box<S>, std::rc::Rc<S>, std::sync::Arc<S>);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::ToShape;

    #[test]
    fn every_form_of_a_shape_gives_its_extents() {
        let slice: &[usize] = &[2, 3];
        let forms: [&dyn ToShape; 10] = [
            &slice,
            &[2_u8, 3],
            &&[2_i64, 3],
            &vec![2_i32, 3],
            &(2, 3),
            &(2_u16, 3_isize),
            &Arc::new([2_u32, 3]),
            &Box::new((2_usize, 3_i128)),
            &Box::<[u64]>::from([2, 3]),
            &&mut [2_usize, 3],
        ];
        for (index, form) in forms.iter().enumerate() {
            assert_eq!(*form.to_shape(), [2, 3], "form {index}");
        }
        assert_eq!(*(1, 2, 3, 4, 5, 6).to_shape(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(*7.to_shape(), [7]);
        assert!(().to_shape().is_empty());
    }

    #[test]
    fn what_no_extent_can_be_is_the_nearest_one() {
        let forms: [&dyn ToShape; 2] = [&[-1, i128::MAX], &(-1_i8, u128::MAX)];
        for form in forms {
            assert_eq!(*form.to_shape(), [0, usize::MAX]);
        }
    }
}

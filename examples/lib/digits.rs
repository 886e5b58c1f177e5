//! Handwritten digits: 1797 images of 8 × 8 pixels, each with the digit that it shows.
//!
//! They are the "optical recognition of handwritten digits" of the UCI repository (E. Alpaydin and
//! C. Kaynak, 1998), and come with the crate `smartcore`: nothing is downloaded.

use smartcore::dataset::digits;

use crate::random::Random;

/// The pixels along one side of an image.
pub const SIDE: usize = 8;
/// The pixels of an image.
pub const PIXELS: usize = SIDE * SIDE;
/// The number of digits.
pub const CLASSES: usize = 10;

/// Images with the digits they show.
///
/// # Examples
///
/// ```
/// use profiler_examples::digits::{CLASSES, Digits, PIXELS};
///
/// let digits = Digits::all();
/// assert_eq!(digits.len(), 1797);
/// assert_eq!(digits.image(0).len(), PIXELS);
/// assert!(digits.label(0) < CLASSES);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Digits {
    images: Vec<f32>,
    labels: Vec<usize>,
}

impl Digits {
    /// Returns all images, in the order of the data set.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "they are 0.0 to 9.0"
    )]
    pub fn all() -> Self {
        let dataset = digits::load_dataset();
        let labels = dataset
            .target
            .into_iter()
            .map(|label| label as usize)
            .collect();
        Self {
            images: dataset.data,
            labels,
        }
    }

    /// Shuffles all images and splits them: returns those for training, and `held_out` for testing.
    #[must_use]
    pub fn split(held_out: usize, random: &mut Random) -> (Self, Self) {
        let all = Self::all();
        let mut order: Vec<usize> = (0..all.len()).collect();
        random.shuffle(&mut order);
        let (test, train) = order.split_at(held_out.min(order.len()));
        (all.select(train), all.select(test))
    }

    /// Returns the images with the given indices.
    #[must_use]
    pub fn select(&self, numbers: &[usize]) -> Self {
        Self {
            images: numbers
                .iter()
                .flat_map(|&number| self.image(number))
                .copied()
                .collect(),
            labels: numbers.iter().map(|&number| self.label(number)).collect(),
        }
    }

    /// Returns the images with each pixel shifted to a mean of 0 and scaled to a standard deviation
    /// of 1.
    #[must_use]
    pub fn standardised(&self) -> Self {
        let count = self.len().max(1) as f32;
        let mut means = [0.0; PIXELS];
        let mut squares = [0.0; PIXELS];
        for image in self.images.chunks_exact(PIXELS) {
            for ((mean, square), pixel) in means.iter_mut().zip(&mut squares).zip(image) {
                *mean += pixel / count;
                *square += pixel * pixel / count;
            }
        }
        let mut digits = self.clone();
        for image in digits.images.chunks_exact_mut(PIXELS) {
            for ((pixel, mean), square) in image.iter_mut().zip(&means).zip(&squares) {
                // A pixel at the edge may be blank in all images: avoid a division by zero.
                let deviation = (square - mean * mean).max(1e-6).sqrt();
                *pixel = (*pixel - mean) / deviation;
            }
        }
        digits
    }

    /// Returns the number of images.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns `true` if there are no images.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Returns the pixels of one image, row by row, from 0.0 (paper) to 16.0 (ink).
    #[must_use]
    pub fn image(&self, number: usize) -> &[f32] {
        &self.images[number * PIXELS..][..PIXELS]
    }

    /// Returns the digit that one image shows.
    #[must_use]
    pub fn label(&self, number: usize) -> usize {
        self.labels[number]
    }

    /// Returns the pixels of all images.
    #[must_use]
    pub fn images(&self) -> &[f32] {
        &self.images
    }

    /// Returns the pixels of all images, mutably.
    pub fn images_mut(&mut self) -> &mut [f32] {
        &mut self.images
    }

    /// Returns the digits that the images show.
    #[must_use]
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_and_test_images_are_disjoint() {
        let (train, test) = Digits::split(360, &mut Random::seeded(3));
        assert_eq!((train.len(), test.len()), (1437, 360));
        let sum = |digits: &Digits| {
            digits
                .images()
                .iter()
                .map(|&pixel| f64::from(pixel))
                .sum::<f64>()
        };
        assert!((sum(&train) + sum(&test) - sum(&Digits::all())).abs() < 0.5);
    }

    #[test]
    fn standardised_pixels_have_mean_0_and_deviation_1() {
        let digits = Digits::all().standardised();
        let count = digits.len() as f32;
        for pixel in [3, 20, 42] {
            let values = digits.images().iter().skip(pixel).step_by(PIXELS);
            let mean: f32 = values.clone().sum::<f32>() / count;
            let square: f32 = values.map(|value| value * value).sum::<f32>() / count;
            assert!(
                mean.abs() < 1e-3 && (square - 1.0).abs() < 1e-2,
                "{mean} {square}"
            );
        }
    }

    #[test]
    fn every_digit_occurs() {
        let digits = Digits::all();
        assert!((0..CLASSES).all(|class| digits.labels().contains(&class)));
    }
}

//! Drawn digits: 1797 images of 8 × 8 pixels, each with the digit that it shows.
//!
//! They are drawn when they are asked for, as by hand: each is slanted, stretched and shifted in its own way, with ink of
//! its own strength and noise. The count is that of the "optical recognition of handwritten digits" of the UCI repository
//! (E. Alpaydin and C. Kaynak, 1998), with which many examples of machine learning begin.

use crate::random::Random;

/// The pixels along one side of an image.
pub const SIDE: usize = 8;
/// The pixels of an image.
pub const PIXELS: usize = SIDE * SIDE;
/// The number of digits.
pub const CLASSES: usize = 10;

/// The number of images.
const IMAGES: usize = 1797;

/// The digits as they are printed.
const GLYPHS: [[&str; GLYPH_HEIGHT]; CLASSES] = [
    [
        " ### ", "#   #", "#   #", "#   #", "#   #", "#   #", " ### ",
    ],
    [
        "  #  ", " ##  ", "# #  ", "  #  ", "  #  ", "  #  ", "#####",
    ],
    [
        " ### ", "#   #", "    #", "   # ", "  #  ", " #   ", "#####",
    ],
    [
        " ### ", "#   #", "    #", "  ## ", "    #", "#   #", " ### ",
    ],
    [
        "   # ", "  ## ", " # # ", "#  # ", "#####", "   # ", "   # ",
    ],
    [
        "#####", "#    ", "#### ", "    #", "    #", "#   #", " ### ",
    ],
    [
        " ### ", "#    ", "#    ", "#### ", "#   #", "#   #", " ### ",
    ],
    [
        "#####", "    #", "   # ", "  #  ", "  #  ", " #   ", " #   ",
    ],
    [
        " ### ", "#   #", "#   #", " ### ", "#   #", "#   #", " ### ",
    ],
    [
        " ### ", "#   #", "#   #", " ####", "    #", "    #", " ### ",
    ],
];
const GLYPH_WIDTH: usize = 5;
const GLYPH_HEIGHT: usize = 7;

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
    /// Returns all images, which are the same each time.
    #[must_use]
    pub fn all() -> Self {
        let mut random = Random::seeded(1998);
        let labels: Vec<usize> = (0..IMAGES).map(|number| number % CLASSES).collect();
        Self {
            images: labels
                .iter()
                .flat_map(|&label| drawn(&GLYPHS[label], &mut random))
                .collect(),
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

/// Draws a digit, from 0.0 (paper) to 16.0 (ink).
fn drawn(glyph: &[&str; GLYPH_HEIGHT], random: &mut Random) -> [f32; PIXELS] {
    let (width, height) = (1.0 + 0.2 * random.uniform(), 1.0 + 0.1 * random.uniform());
    let (slant, right, down) = (
        0.35 * random.uniform(),
        random.uniform(),
        0.6 * random.uniform(),
    );
    let ink = 13.0 + 3.0 * random.uniform();
    let middle = (SIDE - 1) as f32 / 2.0;
    let mut pixels = [0.0; PIXELS];
    for (index, pixel) in pixels.iter_mut().enumerate() {
        let (x, y) = (
            (index % SIDE) as f32 - middle,
            (index / SIDE) as f32 - middle,
        );
        // Where the pixel lies in the glyph.
        let row = (y - down) / height + (GLYPH_HEIGHT - 1) as f32 / 2.0;
        let column = (x - right + slant * y) / width + (GLYPH_WIDTH - 1) as f32 / 2.0;
        let noise = 3.0 * random.uniform();
        *pixel = (ink * darkness(glyph, row, column) + noise).clamp(0.0, 16.0);
    }
    pixels
}

/// Returns how dark a glyph is between the middles of its four nearest squares.
fn darkness(glyph: &[&str; GLYPH_HEIGHT], row: f32, column: f32) -> f32 {
    let squares = glyph.iter().enumerate().flat_map(|(at_row, squares)| {
        let squares = squares.bytes().enumerate();
        squares.map(move |(at_column, square)| (at_row, at_column, square))
    });
    let inked = squares.filter(|(_, _, square)| *square == b'#');
    let near = |distance: f32| (1.0 - distance.abs()).max(0.0);
    inked
        .map(|(at_row, at_column, _)| near(row - at_row as f32) * near(column - at_column as f32))
        .sum()
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

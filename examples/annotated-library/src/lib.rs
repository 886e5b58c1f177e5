//! A library that can be measured, and leaves it to its users whether it is.
//!
//! It annotates its functions and does nothing else: no logger, no set-up, no switch. All of that
//! is for the program to choose. A user who chooses nothing gets statistics at the cost of some
//! nanoseconds for each call of a function as coarse as [`smooth`]; off at run time
//! (`PROFILER_ENABLED=0`, `set_enabled(false)`, a filter like `-annotated_library::*`) it is one
//! load and a branch; built with `strip`, it is nothing.
//!
//! Three rules make a library a good guest:
//!
//! - depend on `profiler-runtime` with `default-features = false`: the program chooses loggers;
//! - annotate what users know by name, and put what runs within nanoseconds behind a feature that
//!   only adds (here `profile-details`);
//! - never enable `strip` yourself, only forward it (here `profile-strip`): a program has one
//!   `profiler-runtime`, and whoever strips it does so for everybody.

use profiler_runtime::measure_execution_time;

/// Smooths an image of rows of `width` pixels: each pixel becomes the mean of itself and its
/// neighbours. Pixels that do not fill a row are left out.
///
/// # Examples
///
/// ```
/// let smooth = annotated_library::smooth(&[0.0, 9.0, 0.0], 3);
/// assert_eq!(smooth, [4.5, 3.0, 4.5]);
/// ```
#[must_use]
#[measure_execution_time]
pub fn smooth(image: &[f32], width: usize) -> Vec<f32> {
    let rows = image.len().checked_div(width).unwrap_or(0);
    let places = (0..rows).flat_map(|row| (0..width).map(move |column| (row, column)));
    places
        .map(|(row, column)| mean_around(image, width, row, column))
        .collect()
}

/// How much neighbouring pixels of a row differ, on average.
///
/// # Examples
///
/// ```
/// assert_eq!(annotated_library::roughness(&[0.0, 2.0, 0.0], 3), 2.0);
/// ```
#[must_use]
#[measure_execution_time]
pub fn roughness(image: &[f32], width: usize) -> f32 {
    let steps = || {
        let rows = image.chunks_exact(width.max(1));
        rows.flat_map(|row| row.windows(2))
            .map(|pair| (pair[1] - pair[0]).abs())
    };
    steps().sum::<f32>() / steps().count().max(1) as f32
}

// Once for each pixel: annotated only for those who want to see that much.
#[cfg_attr(feature = "profile-details", measure_execution_time)]
fn mean_around(image: &[f32], width: usize, row: usize, column: usize) -> f32 {
    let top = row.saturating_sub(1);
    let rows = image.chunks_exact(width).skip(top).take(row + 2 - top);
    let left = column.saturating_sub(1);
    let right = (column + 2).min(width);
    let (sum, count) = rows
        .flat_map(|row| &row[left..right])
        .fold((0.0, 0_u8), |(sum, count), pixel| (sum + pixel, count + 1));
    sum / f32::from(count)
}

//! An annotated library, whose users decide if it is measured.
//!
//! The library only annotates its functions: it configures no logger and no switch. The program
//! does that. In a program that configures nothing, each call of a function such as [`smooth`]
//! costs a few nanoseconds for its statistics. Turned off at run time (`PROFILER_ENABLED=0`,
//! `set_enabled(false)`, a filter such as `-annotated_library::*`), it costs one load and a branch.
//! Built with `strip`, it costs nothing.
//!
//! Three rules for libraries:
//!
//! - Depend on `profiler-runtime` with `default-features = false`: the program selects the loggers.
//! - Annotate the functions that users know by name. Put functions that take only nanoseconds
//!   behind an additive feature (here `profile-details`).
//! - Never enable `strip` yourself, only forward it (here `profile-strip`): a program has one
//!   `profiler-runtime`, so stripping it affects all of the program.

use profiler_runtime::measure_execution_time;

/// Smooths an image of rows of `width` pixels: each pixel becomes the mean of itself and its
/// neighbours. Pixels of an incomplete row are dropped.
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

/// Returns the mean difference between neighbouring pixels of a row.
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

// Called once per pixel, so it is only annotated for users who enable the feature.
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

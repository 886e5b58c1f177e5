//! Measures work that a function passes to other threads: with a handle, that work is the function's child, and waiting
//! for it is not the function's self time.
//!
//! ```text
//! cargo run --release --example threads
//! ```

use std::error::Error;
use std::thread;

use profiler_examples::digits::{Digits, PIXELS};
use profiler_runtime::{Handle, Profile, measure, measured, summary};

const THREADS: usize = 4;

/// Returns the mean brightness of each image.
#[measured(name = "brightness")]
fn brightness(digits: &Digits) -> Vec<f32> {
    // Taken on this thread, inside of the scope that is to be the parent.
    let parent = Handle::current();
    let images: Vec<usize> = (0..digits.len()).collect();
    let chunks = images.chunks(digits.len().div_ceil(THREADS));
    thread::scope(|threads| {
        let workers: Vec<_> = chunks
            .map(|chunk| {
                let parent = &parent;
                threads.spawn(move || {
                    // Of a section or function, `parent` is an argument …
                    measure!("brightness/chunk", parent = parent, {
                        chunk
                            .iter()
                            .map(|number| mean(digits.image(*number)))
                            .collect::<Vec<_>>()
                    })
                })
            })
            .collect();
        // … While this thread waits here, the chunks run: the wait is not its self time.
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_default())
            .collect()
    })
}

/// Counts the images that are brighter than a threshold, with a scope that does not know of threads.
#[measured(name = "count")]
fn count(brightness: &[f32], threshold: f32) -> usize {
    let parent = Handle::current();
    let chunks = brightness.chunks(brightness.len().div_ceil(THREADS));
    thread::scope(|threads| {
        let workers: Vec<_> = chunks
            .map(|chunk| {
                let parent = &parent;
                threads.spawn(move || {
                    // … and a handle that is entered is the parent of all scopes of this thread.
                    let _parent = parent.enter();
                    count_chunk(chunk, threshold)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_default())
            .sum()
    })
}

#[measured(name = "count/chunk")]
fn count_chunk(brightness: &[f32], threshold: f32) -> usize {
    brightness.iter().filter(|mean| **mean > threshold).count()
}

fn mean(image: &[f32]) -> f32 {
    image.iter().sum::<f32>() / PIXELS as f32
}

fn main() -> Result<(), Box<dyn Error>> {
    let _profiler = profiler_runtime::init()?;
    let digits = Digits::all();

    // A window also holds the callers.
    let (bright, trace) = Profile::builder().run(|_| {
        let brightness = brightness(&digits);
        count(&brightness, 3.0)
    });
    println!("{bright} of {} images are bright", digits.len());
    println!("{}", summary());
    println!("{}", trace?.key_averages().callers());
    Ok(())
}

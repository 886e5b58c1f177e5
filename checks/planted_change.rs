//! A program of ten functions, one of which can be made slower: `checks/false_alarms.sh` compares runs of it.
//!
//! The work is counted, not timed, so that a change of 10 % is one of 10 % on every machine.

use std::collections::HashMap;
use std::hint::black_box;

use profiler_runtime::measured;

/// How often each function is called.
const CALLS: u64 = 100;

#[measured]
fn mix(rounds: u64) -> u64 {
    (0..rounds).fold(black_box(7), |state, round| {
        (state ^ round)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    })
}

#[measured]
fn integrate(steps: u64) -> f64 {
    let step = 1.0 / steps as f64;
    (0..steps)
        .map(|index| (index as f64 * step).sin() * step)
        .sum()
}

#[measured]
fn sort(length: u64) -> u64 {
    let mut values: Vec<u64> = (0..length)
        .map(|index| index.wrapping_mul(0x9e37_79b9) % 4093)
        .collect();
    values.sort_unstable();
    values[values.len() / 2]
}

#[measured]
fn sieve(limit: usize) -> usize {
    let mut is_composite = vec![false; limit];
    for number in 2..limit {
        if !is_composite[number] {
            for multiple in (number * number..limit).step_by(number) {
                is_composite[multiple] = true;
            }
        }
    }
    is_composite.iter().filter(|composite| !**composite).count()
}

#[measured]
fn multiply(size: usize) -> f64 {
    let left: Vec<f64> = (0..size * size).map(|index| index as f64).collect();
    let mut product = vec![0.0; size * size];
    for row in 0..size {
        for inner in 0..size {
            let factor = left[row * size + inner];
            for column in 0..size {
                product[row * size + column] += factor * left[inner * size + column];
            }
        }
    }
    product[size + 1]
}

#[measured]
fn count_words(words: u64) -> usize {
    let mut counts: HashMap<u64, u32> = HashMap::new();
    for word in 0..words {
        *counts
            .entry(word.wrapping_mul(0x9e37_79b9) % 509)
            .or_default() += 1;
    }
    counts.len()
}

#[measured]
fn format_numbers(numbers: u64) -> usize {
    let texts: Vec<String> = (0..numbers).map(|number| number.to_string()).collect();
    texts.join(",").len()
}

#[measured]
fn parse_numbers(numbers: usize) -> u64 {
    let texts = ["17", "4711", "299792458", "8"];
    let parsed = (0..numbers).filter_map(|index| black_box(texts[index % 4]).parse::<u64>().ok());
    parsed.sum()
}

#[measured]
fn walk(steps: usize) -> usize {
    let next: Vec<usize> = (0..4096)
        .map(|index| (index * 1_234_577 + 7) % 4096)
        .collect();
    (0..steps).fold(0, |place, step| next[(place + step) % 4096])
}

#[measured]
fn checksum(bytes: usize) -> u32 {
    let data: Vec<u8> = (0..=u8::MAX).cycle().take(bytes).collect();
    data.iter().fold(1, |sum: u32, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(*byte))
    })
}

fn main() {
    // Percent by which `mix` takes longer.
    let slower: u64 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    for _ in 0..CALLS {
        black_box(mix(900 * (100 + slower)));
        black_box(integrate(12_000));
        black_box(sort(6_000));
        black_box(sieve(60_000));
        black_box(multiply(72));
        black_box(count_words(9_000));
        black_box(format_numbers(4_000));
        black_box(parse_numbers(30_000));
        black_box(walk(100_000));
        black_box(checksum(150_000));
    }
}

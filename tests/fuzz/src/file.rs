//! Any bytes, as a file that the command line reads: they are read or refused with one line, and what was read keeps the
//! promises of the types. `.ci/run fuzz` runs it on the kept corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use profiler_runtime_cli::input::{Input, Limits};

fuzz_target!(|bytes: &[u8]| {
    let mut limits = Limits::DEFAULT;
    // A few bytes may decompress to many.
    limits.max_bytes = 1 << 20;
    match Input::from_reader(bytes, "fuzz", limits) {
        Err(refused) => {
            let message = refused.to_string();
            assert!(!message.is_empty());
        }
        Ok(Input::Summary(summary)) => {
            let _ = (summary.to_string(), summary.to_json(), summary.to_csv());
            let _ = summary.call_tree();
        }
        Ok(Input::Timeline(timeline)) => {
            for (index, slice) in timeline.slices.iter().enumerate() {
                assert!((slice.name as usize) < timeline.names.len());
                assert!((slice.track as usize) < timeline.tracks.len());
                assert!(slice.start_ns >= 0 && slice.duration_ns >= 0);
                assert!((0..=slice.duration_ns).contains(&slice.self_ns));
                assert!(slice.parent.is_none_or(|parent| (parent as usize) < index));
            }
            let averages = timeline.key_averages();
            let _ = (
                averages.to_string(),
                averages.to_json(),
                averages.callers().to_string(),
            );
            let _ = timeline.call_tree(profiler_report::CallTreeOptions::new());
        }
        Ok(_) => {}
    }
});

//! GPU times, kernels and launches.

use super::*;

#[test]
fn gpu_times_have_annotations_with_their_uncertainty() {
    let annotations = of_category(&events(&training().trace()), "gpu_user_annotation");
    let lengths: Vec<i64> = annotations.iter().map(|event| ns(&event["dur"])).collect();
    assert_eq!(lengths, [400_000, 250_000, 400_000, 250_000]);
    for annotation in annotations {
        assert_eq!(annotation["args"]["uncertainty_ns"], 1000);
        assert!(
            annotation["args"].get("stream").is_none(),
            "HTA would count it as a kernel"
        );
    }
}

#[test]
fn a_gpu_time_that_is_missing_says_why() {
    let mut sample = training();
    sample.gpu[0].loss = Some(CudaLoss::RingFull);
    sample.gpu[1].start = None;
    let trace = sample.trace();
    let operators = of_category(&events(&trace), "cpu_op");
    assert_eq!(
        operators[0]["args"]["no CUDA time"],
        CudaLoss::RingFull.as_str()
    );
    assert_eq!(operators[1]["args"]["cuda_ns"], 250_000);
    let missing = &parsed(&trace)["profiler"]["missing"];
    let counts = missing.as_array().expect("a list").iter();
    let counts: Vec<&Value> = counts.map(|pair| &pair[1]).collect();
    assert_eq!(counts, [1, 1], "{missing}");
}

#[test]
fn without_cpu_times_launches_have_no_operator() {
    let mut sample = training();
    sample.options.cpu = false;
    let events = events(&sample.trace());
    assert_eq!(of_category(&events, "cpu_op").len(), 0);
    let launches = of_category(&events, "cuda_runtime");
    assert_eq!(launches.len(), 6);
    assert!(
        launches
            .iter()
            .all(|launch| launch["args"]["External id"] == 0)
    );
}

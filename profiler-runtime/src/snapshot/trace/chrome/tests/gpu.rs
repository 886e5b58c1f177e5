//! GPU times, kernels and launches.

use super::*;

#[test]
fn kernels_add_up_to_the_self_times_of_scopes() {
    let trace = training().trace();
    let events = events(&trace);
    let kernels = of_category(&events, "kernel");
    for name in ["chrome: forward", "chrome: matmul"] {
        let took: i64 = kernels
            .iter()
            .filter(|kernel| kernel["name"] == name)
            .map(|kernel| ns(&kernel["dur"]))
            .sum();
        let own: f64 = trace
            .events()
            .filter(|event| event.name() == name)
            .filter_map(|event| event.gpu().map(|gpu| gpu.self_ns))
            .sum();
        assert!(took > 0);
        assert!((took as f64 - own).abs() < 1.0, "{name}: {took} {own}");
    }
    let busy: i64 = kernels.iter().map(|kernel| ns(&kernel["dur"])).sum();
    assert_eq!(busy, 800_000, "no time twice");
}

#[test]
fn each_kernel_has_a_launch_in_its_scope_and_the_first_an_arrow() {
    for (launches, category) in [
        (LaunchCategory::CudaRuntime, "cuda_runtime"),
        (LaunchCategory::Runtime, "Runtime"),
    ] {
        let whole: Value =
            serde_json::from_str(&written(&training().trace(), launches)).expect("JSON");
        let events: Vec<Value> =
            serde_json::from_value(whole["traceEvents"].clone()).expect("a list");
        let (starts, kernels) = (
            of_category(&events, category),
            of_category(&events, "kernel"),
        );
        let arrows = of_category(&events, "ac2g");
        assert_eq!((starts.len(), kernels.len(), arrows.len()), (6, 6, 8));
        for kernel in &kernels {
            let args = &kernel["args"];
            assert_eq!(args["device"], kernel["pid"]);
            assert_eq!(args["stream"], kernel["tid"]);
            assert_eq!(args["scope"], true);
            let same = |event: &&Value| event["args"]["correlation"] == args["correlation"];
            let [launch] = &starts.iter().filter(same).collect::<Vec<_>>()[..] else {
                panic!("one launch")
            };
            assert_eq!(launch["args"]["External id"], args["External id"]);
            let scope = of_category(&events, "cpu_op")
                .into_iter()
                .find(|scope| scope["args"]["External id"] == args["External id"])
                .expect("its scope");
            let ((at, _), (start, end)) = (extent(launch), extent(&scope));
            assert!(start <= at && at <= end, "launched in its scope");
            assert_eq!(launch["tid"], scope["tid"]);
            assert!(at <= extent(kernel).0, "launched before it began");
        }
    }
}

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

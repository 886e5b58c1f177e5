//! Reading a summary.

use profiler_report::Summary;
use serde::de::Deserialize;

use super::source::Source;
use super::weighed::{Scales, Weighed};
use super::{InputError, Limits};

pub(super) fn read(source: Source<'_>) -> Result<Summary, InputError> {
    let text = source.text(Limits::SUMMARY_BYTES)?;
    parse(&text, Limits::SUMMARY_MEMORY)
}

fn parse(text: &str, max_bytes: usize) -> Result<Summary, InputError> {
    let scales = Scales::new(max_bytes);
    let mut json = serde_json::Deserializer::from_str(text);
    let summary = Summary::deserialize(Weighed::new(&mut json, &scales));
    let summary = summary.and_then(|summary| json.end().map(|()| summary));
    summary.map_err(|error| {
        if scales.are_tipped() {
            return InputError::TooHeavy { max_bytes };
        }
        InputError::of_json(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_list_are_weighed() {
        let lists = [
            (r#"{"rows":["#, "{}", "]}"),
            (r#"{"rows":[{"streams":["#, r#""""#, "]}]}"),
            (r#"{"rows":[{"history":["#, "[1,1,1,1,1,1]", "]}]}"),
            (r#"{"rows":[{"input_shapes":["#, "[]", "]}]}"),
            (r#"{"rows":[{"input_shapes":[["#, "1", "]]}]}"),
            (r#"{"gpus":["#, "{}", "]}"),
            (r#"{"gpu_idle":["#, "{}", "]}"),
            (r#"{"notes":["#, r#""""#, "]}"),
            (r#"{"notices":["#, r#""a""#, "]}"),
            (r#"{"dropped":{"#, r#""a":1"#, "}}"),
            (r#"{"environment":{"settings":{"#, r#""":"""#, "}}}"),
            (r#"{"environment":{"devices":["#, r#""""#, "]}}"),
            (
                r#"{"call_tree":{"nodes":["#,
                "[null,0,1,0,1,1,null,null]",
                "]}}",
            ),
            (r#"{"call_tree":{"names":["#, r#"["",""]"#, "]}}"),
            (r#"{"call_tree":{"cut":["#, "0", "]}}"),
        ];
        for (begin, element, end) in lists {
            let text = |count| format!("{begin}{}{end}", vec![element; count].join(","));
            let few = parse(&text(1), 5_000);
            let is_weighed = matches!(few, Err(InputError::TooHeavy { .. }));
            assert!(!is_weighed, "{begin}: {few:?}");
            let many = parse(&text(5_000), 5_000);
            assert!(
                matches!(many, Err(InputError::TooHeavy { max_bytes: 5_000 })),
                "{begin}: {many:?}"
            );
        }
    }

    #[test]
    fn what_is_weighed_is_read_as_it_is() {
        let json = r#"{"rows":[{"name":"f","calls":3,"cpu":{"calls":3,"total_ns":1.5},"source":"cpu","launch_bound":null,
            "streams":["s"],"history":[[1,1,1,1,1,1]],"unknown":[{}]}],"wall_ns":7,"is_last":true,"dropped":{"x":1},
            "environment":{"settings":{"A":"b"}},"call_tree":{"names":[["f",""]],"nodes":[[null,0,3,0,1,1,null,null]]}}"#;
        let weighed = parse(json, 1 << 20).expect("it fits");
        let plain: Summary = serde_json::from_str(json).expect("it is a summary");
        assert_eq!(weighed, plain);
    }
}

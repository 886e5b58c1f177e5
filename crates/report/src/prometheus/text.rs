//! Metrics, their samples and labels as text.

use std::fmt::Write;

/// The text of metrics.
#[derive(Debug, Default)]
pub(super) struct Text(String);

/// The samples of one metric. Its name, kind and description are written before the first one.
#[derive(Debug)]
pub(super) struct Metric<'t> {
    text: &'t mut String,
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    has_samples: bool,
}

impl Text {
    pub(super) fn counter(&mut self, name: &'static str, help: &'static str) -> Metric<'_> {
        self.metric(name, "counter", help)
    }

    pub(super) fn gauge(&mut self, name: &'static str, help: &'static str) -> Metric<'_> {
        self.metric(name, "gauge", help)
    }

    pub(super) fn histogram(&mut self, name: &'static str, help: &'static str) -> Metric<'_> {
        self.metric(name, "histogram", help)
    }

    fn metric(&mut self, name: &'static str, kind: &'static str, help: &'static str) -> Metric<'_> {
        Metric {
            text: &mut self.0,
            name,
            kind,
            help,
            has_samples: false,
        }
    }

    /// Adds a line that Prometheus ignores.
    pub(super) fn comment(&mut self, comment: &str) {
        // A comment that began with one of the two keywords would be none.
        let _ = writeln!(self.0, "# # {}", escaped(comment, false));
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

impl Metric<'_> {
    /// Adds a sample. A value that is not finite is left out.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.sample_of("", labels, value);
    }

    /// Adds a sample of a part of the metric, such as `_sum`.
    pub(super) fn sample_of(&mut self, part: &str, labels: &[(&str, &str)], value: f64) {
        if !value.is_finite() {
            return;
        }
        let Self {
            text, name, kind, ..
        } = self;
        if !self.has_samples {
            self.has_samples = true;
            let _ = writeln!(text, "# HELP {name} {}", escaped(self.help, false));
            let _ = writeln!(text, "# TYPE {name} {kind}");
        }
        let _ = write!(text, "{name}{part}");
        for (index, (label, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(text, "{before}{label}=\"{}\"", escaped(value, true));
        }
        if !labels.is_empty() {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
}

/// Returns a text without line ends; in the value of a label, quotes are escaped too.
fn escaped(text: &str, is_label: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str(r"\\"),
            '\n' => escaped.push_str(r"\n"),
            '"' if is_label => escaped.push_str("\\\""),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_described_once_and_only_with_samples() {
        let mut text = Text::default();
        text.gauge("empty", "Never.");
        let mut calls = text.counter("calls_total", "All\ncalls.");
        calls.sample(&[("name", "a"), ("clock", "cpu")], 1.5);
        calls.sample(&[], 2.0);
        calls.sample(&[], f64::NAN);
        let expected = "# HELP calls_total All\\ncalls.\n# TYPE calls_total counter\n\
                        calls_total{name=\"a\",clock=\"cpu\"} 1.5\ncalls_total 2\n";
        assert_eq!(text.finish(), expected);
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\\b\"c\nd\r", true), "a\\\\b\\\"c\\nd\r");
        assert_eq!(escaped("a\"", false), "a\"");
    }

    #[test]
    fn a_comment_is_never_a_keyword() {
        let mut text = Text::default();
        text.comment("TYPE x counter\nx 1");
        assert_eq!(text.finish(), "# # TYPE x counter\\nx 1\n");
    }
}

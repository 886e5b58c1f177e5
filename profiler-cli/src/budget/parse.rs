//! The file of a budget: TOML, with a table of limits for each function.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use profiler_host::diagnostics::{did_you_mean, similar};

use profiler_report::internal::InOrder as _;

use super::Budget;
use super::limit::{FIGURES, Figure, Limit};

const UNITS: [(&str, f64); 5] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
];

/// A mistake in the file, with its line.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {message}")]
pub(super) struct ParseError {
    line: usize,
    message: String,
}

/// Finds lines of the text.
struct Source<'t>(&'t str);

impl Source<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.0.get(..span.start).unwrap_or(self.0);
        before.matches('\n').count() + 1
    }

    fn error(&self, span: &Range<usize>, message: String) -> ParseError {
        ParseError {
            line: self.line(span),
            message,
        }
    }
}

impl Budget {
    pub(super) fn parse(text: &str) -> Result<Self, ParseError> {
        let source = Source(text);
        let document = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            source.error(&span, error.message().to_owned())
        })?;
        let mut limits = Vec::new();
        for (name, value) in document.get_ref() {
            let DeValue::Table(table) = value.get_ref() else {
                let message = format!(
                    "`{}` is not followed by limits: write `\"{}\" = {{ cpu_p95 = \"2 ms\" }}`",
                    name.get_ref(),
                    name.get_ref()
                );
                return Err(source.error(&name.span(), message));
            };
            for (key, value) in table {
                limits.push(limit(
                    &source,
                    name.get_ref(),
                    key.get_ref(),
                    &key.span(),
                    value,
                )?);
            }
        }
        limits.order_by_key(|limit| limit.line);
        Ok(Self { limits })
    }
}

fn limit(
    source: &Source<'_>,
    name: &str,
    key: &str,
    span: &Range<usize>,
    value: &Spanned<DeValue<'_>>,
) -> Result<Limit, ParseError> {
    let Some(figure) = Figure::from_key(key) else {
        let keys = FIGURES.iter().map(|figure| figure.key());
        let hint = did_you_mean(&similar(key, keys.clone()));
        let keys: Vec<&str> = keys.collect();
        let message = format!(
            "`{key}` of `{name}` is not a figure{hint}; the figures are {}",
            keys.join(", ")
        );
        return Err(source.error(span, message));
    };
    let parsed = match value.get_ref() {
        DeValue::String(text) if !figure.is_count() => {
            time(text).map(|most| (most, text.to_string()))
        }
        DeValue::Integer(number) if figure.is_count() => {
            let count = u64::from_str_radix(number.as_str(), number.radix());
            count.ok().map(|count| (count as f64, count.to_string()))
        }
        _ => None,
    };
    let Some((most, text)) = parsed else {
        let takes = if figure.is_count() {
            "a whole number, such as 100"
        } else {
            "a time in quotes with its unit (ns, us, ms or s), such as \"2 ms\""
        };
        let message = format!("`{key}` of `{name}` takes {takes}");
        return Err(source.error(&value.span(), message));
    };
    Ok(Limit {
        name: name.to_owned(),
        figure,
        most,
        text,
        line: source.line(span),
    })
}

/// Parses a time with its unit and returns nanoseconds.
fn time(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|char: char| char.is_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then(|| number * size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let error = Budget::parse(text).expect_err("it is not valid");
        error.to_string()
    }

    #[test]
    fn limits_are_written_inline_or_as_tables() {
        let budget = Budget::parse(
            "# comment\n\"app::forward\" = { cuda_p95 = \"2 ms\", calls = 1_000 }\n\n[\"app::load\"]\ncpu_mean = \"1.5us\"\n",
        )
        .expect("it is valid");
        let shown: Vec<_> = budget
            .limits
            .iter()
            .map(|limit| (&*limit.name, limit.figure.key(), limit.most, limit.line))
            .collect();
        assert_eq!(
            shown,
            [
                ("app::forward", "calls", 1000.0, 2),
                ("app::forward", "cuda_p95", 2e6, 2),
                ("app::load", "cpu_mean", 1500.0, 5),
            ]
        );
    }

    #[test]
    fn mistakes_are_named_by_line_and_key() {
        assert!(
            error("\n\"f\" = { cuda_p59 = \"2 ms\" }").starts_with(
                "line 2: `cuda_p59` of `f` is not a figure; did you mean `cuda_p50` or `cuda_p95`"
            ),
            "{}",
            error("\n\"f\" = { cuda_p59 = \"2 ms\" }")
        );
        for wrong in ["2", "\"2\"", "\"2 h\"", "\"-2 ms\"", "\"ms\"", "true"] {
            let message = error(&format!("\"f\" = {{ cpu_mean = {wrong} }}"));
            assert!(
                message.starts_with("line 1: `cpu_mean` of `f` takes a time in quotes"),
                "{wrong}: {message}"
            );
        }
        for wrong in ["\"2 ms\"", "-2", "1.5"] {
            let message = error(&format!("\"f\" = {{ calls = {wrong} }}"));
            assert!(
                message.starts_with("line 1: `calls` of `f` takes a whole number"),
                "{wrong}: {message}"
            );
        }
        assert!(error("a = 1").contains("is not followed by limits"));
        assert!(error("\n\n\"f\" = {").starts_with("line 3: "));
    }
}

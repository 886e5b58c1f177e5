//! A summary in the text format of Prometheus, version 0.0.4.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/> states the format. Names of metrics follow
//! <https://prometheus.io/docs/practices/naming/>: base units, and `_total` at the end of counters.
//!
//! Counters must not fall while the program runs, or Prometheus takes them for those of a new process. So a name keeps
//! its own series, whatever other names do: those called first have one each, and all later ones share one. Sums of times
//! are [`Counters`](crate::times::Counters), which never fall.

mod devices;
mod idle;
mod names;
mod text;

use self::text::Text;
use super::summary::Summary;

impl Summary {
    /// Returns the summary in the text format that Prometheus scrapes, for a `/metrics` route of the program.
    /// `PROFILER_SUMMARY` with a file that ends in `.prom` writes the same, for the textfile
    /// collector of `node_exporter`.
    ///
    /// | metric | labels | value |
    /// |---|---|---|
    /// | `profiler_calls_total` | `name` | finished calls |
    /// | `profiler_open_calls` | `name` | calls that have begun and not ended |
    /// | `profiler_panicked_calls_total` | `name` | calls that ended with a panic |
    /// | `profiler_self_seconds_total` | `name`, `clock` | the time of the calls without their children |
    /// | `profiler_call_seconds` | `name`, `clock` | a histogram of the times of single calls |
    /// | `profiler_energy_joules` | `name` | the energy of the calls, where devices are sampled. It can fall: a share is corrected when a long scope ends |
    /// | `profiler_unmeasured_calls_total` | | calls that are missing for lack of memory |
    /// | `profiler_refused_calls_total` | | calls that are missing because they were made inside the profiler |
    /// | `profiler_dropped_entries_total` | `reason` | log entries that were dropped |
    /// | `profiler_lost_spans_total` | `reason` | spans of `tracing` that are missing or incomplete |
    /// | `profiler_lost_gpu_times_total` | `reason` | calls without the GPU time that they should have |
    /// | `profiler_gpu_*` | `gpu`, `uuid` | power, memory, load and energy of devices that are sampled |
    /// | `profiler_gpu_state_seconds` | `gpu`, `state` | how long a device was `busy`, `host-paced`, `idle`, or `not-known`, by [`SampledIdle`](crate::SampledIdle). It can fall: what is read late moves to another state |
    /// | `profiler_gpu_idle_seconds` | `gpu`, `cause` | how long a function kept a device waiting: an estimate, which can fall. Of 16 functions for each device; the others are `(other)` |
    /// | `profiler_info` | `version`, `program` | 1 |
    ///
    /// The label `clock` is `cpu` or `cuda`. The histograms are resampled: their limits are 1 and 3 µs times the powers of
    /// ten up to 10 s, and all calls of a bucket of the profiler are counted where the middle of the bucket lies. A
    /// bucket is at most 1/16 of its lower limit wide, so a call is counted on the wrong side of a limit only if its time
    /// is within 1/16 of it. Counts are exact. Sums and self times are those of the rows without their falls: the noise of the
    /// clock makes single times negative.
    ///
    /// The first 256 names of the process have series of their own. All others together are `(other)`.
    ///
    /// Of a span of `tracing`, each time from enter to exit is in the histogram, and the whole span is one call; with
    /// `whole_spans`, both are the whole span.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_report::{Row, Summary};
    ///
    /// let row = Row { name: "load".to_owned(), calls: 1, ..Row::default() };
    /// let summary = Summary { rows: vec![row], ..Summary::default() };
    /// assert!(summary.to_prometheus().contains("profiler_calls_total{name=\"load\"} 1\n"));
    /// ```
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut text = Text::default();
        self.write_info(&mut text);
        names::write(&mut text, &self.rows);
        self.write_losses(&mut text);
        devices::write(&mut text, &self.gpus);
        idle::write(&mut text, &self.gpu_idle);
        text.finish()
    }

    fn write_info(&self, text: &mut Text) {
        if let Some(reason) = &self.nothing_measured {
            text.comment(&format!("nothing measured: {reason}"));
        }
        let environment = &self.environment;
        let mut info = text.gauge(
            "profiler_info",
            "The version of the profiler, and the program.",
        );
        let labels = [
            ("version", &*environment.profiler_version),
            ("program", &environment.program),
        ];
        info.sample(&labels, 1.0);
    }

    fn write_losses(&self, text: &mut Text) {
        let mut unmeasured = text.counter(
            "profiler_unmeasured_calls_total",
            "Calls that are missing because there was no memory for their statistics.",
        );
        unmeasured.sample(&[], self.unmeasured as f64);
        let mut refused = text.counter(
            "profiler_refused_calls_total",
            "Calls that are missing because they were made while their thread was inside the profiler.",
        );
        refused.sample(&[], self.refused as f64);
        let mut dropped = text.counter(
            "profiler_dropped_entries_total",
            "Log entries that were dropped, by reason.",
        );
        for (reason, entries) in &self.dropped {
            dropped.sample(&[("reason", reason.key())], *entries as f64);
        }
        let mut spans = text.counter(
            "profiler_lost_spans_total",
            "Spans of tracing that are missing or incomplete, by reason.",
        );
        for (reason, lost) in &self.lost_spans {
            spans.sample(&[("reason", reason.key())], *lost as f64);
        }
        let mut lost = text.counter(
            "profiler_lost_gpu_times_total",
            "Calls without the GPU time that they should have, by reason.",
        );
        for (reason, calls) in &self.cuda.lost {
            lost.sample(&[("reason", reason.key())], *calls as f64);
        }
    }
}

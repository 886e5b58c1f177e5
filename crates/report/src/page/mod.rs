//! The page: a summary or a window as one HTML file that needs no network.
//!
//! The verdict, the functions that take most of the time, the table and the losses are HTML, and need no script. The
//! numbers follow as JSON, compressed, and the script draws the rest from them.

mod about;
mod bars;
mod baseline;
mod data;
mod devices;
mod escape;
#[cfg(test)]
mod extreme_tests;
mod numbers;
mod of_timeline;
mod overview;
mod packed;
mod parts;
mod sentence;
mod strip;
mod table;
mod time_line;
mod tree;
mod verdict;
mod work;
mod work_details;

use std::fmt::Write;
use std::path::Path;

use self::escape::Text;
use super::{ExportError, file};
use crate::averages::{self, Measured};
use crate::call_tree;
use crate::group_by::GroupBy;
use crate::idle::{self, GpuIdle};
use crate::kernels::Kernels;
use crate::summary::Summary;
use crate::timeline::Timeline;
use crate::written::PAGE;

const STYLE: &str = include_str!("scripts/page.css");

/// The SHA-256 of [`STYLE`], in base64. A test compares it.
const STYLE_HASH: &str = "CLZJWK/0Km26HVLaqFleIqLIafn7OUlTj8cIzEunUuk=";

/// Parts of one script, in this order. Each has one job; they share the scope of the function around them.
const SCRIPT: &str = concat!(
    "(() => {\n'use strict';\n",
    include_str!("scripts/format.js"),
    include_str!("scripts/dom.js"),
    include_str!("scripts/data.js"),
    include_str!("scripts/charts.js"),
    include_str!("scripts/details.js"),
    include_str!("scripts/columns.js"),
    include_str!("scripts/table.js"),
    include_str!("scripts/comparison.js"),
    include_str!("scripts/canvas.js"),
    include_str!("scripts/icicle_layout.js"),
    include_str!("scripts/icicle.js"),
    include_str!("scripts/time_line_model.js"),
    include_str!("scripts/range.js"),
    include_str!("scripts/time_axis.js"),
    include_str!("scripts/time_line_drawing.js"),
    include_str!("scripts/time_line.js"),
    include_str!("scripts/memory.js"),
    include_str!("scripts/shell.js"),
    "})();\n",
);

/// The SHA-256 of [`SCRIPT`], in base64. A test compares it.
const SCRIPT_HASH: &str = "OXXFPl7yW8xkdtJcpQsXTVPlgJOvSU/oJAw3MiH8SsM=";

/// What a time line says, without its rows.
#[derive(Default)]
struct Window {
    idle: GpuIdle,
    kernels: Kernels,
    /// As the script reads it.
    time_line: Option<String>,
}

/// A summary, a window or both as one page that opens in a browser without a network.
///
/// Its first screen says where the time went, on the CPU and on the GPU, and what limits the program; of a window with kernels,
/// it shows when each GPU was busy and which functions kept it waiting. Below are the
/// table, with the distribution, the callers and the callees of each function; the call tree; the time line of a window;
/// and what was lost and why.
///
/// The page holds all rows, at most 5,000, of which the table shows 200 without script. The page says what it leaves
/// out.
///
/// # Examples
///
/// ```
/// use profiler_report::Page;
/// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
/// let html = Page::new().title("nightly run").summary(&summary()).to_html();
/// assert!(html.contains("<title>nightly run"));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Page<'r> {
    title: Option<&'r str>,
    summary: Option<&'r Summary>,
    timeline: Option<&'r Timeline>,
    baseline: Option<&'r Summary>,
}

impl<'r> Page<'r> {
    /// Creates a page without content.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the title. Without it, the page is called like the program.
    pub fn title(self, title: &'r str) -> Self {
        Self {
            title: Some(title),
            ..self
        }
    }

    /// Shows the rows of a summary.
    pub fn summary(self, summary: &'r Summary) -> Self {
        Self {
            summary: Some(summary),
            ..self
        }
    }

    /// Shows single scopes. Without a [`summary`](Self::summary), the rows are the key averages of the time line.
    pub fn timeline(self, timeline: &'r Timeline) -> Self {
        Self {
            timeline: Some(timeline),
            ..self
        }
    }

    /// Compares the rows with those of another summary. The page shows differences and no verdict: two runs differ by
    /// chance too.
    pub fn baseline(self, baseline: &'r Summary) -> Self {
        Self {
            baseline: Some(baseline),
            ..self
        }
    }

    /// Returns the page.
    #[must_use]
    pub fn to_html(&self) -> String {
        let Some(timeline) = self.timeline else {
            return self.html(&Window::default());
        };
        // What the devices did is cut into segments once, for all that is said of them.
        let callers = call_tree::callers(timeline);
        let devices = idle::devices(timeline, &callers);
        let (by, measured) = (GroupBy::new(), Measured::default());
        let averages = averages::of_devices(timeline, by, &measured, &callers, &devices);
        let window = Window {
            kernels: averages.kernels(),
            time_line: Some(time_line::json(timeline, &devices)),
            idle: devices.idle(timeline, &callers),
        };
        if self.summary.is_some() {
            return self.html(&window);
        }
        let summary = of_timeline::summary(timeline, averages);
        self.summary(&summary).html(&window)
    }

    /// Returns the page, by what is known of the window.
    fn html(&self, window: &Window) -> String {
        let title = self.title_text();
        let mut html = String::with_capacity(1 << 18);
        push_head(&mut html, title);
        overview::push(&mut html, self, title, &window.idle);
        html.push_str("<main id=views>\n");
        if let Some(summary) = self.summary {
            table::push(&mut html, summary);
        }
        if let (Some(summary), Some(baseline)) = (self.summary, self.baseline) {
            baseline::push(&mut html, summary, baseline);
        }
        about::push(&mut html, self);
        html.push_str("</main>\n");
        data::push(&mut html, self, window);
        html.push_str("<script>");
        html.push_str(SCRIPT);
        html.push_str("</script>\n");
        html
    }

    /// Writes the page. The file appears under its name when it is complete, and replaces a file of that name.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        file::write(path.as_ref(), self.to_html().as_bytes())
    }

    fn title_text(&self) -> &'r str {
        let of_window = self.timeline.map(|timeline| timeline.title.as_str());
        let of_program = self
            .summary
            .map(|summary| summary.environment.program.as_str());
        let titles = [self.title, of_window, of_program];
        let mut titles = titles.into_iter().flatten();
        titles.find(|title| !title.is_empty()).unwrap_or("Profile")
    }
}

/// Writes what comes before the content. The style and the script are allowed by their hashes, so nothing that a name
/// might smuggle in is executed; and nothing is loaded.
fn push_head(html: &mut String, title: &str) {
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{SCRIPT_HASH}'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'"
    );
    html.push_str(PAGE);
    let _ = write!(
        html,
        "<meta http-equiv=Content-Security-Policy content=\"{policy}\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=color-scheme content=\"light dark\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n",
        Text(title)
    );
}

impl Summary {
    /// Writes the summary as a page that opens in a browser without a network; see [`Page`].
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let path = std::env::temp_dir().join(format!("run-{}.html", std::process::id()));
    /// summary().export_html(&path)?;
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_html(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        Page::new().summary(self).write(path)
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_has_the_hashes_of_the_script_and_the_style() {
        let hash = |text: &str| packed::base64(&Sha256::digest(text));
        assert_eq!(SCRIPT_HASH, hash(SCRIPT), "the script is another");
        assert_eq!(STYLE_HASH, hash(STYLE), "the style is another");
    }
}

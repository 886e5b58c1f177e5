//! Losses and their reasons, the profiler's own cost, and where and how the run was measured.

use super::Page;
use super::escape::Text;
use crate::date;
use crate::environment::Environment;
use crate::summary::Summary;
use crate::text::units;
use std::fmt::Write;

pub(super) fn push(html: &mut String, page: &Page<'_>) {
    html.push_str(
        "<noscript><p class=note>The call tree, the time line and open rows need the script of this page.</p></noscript>\n\
         <section id=run class=view>\n<h2>About this run</h2>\n",
    );
    if let Some(summary) = page.summary {
        push_notes(html, summary);
    }
    if let Some(timeline) = page.timeline {
        push_missing(html, &timeline.missing);
    }
    if let Some(summary) = page.summary {
        push_environment(html, summary);
    }
    html.push_str("</section>\n");
}

/// Writes the lines that the text form has below its table: losses with their reasons and remedies, warnings, the state
/// of the GPU and the cost of the profiler itself.
fn push_notes(html: &mut String, summary: &Summary) {
    let notes = summary.note_lines();
    html.push_str("<h3>What the numbers do not say</h3>\n<ul class=notes>\n");
    for note in notes {
        let _ = writeln!(html, "<li>{}", Text(&note));
    }
    html.push_str("</ul>\n");
}

/// Lists the scopes that are missing from a window. The reasons follow a number in a sentence.
fn push_missing(html: &mut String, missing: &[(String, u64)]) {
    if missing.is_empty() {
        return;
    }
    html.push_str("<h3>Missing from the window</h3>\n<ul class=notes>\n");
    for (reason, scopes) in missing {
        let _ = match scopes {
            0 => writeln!(html, "<li>{}", Text(reason)),
            scopes => writeln!(html, "<li>{scopes} {}", Text(reason)),
        };
    }
    html.push_str("</ul>\n");
}

/// Lists what must agree before two runs are compared.
fn push_environment(html: &mut String, summary: &Summary) {
    html.push_str("<h3>Where it was measured</h3>\n<dl>\n");
    let facts = facts(&summary.environment, summary.wall_ns);
    for (term, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        let _ = writeln!(html, "<dt>{term}<dd>{}", Text(text));
    }
    html.push_str("</dl>\n");
    let settings = &summary.environment.settings;
    if !settings.is_empty() {
        html.push_str("<h3>Settings</h3>\n<dl>\n");
        for (variable, value) in settings {
            let _ = writeln!(
                html,
                "<dt><code>{}</code><dd><code>{}</code>",
                Text(variable),
                Text(value)
            );
        }
        html.push_str("</dl>\n");
    }
}

fn facts(environment: &Environment, wall_ns: f64) -> [(&'static str, String); 10] {
    let optional = |text: Option<String>| text.unwrap_or_default();
    let assertions = if environment.debug_build {
        "with debug assertions: times of an optimised build are shorter"
    } else {
        "without debug assertions"
    };
    let build = match &*environment.profiler_version {
        "" => String::new(),
        version => format!("{assertions}; profiler {version}"),
    };
    let processors = match environment.processors {
        0 => String::new(),
        processors => processors.to_string(),
    };
    [
        ("Program", environment.program.clone()),
        ("Began", optional(date::utc(environment.start_unix_ns))),
        ("Measured for", units::time(wall_ns)),
        ("Host", environment.host.clone()),
        (
            "Rank",
            optional(environment.rank.map(|rank| rank.to_string())),
        ),
        ("System", environment.system.clone()),
        ("Processors", processors),
        ("GPUs", environment.devices.join(", ")),
        ("CUDA", environment.driver.clone().unwrap_or_default()),
        ("Build", build),
    ]
}

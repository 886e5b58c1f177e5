//! Losses and their reasons, the profiler's own cost, and where and how the run was measured.

use super::Page;
use super::escape::Text;
use crate::averages::missing;
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
    let notes = page.summary.map(Summary::note_lines);
    if let Some(notes) = &notes {
        push_list(html, "What the numbers do not say", notes);
    }
    if let Some(timeline) = page.timeline {
        let mut missing = missing(timeline);
        // The notes of a window's own rows have them.
        missing.retain(|line| notes.as_ref().is_none_or(|notes| !notes.contains(line)));
        if !missing.is_empty() {
            push_list(html, "Missing from the window", &missing);
        }
    }
    if let Some(summary) = page.summary {
        push_environment(html, summary);
    }
    html.push_str("</section>\n");
}

/// Writes lines such as those that the text form has below its table: losses with their reasons and remedies, warnings, the
/// state of the GPU and the cost of the profiler itself.
fn push_list(html: &mut String, title: &str, lines: &[String]) {
    let _ = writeln!(html, "<h3>{title}</h3>\n<ul class=notes>");
    for line in lines {
        let _ = writeln!(html, "<li>{}", Text(line));
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

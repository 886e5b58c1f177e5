//! Draws functions, with the case that calls each.

use fastrand::Rng;

use crate::body;
use crate::signature::{Kind, Place, Signature};

/// Where the attribute stands. The bare function has a comment there, so that both are on the same
/// lines.
const MARK: &str = "#[profiler_runtime::measured]";

pub(crate) struct Function {
    pub(crate) index: usize,
    /// The kind, to tell findings apart.
    pub(crate) kind: Kind,
    /// The function, with the attribute.
    pub(crate) source: String,
    case: String,
}

impl Function {
    /// Draws the function with this index, which does not depend on the other functions.
    pub(crate) fn draw(seed: u64, index: usize, edition: u16) -> Self {
        let mut rng = Rng::with_seed(seed.wrapping_add(index as u64 * 0x9e37_79b9));
        let rng = &mut rng;
        let name = format!("f{index}");
        let signature = Signature::draw(rng);
        let mut attributes = Vec::new();
        if rng.u32(0..if signature.kind == Kind::Async { 40 } else { 6 }) == 0 {
            attributes.push("#[track_caller]");
        }
        if rng.u32(0..8) == 0 {
            attributes.push("#[inline]");
        }
        let method = signature.place != Place::Free;
        let on_block = method && rng.u32(0..4) == 0;
        if !on_block {
            attributes.insert(rng.usize(..=attributes.len()), MARK);
        }
        let body = body::draw(rng, edition, &signature);
        let written = signature.written(&name, true);
        let visible = if method { "" } else { "pub " };
        let function = format!("{}\n{visible}{written} {body}\n", attributes.join("\n"));
        let mark = if on_block { MARK } else { "" };
        let source = match signature.place {
            Place::Free => function,
            Place::Inherent => format!("{mark}\nimpl Own {{\n{function}}}\n"),
            Place::Trait => {
                let declared = signature.written(&name, false);
                format!(
                    "trait Work{index} {{\n{declared};\n}}\n{mark}\nimpl Work{index} for Own {{\n{function}}}\n"
                )
            }
        };
        Self {
            index,
            kind: signature.kind,
            source: indented(&source),
            case: indented(&signature.case(&name, index)),
        }
    }

    /// Returns the text of the function and its case in one of the modules.
    pub(crate) fn text(&self, measured: bool) -> String {
        let bare = self.source.replace(MARK, "// bare");
        let source = if measured { &self.source } else { &bare };
        format!("{source}{}", self.case)
    }
}

/// Indents each line by the braces that are open before it.
fn indented(text: &str) -> String {
    let mut depth: usize = 0;
    let mut indented = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let closes = line.starts_with(['}', ')']);
        let indent = 4 * depth.saturating_sub(usize::from(closes));
        indented.extend([&" ".repeat(indent), line, "\n"]);
        depth = (depth + line.matches('{').count()).saturating_sub(line.matches('}').count());
    }
    indented
}

//! Makes names in assembly comparable between two crates.

use std::collections::HashMap;

/// Renumbers labels that the compiler numbers per file: from 0, in the order in which one function
/// mentions them.
#[derive(Debug)]
pub(crate) struct Labels<'a> {
    crate_name: &'a str,
    numbers: HashMap<String, usize>,
    in_order: Vec<String>,
}

impl<'a> Labels<'a> {
    pub(crate) fn new(crate_name: &'a str) -> Self {
        Self {
            crate_name,
            numbers: HashMap::new(),
            in_order: Vec::new(),
        }
    }

    /// The labels mentioned so far, by their names in the file.
    pub(crate) fn mentioned(&self) -> &[String] {
        &self.in_order
    }

    /// Returns a line with all its names replaced.
    pub(crate) fn replace_in(&mut self, line: &str) -> String {
        let mut replaced = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(start) = rest.find(is_part_of_name) {
            let (before, from_name) = rest.split_at(start);
            let length = from_name
                .find(|c| !is_part_of_name(c))
                .unwrap_or(from_name.len());
            let (name, after) = from_name.split_at(length);
            replaced.push_str(before);
            replaced.push_str(&self.replace(name));
            rest = after;
        }
        replaced.push_str(rest);
        replaced
    }

    fn replace(&mut self, name: &str) -> String {
        if !name.starts_with(".L") && !name.starts_with("GCC_except_table") {
            return readable(name, self.crate_name);
        }
        let next = self.numbers.len();
        let number = *self.numbers.entry(name.to_owned()).or_insert_with(|| {
            self.in_order.push(name.to_owned());
            next
        });
        format!("label{number}")
    }
}

fn is_part_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// Returns a symbol as a path without hashes, with the crate's own name replaced by `twin`. Returns
/// a symbol that is not Rust's unchanged.
pub(crate) fn readable(symbol: &str, crate_name: &str) -> String {
    let Ok(path) = rustc_demangle::try_demangle(symbol) else {
        return symbol.to_owned();
    };
    let path = format!("{path:#}");
    let own = format!("{crate_name}::");
    let mut replaced = String::with_capacity(path.len());
    let mut rest = path.as_str();
    while let Some(at) = rest.find(&own) {
        let (before, from_own) = rest.split_at(at);
        replaced.push_str(before);
        // Skip a match that is only the end of a longer name.
        let whole = !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':'));
        replaced.push_str(if whole { "twin::" } else { &own });
        rest = &from_own[own.len()..];
    }
    replaced.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_numbered_in_the_order_of_their_mention() {
        let mut labels = Labels::new("bare");
        assert_eq!(labels.replace_in("jne\t.LBB7_3"), "jne\tlabel0");
        assert_eq!(
            labels.replace_in("lea\t.Lanon.0a.4(%rip), %rdi"),
            "lea\tlabel1(%rip), %rdi"
        );
        assert_eq!(labels.replace_in("jmp\t.LBB7_3"), "jmp\tlabel0");
        assert_eq!(labels.mentioned(), [".LBB7_3", ".Lanon.0a.4"]);
    }

    #[test]
    fn symbols_lose_their_hashes_and_the_name_of_their_crate() {
        let line = "callq\t_RNvCs1a2B3c_4bare5depth@PLT";
        assert_eq!(
            Labels::new("bare").replace_in(line),
            "callq\ttwin::depth@PLT"
        );
        let old = "_ZN4bare5depth17h0123456789abcdefE";
        assert_eq!(readable(old, "bare"), "twin::depth");
    }

    #[test]
    fn other_crates_keep_their_names() {
        assert_eq!(
            readable("_RNvCs1a2B3c_7threads5depth", "bare"),
            "threads::depth"
        );
        assert_eq!(
            readable("_RNvCs1a2B3c_7so_bare5depth", "bare"),
            "so_bare::depth"
        );
        assert_eq!(
            readable("_RNvNtCs1a2B3c_4core4bare5depth", "bare"),
            "core::bare::depth"
        );
        assert_eq!(readable("memcpy", "bare"), "memcpy");
    }
}

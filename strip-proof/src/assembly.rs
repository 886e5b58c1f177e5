//! Parses the functions in an assembly file that `rustc --emit asm` wrote for an ELF target.

use std::collections::{BTreeMap, HashMap};

use thiserror::Error;

use crate::labels::{Labels, readable};

/// An error in an assembly file, with its remedy.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AssemblyError {
    /// The file contains no function.
    #[error(
        "no function found in the assembly of `{0}`: build it for an ELF target, such as Linux's, \
         with optimisation and one codegen unit"
    )]
    NoFunction(String),
    /// The end of a function is missing.
    #[error("the assembly of `{0}` ends within the function `{1}`: rebuild it")]
    Unfinished(String, String),
}

/// The code of one function and the constants that it refers to, with comparable names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The instructions, directives and labels, one per line.
    pub lines: Vec<String>,
}

impl Function {
    /// Returns the number of instructions.
    ///
    /// ```
    /// let lines = ["pushq\t%rax", ".cfi_def_cfa_offset 16", "label0:", "retq"];
    /// let function = strip_proof::Function { lines: lines.map(String::from).to_vec() };
    /// assert_eq!(function.instructions(), 2);
    /// ```
    pub fn instructions(&self) -> usize {
        self.lines
            .iter()
            .filter(|line| !line.starts_with('.') && !line.ends_with(':'))
            .count()
    }
}

/// The assembly of a crate.
#[derive(Debug)]
pub struct Assembly {
    /// The functions by path. The crate's own name is replaced by `twin`.
    pub functions: BTreeMap<String, Function>,
    /// All Rust names that the file mentions, with the names of their crates.
    pub mentions: Vec<String>,
}

impl Assembly {
    /// Parses the assembly of a crate.
    ///
    /// # Errors
    ///
    /// Returns an error if the text contains no function, or an incomplete one.
    ///
    /// ```
    /// let text = "\t.type\tf,@function\nf:\n\tretq # done\n\t.size\tf, .-f\n";
    /// let assembly = strip_proof::Assembly::parse(text, "my_crate")?;
    /// assert_eq!(assembly.functions["f"].lines, ["retq"]);
    /// # Ok::<(), strip_proof::AssemblyError>(())
    /// ```
    pub fn parse(text: &str, crate_name: &str) -> Result<Self, AssemblyError> {
        let lines: Vec<&str> = text
            .lines()
            .map(without_comment)
            .filter(|line| !line.is_empty())
            .collect();
        let blocks = blocks_by_label(&lines);
        let mut functions = BTreeMap::new();
        for (symbol, code) in code_by_symbol(&lines, crate_name)? {
            let function = normalised(code, &blocks, crate_name);
            add(&mut functions, &readable(symbol, crate_name), function);
        }
        for (alias, target) in lines.iter().filter_map(|line| alias(line)) {
            let line = format!("same as {}", readable(target, crate_name));
            let function = Function { lines: vec![line] };
            add(&mut functions, &readable(alias, crate_name), function);
        }
        if functions.is_empty() {
            return Err(AssemblyError::NoFunction(crate_name.to_owned()));
        }
        Ok(Self {
            functions,
            mentions: mentions(&lines),
        })
    }

    /// Returns the names in the file that belong to a crate, or to an instance of generic code with
    /// its types.
    ///
    /// ```
    /// let text = "\t.type\tf,@function\nf:\n\tjmp\t_RNvCs1_3log3now@PLT\n\t.size\tf, .-f\n";
    /// let assembly = strip_proof::Assembly::parse(text, "my_crate")?;
    /// assert_eq!(assembly.mentions_of("log"), ["log::now"]);
    /// assert!(assembly.mentions_of("profiler_runtime").is_empty());
    /// # Ok::<(), strip_proof::AssemblyError>(())
    /// ```
    pub fn mentions_of(&self, crate_name: &str) -> Vec<&str> {
        let path = format!("{crate_name}::");
        let mentions = self.mentions.iter().map(String::as_str);
        mentions.filter(|name| name.contains(&path)).collect()
    }
}

/// Two functions may have the same path: all but the first get a number.
fn add(functions: &mut BTreeMap<String, Function>, path: &str, function: Function) {
    let mut key = path.to_owned();
    let mut number = 2;
    while functions.contains_key(&key) {
        key = format!("{path} #{number}");
        number += 1;
    }
    functions.insert(key, function);
}

fn without_comment(line: &str) -> &str {
    let bytes = line.as_bytes();
    let mut end = line.find("//").unwrap_or(line.len());
    // On some targets `#` without a space after it begins a number, not a comment.
    for (at, _) in line.match_indices('#') {
        let space_before = at == 0 || bytes[at - 1].is_ascii_whitespace();
        let space_after = bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace);
        if space_before && (space_after || bytes[at + 1] == b'-') && !line[..at].contains('"') {
            end = end.min(at);
        }
    }
    line[..end].trim()
}

/// Returns the symbol that a line declares as a function.
fn function_declared(line: &str) -> Option<&str> {
    let (symbol, kind) = line.strip_prefix(".type")?.split_once(',')?;
    matches!(kind.trim(), "@function" | "%function").then_some(symbol.trim())
}

/// Returns the symbols of a line that defines one as an alias of another.
fn alias(line: &str) -> Option<(&str, &str)> {
    let (alias, target) = line.strip_prefix(".set")?.split_once(',')?;
    let (alias, target) = (alias.trim(), target.trim());
    (!alias.starts_with(".L")).then_some((alias, target))
}

/// Returns the lines between each function's label and its `.size`.
fn code_by_symbol<'a>(
    lines: &'a [&'a str],
    crate_name: &str,
) -> Result<Vec<(&'a str, &'a [&'a str])>, AssemblyError> {
    let mut found = Vec::new();
    for (at, symbol) in lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, function_declared(line)?)))
    {
        let label = |line: &&str| line.strip_suffix(':') == Some(symbol);
        let Some(start) = lines[at..].iter().position(label) else {
            continue; // an alias
        };
        let code = &lines[at + start + 1..];
        let size = |line: &&str| {
            line.strip_prefix(".size")
                .and_then(|rest| rest.trim().split(',').next())
                == Some(symbol)
        };
        let end = code.iter().position(size).ok_or_else(|| {
            let path = readable(symbol, crate_name);
            AssemblyError::Unfinished(crate_name.to_owned(), path)
        })?;
        found.push((symbol, &code[..end]));
    }
    Ok(found)
}

/// Returns the lines after each local label, up to the end of its section.
///
/// Only constants of the code count: numbers, jump tables, unwind tables. Other data belongs to the
/// program, and panic locations always differ between two files.
fn blocks_by_label<'a>(lines: &'a [&'a str]) -> HashMap<&'a str, &'a [&'a str]> {
    const OF_CODE: [&str; 5] = [
        ".LCPI",
        ".LJTI",
        ".Lswitch.table",
        ".Lexception",
        "GCC_except_table",
    ];
    let labels = lines.iter().enumerate().filter_map(|(at, line)| {
        let label = line.strip_suffix(':')?;
        let of_code = OF_CODE.iter().any(|prefix| label.starts_with(prefix));
        of_code.then_some((at, label))
    });
    labels
        .map(|(at, label)| {
            let rest = &lines[at + 1..];
            let end = rest.iter().position(|line| ends_block(line));
            (label, &rest[..end.unwrap_or(rest.len())])
        })
        .collect()
}

fn ends_block(line: &str) -> bool {
    [".section", ".text", ".data", ".bss", ".type", ".size"]
        .iter()
        .any(|directive| line.starts_with(directive))
}

/// Returns a function's code and the constants that it refers to, directly or indirectly, with
/// comparable names.
fn normalised(code: &[&str], blocks: &HashMap<&str, &[&str]>, crate_name: &str) -> Function {
    let mut labels = Labels::new(crate_name);
    let mut lines: Vec<String> = code.iter().map(|line| labels.replace_in(line)).collect();
    let mut done = 0;
    while let Some(label) = labels.mentioned().get(done).cloned() {
        done += 1;
        let Some(block) = blocks.get(label.as_str()) else {
            continue;
        };
        lines.push(format!("{}:", labels.replace_in(&label)));
        lines.extend(block.iter().map(|line| {
            let line = labels.replace_in(line);
            // A directive, which does not count as code.
            if line.starts_with('.') || line.ends_with(':') {
                line
            } else {
                format!(".{line}")
            }
        }));
    }
    Function { lines }
}

/// Returns all Rust names in the file, sorted and without duplicates.
fn mentions(lines: &[&str]) -> Vec<String> {
    let part_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    let mut names: Vec<String> = lines
        .iter()
        .flat_map(|line| line.split(|c| !part_of_name(c)))
        .filter_map(|word| rustc_demangle::try_demangle(word).ok())
        .map(|path| format!("{path:#}"))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests;

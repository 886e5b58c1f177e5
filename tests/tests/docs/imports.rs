//! The runtime's top-level modules form layers: the imports among them have no cycle, and the table in
//! `docs/architecture.md` lists the modules in an order in which each imports only from modules above it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemFn, ItemUse, Macro, UseTree};

/// The modules that a module imports, each with the places where it does.
type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The name under which imports from `lib.rs` itself are listed.
const ROOT: &str = "lib.rs";

#[test]
fn imports_among_modules_have_no_cycle() {
    let imports = imports_of(&runtime());
    assert!(
        imports.len() > 10,
        "the sources were not read: {imports:#?}"
    );
    let order = layers(&imports).unwrap_or_else(|cycle| panic!("{}", describe(&cycle, &imports)));
    println!("{}", order.join(" < "));
}

#[test]
fn modules_stand_in_the_documented_order() {
    let imports = imports_of(&runtime());
    let documented = documented_order();
    let modules: BTreeSet<&str> = imports.keys().map(String::as_str).collect();
    let listed: BTreeSet<&str> = documented.iter().map(String::as_str).collect();
    assert_eq!(
        modules, listed,
        "the modules, and those in docs/architecture.md"
    );
    let place = |module: &str| documented.iter().position(|listed| listed == module);
    for (module, imported) in &imports {
        for (other, places) in imported {
            assert!(
                place(other) < place(module),
                "`{module}` imports from `{other}`, which docs/architecture.md lists below it: {places:?}"
            );
        }
    }
}

#[test]
fn an_import_that_leads_up_is_found() {
    let sources = [
        ("low/mod.rs", "pub struct Low; fn f() { crate::high::g(); }"),
        ("high.rs", "use crate::low::{self, Low};"),
    ];
    let cycle = layers(&collect(sources)).expect_err("a cycle");
    assert_eq!(cycle, ["high", "low"]);
    let sources = [
        ("low/inner.rs", "use super::super::high;"),
        ("high.rs", "macro_rules! low { () => { $crate::low::Low } }"),
    ];
    assert!(layers(&collect(sources)).is_err());
    let sources = [("low.rs", "use crate::Exported;")];
    assert!(layers(&collect(sources)).is_err(), "lib.rs is above all");
}

#[test]
fn what_only_tests_import_does_not_count() {
    let sources = [
        (
            "low/mod.rs",
            "#[cfg(test)] mod tests; #[cfg(test)] use crate::high::High;",
        ),
        ("low/tests.rs", "use crate::high::High;"),
        ("high.rs", "use crate::low;"),
    ];
    assert_eq!(
        layers(&collect(sources)),
        Ok(vec!["low".to_owned(), "high".to_owned()])
    );
}

fn runtime() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiler-runtime/src")
}

/// Reads all sources below a folder.
fn imports_of(root: &Path) -> Imports {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder of the sources") {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                let inside = path.strip_prefix(root).expect("a path below the folder");
                files.push((inside.to_string_lossy().replace('\\', "/"), text));
            }
        }
    }
    collect(
        files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str())),
    )
}

fn collect<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Imports {
    let parsed: Vec<(Vec<String>, &str, syn::File)> = sources
        .into_iter()
        .map(|(path, text)| {
            let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
            (module_of(path), path, file)
        })
        .collect();
    let for_tests: BTreeSet<Vec<String>> = parsed
        .iter()
        .flat_map(|(module, _, file)| test_modules(module, file))
        .collect();
    let mut imports = Imports::new();
    for (module, path, file) in &parsed {
        let is_test = (1..=module.len()).any(|length| for_tests.contains(&module[..length]));
        let Some(top) = module.first().filter(|_| !is_test) else {
            continue;
        };
        let found = imports.entry(top.clone()).or_default();
        let mut reader = Reader {
            module: module.clone(),
            found: Vec::new(),
        };
        reader.visit_file(file);
        for other in reader.found.into_iter().filter(|other| other != top) {
            found.entry(other).or_default().insert((*path).to_owned());
        }
    }
    imports.entry(ROOT.to_owned()).or_default();
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for imported in imports.values_mut() {
        let items: Vec<String> = imported
            .keys()
            .filter(|name| !modules.contains(*name))
            .cloned()
            .collect();
        for item in items {
            let places = imported.remove(&item).unwrap_or_default();
            imported.entry(ROOT.to_owned()).or_default().extend(places);
        }
    }
    let all: Vec<String> = imports
        .keys()
        .filter(|name| *name != ROOT)
        .cloned()
        .collect();
    let root = imports.entry(ROOT.to_owned()).or_default();
    root.extend(
        all.into_iter()
            .map(|module| (module, BTreeSet::from([ROOT.to_owned()]))),
    );
    imports
}

/// Returns the path of the module that a file holds, empty for `lib.rs`.
fn module_of(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = path
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib")) {
        parts.pop();
    }
    parts
}

/// Returns the modules in files of their own that a file declares for tests alone.
fn test_modules(module: &[String], file: &syn::File) -> Vec<Vec<String>> {
    let declared = file.items.iter().filter_map(|item| match item {
        Item::Mod(declared) if declared.content.is_none() && is_for_tests(&declared.attrs) => {
            Some(declared.ident.to_string())
        }
        _ => None,
    });
    declared
        .map(|name| module.iter().cloned().chain([name]).collect())
        .collect()
}

/// Returns `true` if an item is compiled for tests alone.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return attribute.path().is_ident("test");
        };
        list.path.is_ident("cfg") && requires_test(&list.tokens.to_string())
    })
}

/// Returns `true` if a condition cannot hold without `test`: it is `test`, or `all` of several with it.
fn requires_test(condition: &str) -> bool {
    let condition = condition.replace(' ', "");
    let all = condition
        .strip_prefix("all(")
        .and_then(|rest| rest.strip_suffix(')'));
    all.unwrap_or(&condition)
        .split(',')
        .any(|part| part == "test")
}

/// Reads the top-level modules that one file refers to.
struct Reader {
    module: Vec<String>,
    found: Vec<String>,
}

impl Reader {
    /// Notes a path as it stands in the source.
    fn note(&mut self, segments: &[String]) {
        let target = match segments.first().map(String::as_str) {
            Some("crate") => segments.get(1),
            Some("super") => {
                let up = segments
                    .iter()
                    .take_while(|segment| *segment == "super")
                    .count();
                let kept = self.module.len().checked_sub(up);
                match kept {
                    // At the root: what comes next is a top-level module or an item of `lib.rs`.
                    Some(0) => segments.get(up),
                    _ => None,
                }
            }
            _ => None,
        };
        self.found
            .extend(target.filter(|name| *name != "self").cloned());
    }

    fn note_tree(&mut self, prefix: &[String], tree: &UseTree) {
        let with = |last: &syn::Ident| {
            prefix
                .iter()
                .cloned()
                .chain([last.to_string()])
                .collect::<Vec<_>>()
        };
        match tree {
            UseTree::Path(path) => self.note_tree(&with(&path.ident), &path.tree),
            UseTree::Name(name) => self.note(&with(&name.ident)),
            UseTree::Rename(rename) => self.note(&with(&rename.ident)),
            UseTree::Glob(_) => self.note(&[prefix, &["*".to_owned()]].concat()),
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|item| self.note_tree(prefix, item)),
        }
    }

    /// Notes the paths in the tokens of a macro.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    let ident = ident.to_string();
                    if ident == "crate"
                        || (ident == "super" && path.last().is_none_or(|last| last != "super"))
                    {
                        path.clear();
                    }
                    path.push(ident);
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {}
                TokenTree::Group(group) => {
                    self.note(&std::mem::take(&mut path));
                    self.note_tokens(group.stream());
                }
                _ => self.note(&std::mem::take(&mut path)),
            }
        }
        self.note(&path);
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Static(item) => &item.attrs,
            Item::Const(item) => &item.attrs,
            Item::Macro(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if is_for_tests(attributes) {
            return;
        }
        if let Item::Mod(inner) = item
            && inner.content.is_some()
        {
            self.module.push(inner.ident.to_string());
            visit::visit_item(self, item);
            self.module.pop();
            return;
        }
        visit::visit_item(self, item);
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.note_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.note(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.note_tokens(called.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// Returns the modules lowest first, or those of a cycle.
fn layers(imports: &Imports) -> Result<Vec<String>, Vec<String>> {
    let mut order: Vec<String> = Vec::new();
    let mut left: BTreeSet<&String> = imports.keys().collect();
    while !left.is_empty() {
        let is_lowest =
            |module: &&String| imports[*module].keys().all(|other| !left.contains(other));
        let lowest: Vec<&String> = left.iter().copied().filter(is_lowest).collect();
        if lowest.is_empty() {
            return Err(cycle(imports, &left));
        }
        for module in lowest {
            left.remove(module);
            order.push(module.clone());
        }
    }
    order.retain(|module| module != ROOT);
    Ok(order)
}

/// Follows imports among modules that are all part of a cycle, or above one, until one comes again.
fn cycle(imports: &Imports, left: &BTreeSet<&String>) -> Vec<String> {
    let mut path: Vec<String> = left
        .iter()
        .take(1)
        .map(|module| (*module).clone())
        .collect();
    while let Some(next) = path
        .last()
        .and_then(|last| imports[last].keys().find(|other| left.contains(other)))
    {
        if let Some(start) = path.iter().position(|module| module == next) {
            return path.split_off(start);
        }
        path.push(next.clone());
    }
    path
}

fn describe(cycle: &[String], imports: &Imports) -> String {
    let mut lines = vec![
        "these modules import each other in a circle; move what the lower one needs down:"
            .to_owned(),
    ];
    for (index, module) in cycle.iter().enumerate() {
        let next = &cycle[(index + 1) % cycle.len()];
        lines.push(format!(
            "  {module} -> {next}: {:?}",
            imports[module].get(next)
        ));
    }
    lines.join("\n")
}

/// Reads the table of modules in `docs/architecture.md`: the names in the first column, lowest first.
fn documented_order() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/architecture.md");
    let text = fs::read_to_string(path).expect("docs/architecture.md");
    let table = text
        .split("## profiler-runtime")
        .nth(1)
        .expect("the section on profiler-runtime");
    let rows = table
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    let names = rows
        .filter_map(|row| row.split('`').nth(1))
        .map(|name| name.trim_end_matches(['/']).trim_end_matches(".rs"));
    names.map(str::to_owned).chain([ROOT.to_owned()]).collect()
}

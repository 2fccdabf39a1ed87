//! No import cycles between files, checked by reading the source.
//!
//! A cycle means that none of its files can be read, tested or moved without the others. The rule:
//! file A imports file B where A, outside its tests, names an item that B defines, in a `use` or in
//! a path.
//!
//! * A name is followed through re-exports to the file that defines it, so that a `mod.rs` in
//!   between hides nothing.
//! * `mod x;` and a re-export import nothing by themselves: a folder has to name its files.
//! * A parent and its child are two files like any others. A child may hold methods of its parent's
//!   type (`impl super::Judge`); if the parent then names a type of the child, that is a cycle, and
//!   the type belongs in a file of its own.
//! * Calls of methods are not followed, since their text does not say whose they are.

use crate::source::{
    blank_comments_and_strings, blank_tests, identifier, is_test_file, sources, words,
};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn no_file_imports_itself_through_others() {
    let tree = Tree::new(sources());
    assert!(tree.imports().len() > 200, "the imports were not read");
    let cycles = tree.cycles();
    assert!(cycles.is_empty(), "\n{}", cycles.join("\n"));
}

#[test]
fn a_cycle_is_found_however_it_is_written() {
    let cases: [&[(&str, &str)]; 7] = [
        &[
            ("a/x.rs", "use super::y::Y; pub struct X;"),
            ("a/y.rs", "use crate::a::x::X; pub struct Y;"),
        ],
        // Through a re-export of the folder.
        &[
            ("a/mod.rs", "mod x; mod y; pub use x::X; pub use y::Y;"),
            ("a/x.rs", "use super::Y; pub struct X;"),
            ("a/y.rs", "use super::X; pub struct Y;"),
        ],
        // A path in a body, and one that begins with an imported module.
        &[
            ("a/x.rs", "fn x() { super::y::y() }"),
            ("a/y.rs", "use crate::a::x; fn y() { x::x() }"),
        ],
        // Parent and child.
        &[
            ("a/x.rs", "mod part; use part::Part; pub struct X(Part);"),
            ("a/x/part.rs", "use super::X; pub struct Part; impl X {}"),
        ],
        // A re-export that its file uses itself.
        &[
            ("a/mod.rs", "mod x; pub use x::X; pub struct A(X); "),
            ("a/x.rs", "use super::A; pub struct X;"),
        ],
        &[
            ("a/x.rs", "use super::{b::{self, B}}; pub struct X;"),
            ("a/b.rs", "use super::c::*; pub struct B;"),
            ("a/c.rs", "use super::x::X as Y; pub struct C;"),
        ],
        // A crate of its own.
        &[
            ("stats/x.rs", "use crate::y::Y; pub struct X;"),
            ("stats/y.rs", "use super::x::X; pub struct Y;"),
        ],
    ];
    for files in cases {
        let found = Tree::of(files).cycles();
        assert_eq!(found.len(), 1, "{files:?}: {found:?}");
    }
}

#[test]
fn folders_and_methods_and_tests_are_no_cycles() {
    let cases: [&[(&str, &str)]; 4] = [
        &[
            ("a/mod.rs", "mod x; pub use x::x; pub struct A;"),
            ("a/x.rs", "use super::A; pub fn x(_: A) {}"),
        ],
        &[
            ("a/x.rs", "mod part; pub struct X; fn x(x: X) { x.part() }"),
            ("a/x/part.rs", "use super::X; impl X { fn part(self) {} }"),
        ],
        &[
            ("a/x.rs", "use super::y::Y; pub struct X;"),
            (
                "a/y.rs",
                "pub struct Y; #[cfg(test)] mod tests { use super::super::x::X; }",
            ),
        ],
        &[
            ("a/x.rs", "use super::y::Y; pub struct X;"),
            ("a/y.rs", "//! See super::x::X.\npub struct Y;"),
        ],
    ];
    for files in cases {
        let found = Tree::of(files).cycles();
        assert!(found.is_empty(), "{files:?}: {found:?}");
    }
}

/// A path, such as `crate::a::b`, part by part.
type Path = Vec<String>;

/// One name that a `use` brings in.
struct Use {
    path: Path,
    name: String,
    reexport: bool,
}

/// What was read of one file.
struct File {
    module: Path,
    uses: Vec<Use>,
    /// The paths of the code outside of `use`.
    paths: Vec<Path>,
    code: String,
}

/// All files, by path.
struct Tree {
    files: BTreeMap<String, File>,
    modules: BTreeMap<Path, String>,
}

/// By file, the files that it imports, with a name that it takes from each.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

impl Tree {
    fn of(files: &[(&str, &str)]) -> Tree {
        let owned = files
            .iter()
            .map(|(p, t)| ((*p).to_owned(), (*t).to_owned()));
        Tree::new(owned.collect())
    }

    fn new(sources: Vec<(String, String)>) -> Tree {
        let product = sources.into_iter().filter(|(path, _)| !is_test_file(path));
        let files: BTreeMap<String, File> =
            product.map(|(p, t)| (p.clone(), read(&p, &t))).collect();
        let modules = files
            .iter()
            .map(|(path, file)| (file.module.clone(), path.clone()));
        Tree {
            modules: modules.collect(),
            files,
        }
    }

    /// The path from the root of the tree of one that is written in a file; `None` of other crates.
    fn absolute(&self, file: &File, path: &[String]) -> Option<Path> {
        let (head, rest) = path.split_first()?;
        let own = &file.module;
        let (base, rest) = match head.as_str() {
            "crate" if own.first().is_some_and(|m| m == "stats") => (&own[..1], rest),
            "crate" | "trueline" => (&own[..0], rest),
            "self" => (&own[..], rest),
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                (&own[..own.len().checked_sub(up)?], &path[up..])
            }
            _ => {
                let child = [own, std::slice::from_ref(head)].concat();
                self.modules.get(&child)?;
                (&own[..], path)
            }
        };
        Some([base, rest].concat())
    }

    /// The file that defines what a path names, and the name there; `None` for a module.
    fn definition(&self, path: &[String], depth: usize) -> Option<(&str, String)> {
        let longest = (0..=path.len())
            .rev()
            .find(|&n| self.modules.contains_key(&path[..n]))?;
        let at = &self.modules[&path[..longest]];
        let (name, rest) = path[longest..].split_first()?;
        let file = &self.files[at];
        let brings = |u: &&Use| u.name == *name;
        if let Some(from) = file.uses.iter().find(brings).filter(|_| depth < 8) {
            let from = self.absolute(file, &from.path)?;
            return self.definition(&[from, rest.to_vec()].concat(), depth + 1);
        }
        let globs = file.uses.iter().filter(|u| u.reexport && u.name == "*");
        let through = globs.filter_map(|u| {
            let from = self.absolute(file, &u.path)?;
            self.definition(&[from, path[longest..].to_vec()].concat(), depth + 1)
        });
        let defines = |(at, name): &(&str, String)| {
            let kinds = ["struct", "enum", "fn", "trait", "type", "const", "static"];
            let code = &self.files[*at].code;
            kinds
                .iter()
                .any(|kind| code.contains(&format!("{kind} {name}")))
        };
        let mut through = through.filter(defines);
        Some(through.next().unwrap_or((at, name.clone())))
    }

    fn imports(&self) -> Imports {
        let mut all = Imports::new();
        for (path, file) in &self.files {
            let mut add = |of: &[String]| {
                let found = self.definition(of, 0);
                if let Some((at, name)) = found.filter(|(at, _)| at != path) {
                    let of_file = all.entry(path.clone()).or_default();
                    of_file.entry(at.to_owned()).or_insert(name);
                }
            };
            let used = |u: &&Use| !u.reexport || mentions(&file.code, &u.name);
            for u in file.uses.iter().filter(used) {
                if let Some(mut of) = self.absolute(file, &u.path) {
                    of.extend((u.name == "*").then(|| "*".to_owned()));
                    add(&of);
                }
            }
            for written in &file.paths {
                let brought = file.uses.iter().find(|u| u.name == written[0]);
                let whole = match brought {
                    Some(u) => [&u.path[..], &written[1..]].concat(),
                    None => written.clone(),
                };
                if let Some(of) = self.absolute(file, &whole) {
                    add(&of);
                }
            }
        }
        all
    }

    /// Each cycle that a walk along the imports meets.
    fn cycles(&self) -> Vec<String> {
        let imports = self.imports();
        let (mut done, mut found) = (BTreeSet::new(), Vec::new());
        for file in imports.keys() {
            walk(&imports, file, &mut Vec::new(), &mut done, &mut found);
        }
        found
    }
}

fn walk<'i>(
    imports: &'i Imports,
    file: &'i str,
    way: &mut Vec<&'i str>,
    done: &mut BTreeSet<&'i str>,
    found: &mut Vec<String>,
) {
    if let Some(at) = way.iter().position(|f| *f == file) {
        let mut text = String::new();
        for (i, from) in way[at..].iter().enumerate() {
            let to = way.get(at + i + 1).copied().unwrap_or(file);
            text.push_str(&format!("src/{from} takes {} from ", imports[*from][to]));
        }
        found.push(format!("cycle: {text}src/{file}"));
        return;
    }
    if done.contains(file) {
        return;
    }
    way.push(file);
    for next in imports.get(file).into_iter().flat_map(BTreeMap::keys) {
        walk(imports, next, way, done, found);
    }
    way.pop();
    done.insert(file);
}

fn read(path: &str, text: &str) -> File {
    let mut rest = blank_tests(&blank_comments_and_strings(text));
    let mut uses = Vec::new();
    while let Some((start, end)) = next_use(&rest) {
        let statement = rest[start..end].to_owned();
        let before = rest[..start].trim_end();
        let reexport = before.ends_with("pub") || before.ends_with(')') && before.contains("pub");
        add_uses(
            statement["use".len()..].trim(),
            &Path::new(),
            reexport,
            &mut uses,
        );
        rest.replace_range(start..end, &" ".repeat(end - start));
    }
    let module = path.trim_end_matches(".rs").split('/').map(str::to_owned);
    let mut module: Path = module.collect();
    if module
        .last()
        .is_some_and(|last| last == "mod" || last == "lib")
    {
        module.pop();
    }
    File {
        module,
        uses,
        paths: paths(&rest),
        code: rest,
    }
}

/// Where the next `use` begins and its semicolon lies.
fn next_use(code: &str) -> Option<(usize, usize)> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let begins = |at: &usize| {
        let before = code[..*at].trim_end_matches(char::is_whitespace);
        let first = before.is_empty() || before.ends_with(['{', '}', ';', ']', ')']);
        (first || before.ends_with("pub")) && !code[..*at].ends_with(part)
    };
    let start = code.match_indices("use ").map(|(at, _)| at).find(begins)?;
    Some((start, start + code[start..].find(';')?))
}

/// The names of a tree of `use`: `a::{b, c::{self, D as E}}`.
fn add_uses(tree: &str, before: &Path, reexport: bool, all: &mut Vec<Use>) {
    let parts = |text: &str| -> Path {
        let parts = text
            .split("::")
            .map(str::trim)
            .filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    if let Some((head, group)) = tree.split_once('{') {
        let before = [&before[..], &parts(head)].concat();
        let group = group.trim_end().strip_suffix('}').unwrap_or(group);
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    if !group[start..at].trim().is_empty() {
                        add_uses(group[start..at].trim(), &before, reexport, all);
                    }
                    start = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (tree, alias) = match tree.split_once(" as ") {
        Some((tree, alias)) => (tree, Some(alias.trim().to_owned())),
        None => (tree, None),
    };
    let mut path = [&before[..], &parts(tree)].concat();
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let Some(last) = path.last().cloned() else {
        return;
    };
    if last == "*" {
        path.pop();
    }
    all.push(Use {
        path,
        name: alias.unwrap_or(last),
        reexport,
    });
}

/// All paths of two or more parts.
fn paths(code: &str) -> Vec<Path> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let first = identifier(&code[at..]);
        if first.is_empty() {
            at += code[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        at += first.len();
        let mut path = vec![first];
        while let Some(rest) = code[at..].trim_start().strip_prefix("::") {
            let part = identifier(rest.trim_start());
            if part.is_empty() {
                break;
            }
            at = code.len() - rest.trim_start().len() + part.len();
            path.push(part);
        }
        if path.len() > 1 {
            all.push(path);
        }
    }
    all
}

/// Whether code has a word, other than to declare a module.
fn mentions(code: &str, word: &str) -> bool {
    words(code, word).any(|(at, _)| !code[..at].trim_end().ends_with("mod"))
}

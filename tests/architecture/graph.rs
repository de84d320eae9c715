//! Which file imports which, counted by the file that defines the imported item, and the cycles among them.

use crate::source::{ItemPath, SourceFile, modules};
use std::collections::{BTreeMap, BTreeSet};

/// Imports between files, by index.
pub struct ImportGraph {
    pub edges: Vec<BTreeSet<usize>>,
}

impl ImportGraph {
    pub fn new(files: &[SourceFile]) -> Self {
        let resolver = Resolver::new(files);
        let edges = files.iter().enumerate().map(|(i, file)| {
            let imports = file.imports(&resolver.children[i]);
            imports.iter().filter_map(|path| resolver.defining_file(path, 0)).filter(|to| *to != i).collect()
        });
        Self { edges: edges.collect() }
    }

    /// Groups of files that import each other in a circle (strongly connected components of two or more).
    pub fn cycles(&self) -> Vec<Vec<usize>> {
        let reachable: Vec<BTreeSet<usize>> = (0..self.edges.len()).map(|i| self.reachable_from(i)).collect();
        let mut grouped: BTreeSet<usize> = BTreeSet::new();
        let mut cycles = Vec::new();
        for (i, reached) in reachable.iter().enumerate() {
            if reached.contains(&i) && !grouped.contains(&i) {
                let members: Vec<usize> =
                    reached.iter().copied().filter(|other| reachable[*other].contains(&i)).collect();
                grouped.extend(&members);
                cycles.push(members);
            }
        }
        cycles
    }

    fn reachable_from(&self, start: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut pending: Vec<usize> = self.edges[start].iter().copied().collect();
        while let Some(next) = pending.pop() {
            if reached.insert(next) {
                pending.extend(&self.edges[next]);
            }
        }
        reached
    }
}

/// Finds the file an item is defined in, through re-exports.
struct Resolver {
    modules: BTreeMap<ItemPath, usize>,
    children: Vec<Vec<String>>,
    definitions: Vec<Vec<String>>,
    reexports: Vec<Vec<(String, ItemPath)>>,
}

impl Resolver {
    fn new(files: &[SourceFile]) -> Self {
        let children: Vec<Vec<String>> = files.iter().map(SourceFile::child_modules).collect();
        let reexports = files.iter().zip(&children).map(|(file, children)| file.reexports(children)).collect();
        let definitions = files.iter().map(SourceFile::definitions).collect();
        Self { modules: modules(files), children, definitions, reexports }
    }

    fn defining_file(&self, path: &[String], depth: usize) -> Option<usize> {
        let length = (1..=path.len()).rev().find(|n| self.modules.contains_key(&path[..*n]))?;
        let file = self.modules[&path[..length]];
        let Some(item) = path.get(length) else { return Some(file) };
        if depth > 8 || self.definitions[file].contains(item) {
            return Some(file);
        }
        let named = self.reexports[file].iter().find(|(name, _)| name == item);
        if let Some((_, target)) = named.filter(|(_, target)| target != path) {
            return self.defining_file(target, depth + 1);
        }
        let globs = self.reexports[file].iter().filter(|(name, _)| name == "*");
        let from_glob = globs.filter_map(|(_, target)| self.modules.get(&target[..target.len() - 1]));
        from_glob.copied().find(|other| self.definitions[*other].contains(item)).or(Some(file))
    }
}

/// What the table prints of an area.
#[derive(Default)]
pub struct AreaSummary {
    pub modules: usize,
    pub lines: usize,
    /// Imports between files of the area.
    pub inside: usize,
    /// Imports of other areas' files.
    pub outside: usize,
    pub upward: usize,
    /// Modules that are part of a cycle.
    pub in_cycles: usize,
}

/// The summary of each area; `is_upward` says whether the first area may not import the second.
pub fn summarize(
    files: &[SourceFile],
    graph: &ImportGraph,
    is_upward: impl Fn(&str, &str) -> bool,
) -> BTreeMap<String, AreaSummary> {
    let mut areas: BTreeMap<String, AreaSummary> = BTreeMap::new();
    for (i, file) in files.iter().enumerate() {
        let area = file.area();
        let summary = areas.entry(area.clone()).or_default();
        summary.modules += 1;
        summary.lines += file.text.lines().count();
        for to in &graph.edges[i] {
            let other = files[*to].area();
            if other == area {
                summary.inside += 1;
            } else {
                summary.outside += 1;
                summary.upward += usize::from(is_upward(&area, &other));
            }
        }
    }
    for member in graph.cycles().into_iter().flatten() {
        areas.entry(files[member].area()).or_default().in_cycles += 1;
    }
    areas
}

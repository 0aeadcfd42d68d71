//! Where it gets crowded: the limits, what is allowed beyond them and why, and the figures.

use super::{Finding, Tree};
use std::collections::BTreeMap;

/// Most lines of a file, its tests apart.
const FILE_LINES: usize = 400;
/// Most lines of a function outside tests.
const FUNCTION_LINES: usize = 70;
/// How many of the largest are printed.
const SHOWN: usize = 10;

/// What may be larger: a file, or `file:function`; the most lines it may have; and why.
const ALLOWED: [(&str, usize, &str); 3] = [
    ("crates/mock/src/form.rs", 500, "every key of a script and what it excludes"),
    ("xtask/src/sim/world.rs", 500, "one simulated process with all that can befall it"),
    ("xtask/src/sim/watch.rs", 500, "every promise that the simulation watches"),
];

/// Something with a length.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sized {
    lines: usize,
    /// `file` or `file:function`.
    key: String,
    /// Where it begins, for a function.
    line: Option<usize>,
}

impl Sized {
    fn place(&self) -> String {
        match (self.line, self.key.split_once(':')) {
            (Some(line), Some((file, name))) => format!("{file}:{line} {name}"),
            _ => self.key.clone(),
        }
    }
}

fn sized_files(tree: &Tree) -> Vec<Sized> {
    let all = tree.sources.iter();
    let sizes = all.map(|source| Sized { lines: source.length(), key: source.path.display().to_string(), line: None });
    largest_first(sizes.collect())
}

fn sized_functions(tree: &Tree) -> Vec<Sized> {
    let sizes = tree.sources.iter().flat_map(|source| {
        let file = source.path.display().to_string();
        let functions = source.functions().into_iter();
        functions.map(move |f| Sized { lines: f.length, key: format!("{file}:{}", f.name), line: Some(f.line) })
    });
    largest_first(sizes.collect())
}

fn largest_first(mut sizes: Vec<Sized>) -> Vec<Sized> {
    sizes.sort_by(|a, b| b.lines.cmp(&a.lines).then_with(|| a.key.cmp(&b.key)));
    sizes
}

pub fn limits(tree: &Tree) -> Vec<Finding> {
    over(tree, &ALLOWED)
}

fn over(tree: &Tree, allowed: &[(&str, usize, &str)]) -> Vec<Finding> {
    let files = sized_files(tree).into_iter().map(|size| (size, FILE_LINES));
    let functions = sized_functions(tree).into_iter().map(|size| (size, FUNCTION_LINES));
    let allowance = |key: &str| allowed.iter().find(|(name, ..)| *name == key).map(|(_, lines, _)| *lines);
    let over = files.chain(functions).filter(|(size, limit)| size.lines > allowance(&size.key).unwrap_or(*limit));
    over.map(|(size, limit)| {
        let limit = allowance(&size.key).unwrap_or(limit);
        let what =
            format!("{} lines: more than {limit} want to be two, or a reason in xtask/src/tidy/size.rs", size.lines);
        Finding::new(size.place(), what)
    })
    .collect()
}

/// Allowances for what is gone or small again.
pub fn allowances(tree: &Tree) -> Vec<Finding> {
    needless(tree, &ALLOWED)
}

fn needless(tree: &Tree, allowed: &[(&str, usize, &str)]) -> Vec<Finding> {
    let sizes: Vec<Sized> = sized_files(tree).into_iter().chain(sized_functions(tree)).collect();
    let needs = |key: &str| {
        let limit = if key.contains(':') { FUNCTION_LINES } else { FILE_LINES };
        sizes.iter().any(|size| size.key == key && size.lines > limit)
    };
    let needless = allowed.iter().filter(|(key, ..)| !needs(key));
    needless.map(|(key, ..)| Finding::new(*key, "needs its allowance in xtask/src/tidy/size.rs no more")).collect()
}

/// Prints the largest functions and files, and each crate's function lengths.
pub fn print(tree: &Tree) {
    let table = [("largest functions", sized_functions(tree)), ("largest files, tests apart", sized_files(tree))];
    for (title, sizes) in table {
        println!("{title}");
        sizes.iter().take(SHOWN).for_each(|size| println!("  {:>5}  {}", size.lines, size.place()));
    }
    println!("functions by crate              number  median     p90");
    for (package, lengths) in lengths(tree) {
        let (median, p90) = (quantile(&lengths, 50), quantile(&lengths, 90));
        println!("  {package:<28}  {:>6}  {median:>6}  {p90:>6}", lengths.len());
    }
}

fn lengths(tree: &Tree) -> BTreeMap<String, Vec<usize>> {
    let mut lengths: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for source in &tree.sources {
        let of = lengths.entry(source.package()).or_default();
        of.extend(source.functions().into_iter().map(|function| function.length));
    }
    lengths.values_mut().for_each(|of| of.sort_unstable());
    lengths
}

/// The value below which `percent` of the sorted values lie.
fn quantile(sorted: &[usize], percent: usize) -> usize {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{places, tree};
    use super::*;

    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "    a();\n".repeat(lines - 2))
    }

    #[test]
    fn a_file_or_function_over_the_limit_wants_a_reason() {
        let many: String = (0..8).map(|n| function(&format!("f{n}"), 60)).collect();
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function("story", 90));
        let texts = [function("fits", 70), function("long", 71), many, tests];
        let tree = tree(&[
            ("crates/x/src/a.rs", &texts[0]),
            ("crates/x/src/b.rs", &texts[1]),
            ("crates/x/src/c.rs", &texts[2]),
            ("crates/x/src/d.rs", &texts[3]),
        ]);
        assert_eq!(places(over(&tree, &[])), ["crates/x/src/c.rs", "crates/x/src/b.rs:1 long"]);
        let allowed = [("crates/x/src/b.rs:long", 80, "a table"), ("crates/x/src/c.rs", 480, "one vocabulary")];
        assert_eq!(over(&tree, &allowed), []);
        assert_eq!(places(over(&tree, &[("crates/x/src/c.rs", 470, "")])).len(), 2);
        assert_eq!(needless(&tree, &allowed), []);
        assert_eq!(places(needless(&tree, &[("crates/x/src/a.rs:fits", 80, "")])), ["crates/x/src/a.rs:fits"]);
    }

    #[test]
    fn medians_and_tails_are_of_the_values_themselves() {
        let values: Vec<usize> = (1..=10).collect();
        assert_eq!((quantile(&values, 50), quantile(&values, 90), quantile(&[], 50)), (5, 9, 0));
    }
}

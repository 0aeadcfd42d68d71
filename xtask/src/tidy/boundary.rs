//! Which crate may know which: the picture of the house as a table.

use super::{Finding, Tree};
use crate::project::{self, Project};
use anyhow::{Context, Result};

/// A package of the workspace and what it depends on.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// Its folder's name.
    pub name: String,
    /// Names of what it needs to run.
    pub needs: Vec<String>,
    /// Names of what its tests need besides.
    pub tests: Vec<String>,
}

/// A crate's folder, and the crates of this workspace it may depend on.
const DOWN: [(&str, &[&str]); 19] = [
    ("kernel", &[]),
    ("llm", &["kernel"]),
    ("sandbox", &[]),
    ("tools", &["kernel", "sandbox"]),
    ("hooks", &["sandbox"]),
    ("web", &["kernel", "tools"]),
    ("wasm", &["kernel", "tools"]),
    ("files", &["kernel"]),
    ("policy", &["kernel"]),
    ("prompt", &["kernel"]),
    ("store", &["kernel"]),
    ("runtime", &["kernel", "llm", "tools", "policy", "prompt", "store", "hooks"]),
    ("windlass", &["kernel", "llm", "tools", "policy", "prompt", "store", "runtime", "hooks", "sandbox"]),
    (
        "cli",
        &[
            "kernel", "llm", "tools", "policy", "prompt", "store", "runtime", "windlass", "mock", "otel", "sandbox",
            "hooks", "web", "wasm",
        ],
    ),
    ("mock", &[]),
    ("otel", &["kernel"]),
    ("xtask", &["kernel", "mock"]),
    ("server", &["kernel", "runtime"]),
    ("tui", &["kernel", "runtime"]),
];

/// What every crate's tests may use besides what the crate may.
const IN_TESTS: [&str; 2] = ["mock", "kernel"];

/// What one crate's tests may use besides: the streams that the mock plays are read by our own client.
const IN_ITS_TESTS: [(&str, &str); 1] = [("mock", "llm")];

/// Crates that do I/O, read a clock or make chance: none for the pure crates.
const IMPURE: [&str; 14] = [
    "tokio",
    "tokio-util",
    "futures-util",
    "reqwest",
    "hyper",
    "rusqlite",
    "rustix",
    "libc",
    "nix",
    "rand",
    "getrandom",
    "tempfile",
    "jiff",
    "ignore",
];

const PURE: [&str; 2] = ["kernel", "policy"];

/// A TLS beside rustls over ring.
const BANNED: [&str; 5] = ["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "native-tls"];

/// Asks cargo for the workspace's packages.
pub fn packages(project: &Project) -> Result<Vec<Package>> {
    let facts = project::output(project.cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let facts: serde_json::Value = serde_json::from_str(&facts).context("reading what `cargo metadata` says")?;
    let packages = facts["packages"].as_array().context("`cargo metadata` lists no packages")?;
    Ok(packages.iter().map(package).collect())
}

fn package(facts: &serde_json::Value) -> Package {
    let manifest = std::path::Path::new(facts["manifest_path"].as_str().unwrap_or_default());
    let folder = manifest.parent().and_then(|folder| folder.file_name()).unwrap_or_default();
    let named = |tests: bool| {
        let all = facts["dependencies"].as_array().into_iter().flatten();
        let some = all.filter(|needed| (needed["kind"].as_str() == Some("dev")) == tests);
        some.filter_map(|needed| needed["name"].as_str()).map(str::to_string).collect()
    };
    Package { name: folder.to_string_lossy().into_owned(), needs: named(false), tests: named(true) }
}

/// The folder of a workspace crate by its package name.
fn folder(package: &str) -> Option<&str> {
    match package {
        "windlass" => Some("windlass"),
        other => other.strip_prefix("windlass-"),
    }
}

pub fn directions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        let place = format!("{}/Cargo.toml", package.name);
        let Some((_, down)) = DOWN.iter().find(|(name, _)| *name == package.name) else {
            let what = "is no room of the house: add it to the table in xtask/src/tidy/boundary.rs";
            findings.push(Finding::new(place, what));
            continue;
        };
        for needed in package.needs.iter().filter_map(|name| folder(name)).filter(|name| !down.contains(name)) {
            let what = format!("must not know `{needed}`: it may depend on {}", list(down));
            findings.push(Finding::new(&place, what));
        }
        let own = |name: &str| {
            let its = IN_ITS_TESTS.contains(&(package.name.as_str(), name)) || name == package.name;
            its || down.contains(&name) || IN_TESTS.contains(&name)
        };
        for needed in package.tests.iter().filter_map(|name| folder(name)).filter(|name| !own(name)) {
            let what = format!("its tests must not know `{needed}`: they may use {}, {}", list(down), list(&IN_TESTS));
            findings.push(Finding::new(&place, what));
        }
        if PURE.contains(&package.name.as_str()) {
            let impure = package.needs.iter().filter(|name| IMPURE.contains(&name.as_str()));
            findings.extend(impure.map(|name| Finding::new(&place, format!("is pure: `{name}` has no place in it"))));
        }
    }
    findings
}

pub fn banned_crates(tree: &Tree) -> Vec<Finding> {
    let locked = |name: &str| tree.lock.lines().any(|line| line == format!("name = \"{name}\""));
    let found = BANNED.into_iter().filter(|name| locked(name));
    found
        .map(|name| Finding::new("Cargo.lock", format!("holds {name}: find who asks with `cargo tree -i {name}`")))
        .collect()
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "nothing here".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{places, tree};
    use super::*;

    fn check(name: &str, needs: &[&str], tests: &[&str]) -> Vec<Finding> {
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let mut tree = tree(&[]);
        tree.packages = vec![Package { name: name.into(), needs: owned(needs), tests: owned(tests) }];
        directions(&tree)
    }

    #[test]
    fn a_crate_may_know_those_below_it_only() {
        assert_eq!(check("runtime", &["windlass-kernel", "windlass-store", "tokio"], &["windlass-mock"]), []);
        let up = check("store", &["windlass-runtime"], &[]);
        assert_eq!(up[0].what, "must not know `runtime`: it may depend on kernel");
        assert_eq!(places(check("llm", &["windlass-tools"], &[])), ["llm/Cargo.toml"]);
        assert_eq!(places(check("policy", &[], &["windlass-llm"])), ["policy/Cargo.toml"]);
        assert_eq!(check("mock", &[], &["windlass-llm"]), []);
        assert_eq!(places(check("tools", &["windlass"], &[])), ["tools/Cargo.toml"]);
    }

    #[test]
    fn a_new_crate_must_take_its_place_in_the_table() {
        assert!(check("shed", &[], &[])[0].what.contains("no room of the house"));
    }

    #[test]
    fn the_pure_crates_take_nothing_that_acts() {
        assert_eq!(places(check("kernel", &["tokio"], &["tempfile"])), ["kernel/Cargo.toml"]);
    }

    #[test]
    fn a_second_tls_is_found_in_the_lock_file() {
        let mut tree = tree(&[]);
        tree.lock = "[[package]]\nname = \"openssl-probe\"\n".into();
        assert_eq!(banned_crates(&tree), []);
        tree.lock.push_str("[[package]]\nname = \"aws-lc-rs\"\n");
        assert_eq!(places(banned_crates(&tree)), ["Cargo.lock"]);
    }
}

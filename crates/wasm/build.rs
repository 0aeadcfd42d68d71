//! Builds the component of `read`, `write` and `edit`, which the library holds.

use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";
/// Small, and whatever the rest is built like.
const SETTINGS: [&str; 4] = [
    "profile.release.opt-level='s'",
    "profile.release.lto=true",
    "profile.release.codegen-units=1",
    "profile.release.strip='symbols'",
];
/// What cargo sets for the build this one is a part of, and is not meant for it.
const NOT_MEANT: [&str; 6] = [
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_MAKEFLAGS",
];

fn main() {
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}")));
    let (own, out) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR"));
    let crates = own.parent().expect("the crate lies beside others");
    for source in ["files/Cargo.toml", "wasm/build.rs", "../Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", crates.join(source).display());
    }
    // One for all profiles: below it lies PROFILE/build/PACKAGE/out.
    let target = out.ancestors().nth(4).expect("cargo's folders").join("components");
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(["build", "--release", "--package", "windlass-files", "--target", TARGET, "--target-dir"]).arg(&target);
    cargo.args(SETTINGS.iter().flat_map(|setting| ["--config", setting])).current_dir(crates);
    NOT_MEANT.iter().for_each(|name| _ = cargo.env_remove(name));
    let done = cargo.output().expect("cargo runs");
    assert!(
        done.status.success(),
        "the component of read, write and edit could not be built; is the target there? `rustup target add {TARGET}`\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let built = target.join(TARGET).join("release");
    copy(&built.join("windlass-files.wasm"), &out.join("files.wasm"));
    sources(&built.join("windlass-files.d"));
}

/// Tells cargo of every file that the component was made of, as its own notes list them: `COMPONENT: FILE FILE …`.
fn sources(notes: &Path) {
    let text = std::fs::read_to_string(notes).unwrap_or_else(|error| panic!("{}: {error}", notes.display()));
    // A space in a name stands behind a backslash.
    let files = text.split_once(": ").map_or("", |(_, files)| files).trim().replace("\\ ", "\0");
    for file in files.split(' ') {
        println!("cargo::rerun-if-changed={}", file.replace('\0', " "));
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::copy(from, to).unwrap_or_else(|error| panic!("{} to {}: {error}", from.display(), to.display()));
}

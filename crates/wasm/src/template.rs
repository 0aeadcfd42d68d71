//! A new tool in Rust: files that build and run as they are.

use crate::manifest::check_name;

const FILES: [(&str, &str); 5] = [
    ("Cargo.toml", include_str!("../template/Cargo.toml.txt")),
    ("src/main.rs", include_str!("../template/main.rs.txt")),
    ("tool.toml", include_str!("../template/tool.toml.txt")),
    ("README.md", include_str!("../template/README.md.txt")),
    (".gitignore", "/target\n"),
];

/// What stands for the name in the files.
const NAME: &str = "TOOL_NAME";

/// The files of a tool called `name`: paths and texts.
pub fn template(name: &str) -> Result<Vec<(&'static str, String)>, String> {
    check_name(name)?;
    Ok(FILES.iter().map(|(path, text)| (*path, text.replace(NAME, name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    #[test]
    fn the_manifest_of_a_new_tool_is_whole() {
        let files = template("word-count").unwrap();
        assert!(files.iter().all(|(_, text)| !text.contains(NAME)));
        let (_, text) = files.iter().find(|(path, _)| *path == "tool.toml").unwrap();
        let manifest = Manifest::parse(text, |file| Err(format!("{file} is not there"))).unwrap();
        assert_eq!(manifest.name, "word-count");
        assert_eq!(manifest.grants()[0], "reads all files of the workspace");
    }

    #[test]
    fn a_name_that_no_tool_can_have_makes_no_files() {
        assert!(template("../evil").unwrap_err().starts_with("\"../evil\" can't be a tool's name"));
    }
}

//! What programs do with their words: wrappers seen through, options that write or run others, files they use.

use crate::deed::Reading;
use crate::shell::Script;

/// What `script`, started in `folder` (absolute), would do.
pub fn read(script: &Script, folder: &str) -> Reading {
    Reading { deeds: vec![], doubts: script.doubts.iter().map(|doubt| format!("{folder}: {doubt}")).collect() }
}

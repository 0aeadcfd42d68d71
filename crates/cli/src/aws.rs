//! AWS credentials and region from the files that AWS's own tools keep, for the profile that is chosen there.

use crate::environment::Environment;
use std::path::PathBuf;

/// The files' names for what the variables say.
const NAMES: [(&str, &str); 4] = [
    ("AWS_ACCESS_KEY_ID", "aws_access_key_id"),
    ("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key"),
    ("AWS_SESSION_TOKEN", "aws_session_token"),
    ("AWS_REGION", "region"),
];

/// What the variable `name` would say, by `~/.aws/credentials` and `~/.aws/config`.
pub fn variable(environment: &Environment, name: &str) -> Option<String> {
    let (_, key) = NAMES.into_iter().find(|(variable, _)| *variable == name)?;
    // A key of the environment and a secret of a file would not fit each other.
    if name != "AWS_REGION" && environment.variable("AWS_ACCESS_KEY_ID").is_some() {
        return None;
    }
    let profile = environment.variable("AWS_PROFILE").unwrap_or("default");
    let below_home = |file: &str| Some(PathBuf::from(environment.variable("HOME")?).join(".aws").join(file));
    let file =
        |variable: &str, usual: &str| environment.variable(variable).map(PathBuf::from).or_else(|| below_home(usual));
    let credentials = (file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile.to_owned());
    let section = if profile == "default" { profile.to_owned() } else { format!("profile {profile}") };
    let config = (file("AWS_CONFIG_FILE", "config"), section);
    [credentials, config].into_iter().find_map(|(file, section)| {
        let text = std::fs::read_to_string(file?).ok()?;
        value(&text, &section, key)
    })
}

fn value(text: &str, section: &str, key: &str) -> Option<String> {
    let mut is_here = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_here = name.trim() == section;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_here)
            && name.trim() == key
        {
            return Some(value.trim().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_in_its_section() {
        let text = "[default]\naws_access_key_id = A\n# note\n[profile work]\nregion=eu-west-1\n";
        assert_eq!(value(text, "default", "aws_access_key_id").as_deref(), Some("A"));
        assert_eq!(value(text, "profile work", "region").as_deref(), Some("eu-west-1"));
        assert_eq!(value(text, "default", "region"), None);
    }
}

//! Model names without what varies: region, date, version.

/// The regions that AWS writes before a model's name.
const REGIONS: [&str; 8] = ["us.", "eu.", "apac.", "jp.", "au.", "ca.", "us-gov.", "global."];

/// `us.anthropic.claude-haiku-4-5-20251001-v1:0` and `claude-haiku-4-5@20251001` without region, version and date.
pub(super) fn plain(name: &str) -> &str {
    let name = REGIONS.iter().find_map(|region| name.strip_prefix(region)).unwrap_or(name);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    without_date(without_version(name))
}

/// Without `-v1` or `-v1:0` at its end.
fn without_version(name: &str) -> &str {
    let Some((rest, version)) = name.rsplit_once("-v") else { return name };
    let is_version = version.split(':').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    // `deepseek-v3` is a name; only AWS writes a version behind a vendor's dot.
    if is_version && name.contains('.') && !rest.is_empty() && rest.contains('.') { rest } else { name }
}

/// Without `-20250929` or `-2025-09-29` at its end.
fn without_date(name: &str) -> &str {
    let shapes = ["-dddddddd", "-dddd-dd-dd"];
    let shape = shapes.iter().find(|shape| name.len() > shape.len() && ends_as(name, shape));
    shape.map_or(name, |shape| &name[..name.len() - shape.len()])
}

fn ends_as(name: &str, shape: &str) -> bool {
    let ends = name.bytes().rev().zip(shape.bytes().rev());
    ends.into_iter().all(|(byte, wanted)| if wanted == b'd' { byte.is_ascii_digit() } else { byte == wanted })
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn region_version_and_date_go() {
        assert_eq!(plain("claude-sonnet-4-5-20250929"), "claude-sonnet-4-5");
        assert_eq!(plain("claude-sonnet-4-5@20250929"), "claude-sonnet-4-5");
        assert_eq!(plain("claude-sonnet-5@default"), "claude-sonnet-5");
        assert_eq!(plain("gpt-4o-2024-11-20"), "gpt-4o");
        assert_eq!(plain("us.anthropic.claude-haiku-4-5-20251001-v1:0"), "anthropic.claude-haiku-4-5");
        assert_eq!(plain("global.anthropic.claude-opus-4-6-v1"), "anthropic.claude-opus-4-6");
    }

    #[test]
    fn what_belongs_to_the_name_stays() {
        for name in
            ["deepseek-v3", "deepseek-ai/DeepSeek-V3.2", "mistral-large-2512", "-20250929", "gpt-oss:20b", "é-v1"]
        {
            assert_eq!(plain(name), name);
        }
    }
}

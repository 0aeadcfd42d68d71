//! Cutting text to a limit without breaking it.

/// The part of `text` within `bytes` bytes that ends at a character, and whether something was left off.
pub(crate) fn clip(text: &str, bytes: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(bytes);
    (&text[..end], end < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(clip("端口", 4), ("端", true));
        assert_eq!(clip("端口", 6), ("端口", false));
        assert_eq!(clip("", 0), ("", false));
    }
}

//! Compaction: what the summarising model is asked, and how its summary is put before the model afterwards.

/// Tools named here are examples; none may be called.
const NO_TOOLS: &str = "\
CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.
- Do NOT use Read, Bash, Grep, Glob, Edit, Write, or ANY other tool.
- You already have all the context you need in the conversation above.
- Tool calls will be REJECTED and will waste your only turn.";

const TASK: &str = "\
Write the summary from which this work goes on: whoever continues sees it in place of the conversation above. Keep what \
is needed to continue, exactly as it was: names, paths, numbers, commands, the person's own words where they decide \
something. Leave out greetings, detours and whatever was overtaken. Invent nothing. Write in the language of the \
conversation.

Use these six headings, in this order; under one that has nothing write \"none\":";

/// The headings of a summary and what belongs under each.
const SECTIONS: [(&str, &str); 6] = [
    ("Primary Request and Intent", "what the person asked for, with every later change and every limit they set"),
    ("Key Technical Concepts", "the techniques, formats and decisions the work stands on, and why they were chosen"),
    (
        "Files and Code Sections",
        "each file read or changed, what matters in it, and the lines that will be needed again",
    ),
    ("Errors and fixes", "what went wrong, what helped, what was tried in vain, and what the person said about it"),
    ("Pending Tasks", "what was asked for and is not done"),
    ("Current Work", "what was being done last, how far it got, and the very next step"),
];

/// What is asked of the model that writes the summary, as the last message of the conversation to be summarised.
/// `instructions` are the person's own, from `/compact`.
pub fn summary_request(instructions: Option<&str>) -> String {
    let sections: String = SECTIONS.iter().map(|(name, content)| format!("\n\n## {name}\n({content})")).collect();
    let wish = match instructions.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => format!("\n\nThe person asks of this summary: {text}"),
        None => String::new(),
    };
    format!("{NO_TOOLS}\n\n{TASK}{sections}{wish}")
}

/// The message that stands for what was summarised.
pub fn summary_message(summary: &str) -> String {
    format!(
        "The earlier part of this conversation was put away to make room. This is its summary; go on from it without \
         speaking of it, and read files again where you need their exact text.\n\n{}",
        summary.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_26_the_request_opens_by_forbidding_tools() {
        assert!(summary_request(None).starts_with("CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n"));
    }

    #[test]
    fn s3_27_a_summary_has_six_sections() {
        let request = summary_request(None);
        let headings: Vec<&str> = request.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(
            headings,
            [
                "Primary Request and Intent",
                "Key Technical Concepts",
                "Files and Code Sections",
                "Errors and fixes",
                "Pending Tasks",
                "Current Work"
            ]
        );
    }

    #[test]
    fn a_person_may_say_what_the_summary_is_to_keep() {
        assert!(summary_request(Some(" keep error texts ")).ends_with("asks of this summary: keep error texts"));
        assert_eq!(summary_request(Some("  ")), summary_request(None));
    }

    #[test]
    fn the_summary_stands_under_a_word_of_what_it_is() {
        let message = summary_message("\n## Current Work\nport 9090\n");
        assert!(message.starts_with("The earlier part of this conversation"));
        assert!(message.ends_with("\n\n## Current Work\nport 9090"));
    }
}

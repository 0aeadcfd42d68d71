//! What a person is asked, and what is made of the answer.

use crate::terminal::{Look, Shade, harmless, one_line};
use crate::view::{diff, indented};
use windlass_kernel::{Answered, CallId, Decision, Question, QuestionKind, Scope};

/// Characters of a command's part.
const PART_CHARS: usize = 120;
/// Lines of a preview.
const PREVIEW_LINES: usize = 60;

/// A question that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub call: CallId,
    pub question: Box<Question>,
}

/// A line typed at a question.
#[derive(Debug, PartialEq)]
pub enum Reading {
    Answer(Box<Answered>),
    /// It is no answer: the choices once more.
    Unclear(String),
}

impl Waiting {
    /// The question as it is put; `call` is the call in a line, `folder` where it would act.
    pub fn shown(&self, call: &str, folder: &str, look: Look) -> String {
        let Question { preview, impact, rule, reason, parts, options, kind, .. } = &*self.question;
        if *kind == QuestionKind::Words {
            let numbered =
                options.iter().enumerate().map(|(at, option)| format!("\n    {}  {}", at + 1, harmless(option)));
            return format!("  {}{}", look.paint(Shade::Bold, &harmless(preview)), numbered.collect::<String>());
        }
        let is_diff = preview.starts_with("--- ");
        let preview = match is_diff {
            true => format!("\n{}", diff(preview, look)),
            false => indented(preview, PREVIEW_LINES),
        };
        let mut text = format!("  {}{preview}", look.paint(Shade::Bold, &format!("may this run? {call}")));
        if !impact.contains(folder) {
            text += &format!("\n  in {}", harmless(folder));
        }
        if !impact.is_empty() {
            text += &format!("\n  {}", within(impact));
        }
        for part in parts.iter().filter(|part| !part.allowed) {
            text += &format!("\n  ? {}: {}", one_line(&part.part, PART_CHARS), within(&part.reason));
        }
        match rule {
            Some(rule) => text += &format!("\n  asked because of the rule {}", within(rule)),
            None if parts.is_empty() && !reason.is_empty() => text += &format!("\n  asked because {}", within(reason)),
            None => {}
        }
        text + &self.offer()
    }

    /// The rules that an answer for longer would add, and what else they would let run.
    fn offer(&self) -> String {
        let offered = self.question.proposed.iter().zip(&self.question.covers).take(self.offered());
        let line = |(rule, covers): (&String, &String)| {
            format!("\n  for longer than once: {}, which covers {}", within(rule), within(covers))
        };
        offered.map(line).collect()
    }

    /// How many of the proposed rules an answer for longer adds.
    fn offered(&self) -> usize {
        if self.question.together { self.question.proposed.len() } else { 1 }
    }

    /// The words behind which the answer is typed.
    pub fn choices(&self) -> String {
        match (self.question.kind, self.question.proposed.first()) {
            (QuestionKind::Words, _) if self.question.options.is_empty() => "  your answer: ".into(),
            (QuestionKind::Words, _) => "  a number, or your answer: ".into(),
            (QuestionKind::Approval, Some(_)) => {
                "  [y]es once, for this [s]ession, this [p]roject, [a]lways, [n]o (and a word to the model): ".into()
            }
            (QuestionKind::Approval, None) => "  [y]es once, [n]o (and a word to the model): ".into(),
        }
    }

    pub fn read(&self, line: &str) -> Reading {
        match self.question.kind {
            QuestionKind::Words => self.read_words(line.trim()),
            QuestionKind::Approval => self.read_approval(line.trim()),
        }
    }

    /// The answer where nobody is there any more.
    pub fn nobody(&self) -> Box<Answered> {
        let note = "nobody is there to be asked any more".to_owned();
        self.answer(Decision::Deny { note }, Scope::Once, None)
    }

    fn read_words(&self, line: &str) -> Reading {
        if line.is_empty() {
            return Reading::Unclear("say something, or press Ctrl-C to interrupt".into());
        }
        let options = &self.question.options;
        let chosen = line.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
        let text = chosen.map_or_else(|| line.to_owned(), String::clone);
        Reading::Answer(self.answer(Decision::Words { text }, Scope::Once, None))
    }

    fn read_approval(&self, line: &str) -> Reading {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rules = &self.question.proposed[..self.question.proposed.len().min(self.offered())];
        let scoped = |scope| match rules.split_first() {
            Some((rule, more)) => {
                let answer = self.answer(Decision::Allow, scope, Some(rule.clone()));
                Reading::Answer(Box::new(Answered { more_rules: more.to_vec(), ..*answer }))
            }
            None => Reading::Unclear("no rule can stand for all that is asked here: answer y or n".into()),
        };
        match word.trim_end_matches([',', '.', ':', ';', '!']).to_ascii_lowercase().as_str() {
            "y" | "yes" if rest.is_empty() => Reading::Answer(self.answer(Decision::Allow, Scope::Once, None)),
            "s" | "session" if rest.is_empty() => scoped(Scope::Session),
            "p" | "project" if rest.is_empty() => scoped(Scope::Project),
            "a" | "always" if rest.is_empty() => scoped(Scope::Always),
            "n" | "no" => {
                let note = rest.trim().to_owned();
                Reading::Answer(self.answer(Decision::Deny { note }, Scope::Once, None))
            }
            _ => Reading::Unclear(format!("`{}` is no answer", harmless(line))),
        }
    }

    fn answer(&self, decision: Decision, scope: Scope, rule: Option<String>) -> Box<Answered> {
        let (call, hash) = (self.call.clone(), self.question.hash.clone());
        let (more_rules, by) = (vec![], "terminal".into());
        Box::new(Answered { call, hash, decision, scope, rule, more_rules, changed: None, by })
    }
}

/// A text within the question. Its further lines stand further in, or a command could write lines of the question's own.
fn within(text: &str) -> String {
    harmless(text).replace('\n', "\n        ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(kind: QuestionKind, proposed: &[&str], options: &[&str]) -> Waiting {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let question = Question {
            hash: "h".into(),
            kind,
            preview: "cargo test".into(),
            impact: "runs a command".into(),
            proposed: owned(proposed),
            options: owned(options),
            ..Question::default()
        };
        Waiting { call: "c1".into(), question: Box::new(question) }
    }

    fn decided(waiting: &Waiting, line: &str) -> Option<(Decision, Scope, Option<String>)> {
        match waiting.read(line) {
            Reading::Answer(answer) => Some((answer.decision, answer.scope, answer.rule)),
            Reading::Unclear(_) => None,
        }
    }

    #[test]
    fn an_approval_is_given_once_for_the_session_the_project_or_always() {
        let asked = waiting(QuestionKind::Approval, &["bash(cargo test:*)"], &[]);
        let rule = Some("bash(cargo test:*)".to_owned());
        assert_eq!(decided(&asked, "y"), Some((Decision::Allow, Scope::Once, None)));
        assert_eq!(decided(&asked, " session"), Some((Decision::Allow, Scope::Session, rule.clone())));
        assert_eq!(decided(&asked, "p"), Some((Decision::Allow, Scope::Project, rule.clone())));
        assert_eq!(decided(&asked, "A"), Some((Decision::Allow, Scope::Always, rule)));
        let note = "use make instead".to_owned();
        let denied = Some((Decision::Deny { note }, Scope::Once, None));
        assert_eq!(decided(&asked, "n use make instead"), denied);
        assert_eq!(decided(&asked, "no, use make instead"), denied);
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let asked = waiting(QuestionKind::Approval, &[], &[]);
        for line in ["", "yup", "yes please change the readme first", "1"] {
            assert_eq!(decided(&asked, line), None, "{line}");
        }
        assert!(matches!(asked.read("a"), Reading::Unclear(why) if why.contains("no rule")));
        assert!(!asked.choices().contains("always"));
    }

    #[test]
    fn a_question_of_words_takes_a_number_or_words() {
        let asked = waiting(QuestionKind::Words, &[], &["red", "blue"]);
        let words = |text: &str| Some((Decision::Words { text: text.into() }, Scope::Once, None));
        assert_eq!(decided(&asked, "2"), words("blue"));
        assert_eq!(decided(&asked, "3"), words("3"));
        assert_eq!(decided(&asked, "green"), words("green"));
        assert_eq!(decided(&asked, " "), None);
    }

    #[test]
    fn the_command_the_folder_and_what_is_at_stake_are_shown() {
        let asked = waiting(QuestionKind::Approval, &["bash(cargo test:*)"], &[]);
        insta::assert_snapshot!(asked.shown("bash cargo test", "/work", Look::default()), @"
          may this run? bash cargo test
            cargo test
          in /work
          runs a command
        ");
        assert_eq!(
            asked.choices(),
            "  [y]es once, for this [s]ession, this [p]roject, [a]lways, [n]o (and a word to the model): "
        );
    }

    #[test]
    fn what_a_command_holds_never_looks_like_a_line_of_the_question() {
        let mut asked = waiting(QuestionKind::Approval, &["read(a\n  ? b)"], &[]);
        asked.question.impact = "runs in /work, because: it must\n  [y]es".into();
        asked.question.covers = vec!["every look at it".into()];
        let (part, reason) = ("cat <<E".into(), "no rule allows `cat <<E\n  runs in /safe\nE`".into());
        asked.question.parts = vec![windlass_kernel::QuestionPart { part, allowed: false, reason }];
        insta::assert_snapshot!(asked.shown("bash cat <<E", "/work", Look::default()), @"
          may this run? bash cat <<E
            cargo test
          runs in /work, because: it must
                  [y]es
          ? cat <<E: no rule allows `cat <<E
                  runs in /safe
                E`
          for longer than once: read(a
                  ? b), which covers every look at it
        ");
    }
}

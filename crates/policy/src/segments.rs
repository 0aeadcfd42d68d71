//! Reading any command crudely, to find what it might run: for denying and asking, never for allowing.
//!
//! The text is cut at everything a shell acts on; quotes and backslashes are removed; wrappers (`sudo`, `env`,
//! `timeout` …) are seen through and commands given as text (`sh -c`, `eval`) are read in turn. Where the cut is in
//! doubt, the text is read once more the other way. So more is found than would run, and little that would run is
//! missed; what hides in variables or in scripts is.

use crate::words::is_hidden;
use std::iter::Peekable;
use std::str::Chars;

/// Commands within commands, counted in levels.
const MAX_DEPTH: u32 = 8;
/// Bytes of commands within commands that are read beyond the command's own length.
const NESTED_BYTES: usize = 64 * 1024;
/// Names of programs followed in one segment; nobody stacks that many wrappers.
const MAX_PROGRAMS: usize = 32;
/// Blocks and `-exec`s looked into in one segment.
const MAX_INNER: usize = 16;

/// The words between two cuts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub words: Vec<String>,
    /// Where in `words` names of programs stand.
    pub programs: Vec<usize>,
    /// What redirections name.
    pub targets: Vec<String>,
}

/// Everything found in a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// One list of segments, in order, for each way to read the text.
    pub passes: Vec<Vec<Segment>>,
    /// It nests deeper than it was followed.
    pub tangled: bool,
}

impl Reading {
    pub(crate) fn of(command: &str) -> Reading {
        let mut reader = Reader { budget: command.len() + NESTED_BYTES, tangled: false };
        let passes = reader.passes(command, 0);
        Reading { passes, tangled: reader.tangled }
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.passes.iter().flatten()
    }
}

impl Segment {
    /// Each place where the name of a program stands, the first word and what wrappers before it would run; and
    /// whether there are more than were followed.
    fn find_programs(&self) -> (Vec<usize>, bool) {
        let words = &self.words;
        let runs_next = |word: &String| matches!(&word[..], "{" | "-exec" | "-execdir" | "-ok" | "-okdir" | "--exec");
        let after = words.iter().enumerate().filter(|(_, word)| runs_next(word)).map(|(at, _)| at + 1);
        let mut todo: Vec<usize> = after.take(MAX_INNER).collect();
        todo.push(0);
        let mut found: Vec<usize> = Vec::new();
        while let Some(start) = todo.pop() {
            let Some(start) = (start..words.len()).find(|at| !is_prefix(&words[*at])) else { continue };
            if found.contains(&start) {
                continue;
            }
            if found.len() == MAX_PROGRAMS {
                return (found, true);
            }
            found.push(start);
            if is_wrapper(base(&words[start])) {
                self.push_wrapped(start, &mut todo);
            }
        }
        (found, false)
    }

    /// The places a wrapper at `start` may run from: the first word that is no option, and the one after it where
    /// the first may be an option's value.
    fn push_wrapped(&self, start: usize, todo: &mut Vec<usize>) {
        let mut may_be_value = matches!(base(&self.words[start]), "chroot" | "flock" | "unshare" | "nsenter");
        for (at, word) in self.words.iter().enumerate().skip(start + 1) {
            if word.starts_with('-') {
                may_be_value = true;
            } else if !is_prefix(word) && !word.starts_with(|sign: char| sign.is_ascii_digit()) {
                todo.push(at);
                if !std::mem::replace(&mut may_be_value, false) || todo.len() > MAX_PROGRAMS {
                    return;
                }
            }
        }
    }

    /// Texts in this segment that would be read as commands themselves.
    fn nested(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for start in &self.programs {
            let arguments = &self.words[start + 1..];
            let first_text = || arguments.iter().find(|word| is_text(word)).cloned();
            match base(&self.words[*start]) {
                "eval" => texts.push(arguments.join(" ")),
                "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish" => {
                    let text = arguments.iter().find(|word| !word.starts_with(['-', '+']));
                    texts.extend(text.into_iter().chain(&self.targets).filter(|text| is_text(text)).cloned());
                }
                "su" | "trap" | "script" => texts.extend(first_text()),
                name if is_wrapper(name) => texts.extend(first_text()),
                _ => {}
            }
        }
        texts
    }
}

/// A program's name without its folder.
pub(crate) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn is_text(word: &str) -> bool {
    word.contains(|sign: char| sign.is_whitespace() || matches!(sign, ';' | '&' | '|' | '$' | '`'))
}

/// Words that may stand before a program's name: keywords and assignments.
fn is_prefix(word: &str) -> bool {
    let keyword =
        matches!(word, "{" | "}" | "!" | "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "coproc");
    let name = word.split_once('=').map_or("", |(name, _)| name.trim_end_matches('+'));
    keyword || name.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_') && !name.contains(['/', '-'])
}

fn is_wrapper(name: &str) -> bool {
    const WRAPPERS: [&str; 28] = [
        "busybox", "builtin", "chroot", "chrt", "command", "doas", "env", "exec", "flock", "ionice", "nice", "nohup",
        "nsenter", "parallel", "pkexec", "prlimit", "runuser", "setsid", "stdbuf", "strace", "sudo", "taskset", "time",
        "timeout", "toybox", "unshare", "watch", "xargs",
    ];
    WRAPPERS.contains(&name)
}

struct Reader {
    budget: usize,
    tangled: bool,
}

impl Reader {
    fn passes(&mut self, text: &str, depth: u32) -> Vec<Vec<Segment>> {
        let (first, doubt) = Scanner::new(text, Quotes::Count).scan();
        let mut passes = vec![first];
        if doubt {
            passes.push(Scanner::new(text, Quotes::Count).reading_comments().scan().0);
            passes.push(Scanner::new(text, Quotes::Ignore).reading_comments().scan().0);
        }
        if text.contains('{') && text.contains(',') {
            let spread: String =
                text.chars().map(|sign| if matches!(sign, '{' | '}' | ',') { ' ' } else { sign }).collect();
            passes.push(Scanner::new(&spread, Quotes::Count).scan().0);
        }
        passes.into_iter().map(|pass| self.with_nested(pass, depth)).collect()
    }

    fn with_nested(&mut self, pass: Vec<Segment>, depth: u32) -> Vec<Segment> {
        let mut all = Vec::with_capacity(pass.len());
        for mut segment in pass {
            let (programs, more) = segment.find_programs();
            segment.programs = programs;
            self.tangled |= more;
            let texts = segment.nested();
            all.push(segment);
            for text in texts {
                if depth == MAX_DEPTH || text.len() > self.budget {
                    self.tangled = true;
                    continue;
                }
                self.budget -= text.len();
                all.extend(self.passes(&text, depth + 1).into_iter().flatten());
            }
        }
        all
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Quotes {
    Count,
    Ignore,
}

struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
    quotes: Quotes,
    skips_comments: bool,
    word: Option<String>,
    is_target: bool,
    segment: Segment,
    done: Vec<Segment>,
    /// What closes each open substitution, and whether it stood in double quotes.
    open: Vec<(char, bool)>,
    in_double: bool,
    doubt: bool,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, quotes: Quotes) -> Scanner<'a> {
        Scanner {
            rest: text.chars().peekable(),
            quotes,
            skips_comments: true,
            word: None,
            is_target: false,
            segment: Segment::default(),
            done: Vec::new(),
            open: Vec::new(),
            in_double: false,
            doubt: false,
        }
    }

    fn reading_comments(mut self) -> Scanner<'a> {
        self.skips_comments = false;
        self
    }

    /// The segments, and whether another reading may find other ones.
    fn scan(mut self) -> (Vec<Segment>, bool) {
        while let Some(sign) = self.rest.next() {
            if self.in_double { self.in_double_quotes(sign) } else { self.outside_quotes(sign) }
        }
        self.doubt |= self.in_double || !self.open.is_empty();
        self.cut();
        (self.done, self.doubt)
    }

    fn outside_quotes(&mut self, sign: char) {
        match sign {
            '\'' | '"' if self.quotes == Quotes::Ignore => {}
            '\'' => self.single_quotes(),
            '"' => {
                self.in_double = true;
                self.push("");
            }
            '\\' => self.backslash(),
            '$' => self.dollar(),
            '`' => self.backtick(),
            '(' => self.enter(')'),
            ')' => self.leave(')'),
            ';' | '&' | '|' | '\n' => self.cut(),
            '<' | '>' => self.redirection(sign),
            ' ' | '\t' | '\r' => self.end_word(),
            '#' if self.word.is_none() => self.comment(),
            sign if is_hidden(sign) => {}
            sign => self.word.get_or_insert_default().push(sign),
        }
    }

    fn in_double_quotes(&mut self, sign: char) {
        match sign {
            '"' => self.in_double = false,
            '\\' => match self.rest.next() {
                Some('\n') => {}
                Some(next @ ('"' | '$' | '\\')) => self.word.get_or_insert_default().push(next),
                next => {
                    self.doubt |= next == Some('`');
                    self.push("\\");
                    self.word.get_or_insert_default().extend(next);
                }
            },
            '$' => self.dollar(),
            '`' => self.backtick(),
            sign => self.word.get_or_insert_default().push(sign),
        }
    }

    fn push(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn single_quotes(&mut self) {
        self.push("");
        loop {
            match self.rest.next() {
                Some('\'') => return,
                Some(sign) => self.word.get_or_insert_default().push(sign),
                None => return self.doubt = true,
            }
        }
    }

    fn backslash(&mut self) {
        if self.quotes == Quotes::Ignore {
            return;
        }
        match self.rest.next() {
            Some('\n') | None => {}
            Some(sign) => {
                self.doubt |= sign == '`';
                self.word.get_or_insert_default().push(sign);
            }
        }
    }

    fn dollar(&mut self) {
        match self.rest.peek() {
            Some('(') => {
                self.rest.next();
                self.enter(')');
            }
            Some('\'') if !self.in_double => self.doubt = true,
            Some('"') if !self.in_double => {}
            _ => self.push("$"),
        }
    }

    fn backtick(&mut self) {
        if self.open.last().is_some_and(|(closer, _)| *closer == '`') { self.leave('`') } else { self.enter('`') }
    }

    fn enter(&mut self, closer: char) {
        self.cut();
        self.open.push((closer, self.in_double));
        self.in_double = false;
    }

    fn leave(&mut self, closer: char) {
        self.cut();
        if self.open.last().is_some_and(|(open, _)| *open == closer)
            && let Some((_, in_double)) = self.open.pop()
        {
            self.in_double = in_double;
        }
    }

    /// `>`, `>>`, `2>&1`, `<<<` …: the next word is a target, not a word of the command.
    fn redirection(&mut self, sign: char) {
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.doubt |= sign == '<' && self.rest.peek() == Some(&'<');
        while self.rest.next_if(|next| matches!(next, '<' | '>' | '&' | '|')).is_some() {}
        self.is_target = true;
    }

    fn comment(&mut self) {
        self.doubt = true;
        if !self.skips_comments {
            return self.push("#");
        }
        while self.rest.next_if(|sign| *sign != '\n').is_some() {}
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let list = if self.is_target { &mut self.segment.targets } else { &mut self.segment.words };
        list.push(word);
        self.is_target = false;
    }

    fn cut(&mut self) {
        self.end_word();
        self.is_target = false;
        let segment = std::mem::take(&mut self.segment);
        if !segment.words.is_empty() || !segment.targets.is_empty() {
            self.done.push(segment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every program with its arguments that is found in `command`, each once.
    fn found(command: &str) -> Vec<String> {
        let mut all = Vec::new();
        for segment in Reading::of(command).segments() {
            for start in &segment.programs {
                let text = segment.words[*start..].join(" ");
                if !all.contains(&text) {
                    all.push(text);
                }
            }
        }
        all
    }

    #[test]
    fn a_hidden_rm_is_found() {
        for command in [
            "rm -rf x",
            "cargo test; rm -rf x",
            "cargo test&&rm -rf x",
            "a | rm -rf x",
            "a\nrm -rf x",
            "r\"m\" -rf x",
            "'rm' -rf x",
            "\\rm -rf x",
            "r\\m -rf x",
            "r\\\nm -rf x",
            "CI=1 A+=2 rm -rf x",
            "$(rm -rf x)",
            "echo \"$(rm -rf x)\"",
            "echo \"a `rm -rf x` b\"",
            "cat <(rm -rf x)",
            "(rm -rf x)",
            "{ rm -rf x; }",
            "if true; then rm -rf x; fi",
            "! rm -rf x",
            ">log 2>&1 rm -rf x",
            "rm -rf x >/dev/null",
            "sudo rm -rf x",
            "sudo -u root -E rm -rf x",
            "timeout -s KILL 5 rm -rf x",
            "nice -n 10 nohup rm -rf x",
            "env -i A=1 rm -rf x",
            "find . -exec rm -rf x \\;",
            "sh -c 'rm -rf x'",
            "bash -lc \"cd y && rm -rf x\"",
            "eval 'rm -rf' x",
            "sh -c \"sh -c 'rm -rf x'\"",
            "env -S 'rm -rf x'",
            "bash <<< 'rm -rf x'",
            "cat <<EOF\nit's\nEOF\nrm -rf x",
            "echo $'it\\'s'; rm -rf x",
            "# it's\nrm -rf x",
            "echo ${#y}; rm -rf x",
            "{rm,-rf,x}",
            "function f { rm -rf x; }; f",
            "echo \"$(date)\"; rm -rf x",
            "echo 'open\nrm -rf x",
            "echo \"`echo \\`rm -rf x\\``\"",
        ] {
            assert!(found(command).iter().any(|text| text.starts_with("rm -rf x")), "{command}: {:?}", found(command));
        }
        assert!(found("/bin/rm -rf x").contains(&"/bin/rm -rf x".to_string()));
    }

    #[test]
    fn a_quoted_rm_is_left_alone() {
        for command in ["echo 'rm -rf x'", "git commit -m \"drop it; rm -rf x\"", "grep 'a|rm -rf x' f", "ls rm -rf x"]
        {
            assert!(!found(command).iter().any(|text| text.starts_with("rm")), "{command}: {:?}", found(command));
        }
    }

    #[test]
    fn nesting_is_followed_to_a_limit() {
        assert!(!Reading::of(&"eval ".repeat(5)).tangled);
        assert!(Reading::of(&"eval ".repeat(50)).tangled);
        assert!(!Reading::of(&"sudo -a ".repeat(5)).tangled);
        assert!(Reading::of(&"sudo -a ".repeat(50_000)).tangled);
        assert!(!Reading::of(&format!("cat > x <<EOF\n{}EOF", "{ \"a\": { } }, ".repeat(10_000))).tangled);
    }
}

//! The small languages of sed and awk, read far enough to see whether a script only edits text.

/// What a sed script does beside editing text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SedDeed {
    Reads(String),
    Writes(String),
    /// It runs commands, or holds something that is not known here.
    Dares(String),
}

/// What `script` does, in its order; nothing if it only edits text.
pub(super) fn sed(script: &str) -> Vec<SedDeed> {
    let mut scan = Sed { rest: script.chars().collect(), at: 0, deeds: Vec::new() };
    while scan.at < scan.rest.len() {
        if let Err(problem) = scan.command() {
            scan.deeds.push(SedDeed::Dares(problem));
            break;
        }
    }
    scan.deeds
}

struct Sed {
    rest: Vec<char>,
    at: usize,
    deeds: Vec<SedDeed>,
}

impl Sed {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let sign = self.peek()?;
        self.at += 1;
        Some(sign)
    }

    fn skip(&mut self, signs: &str) {
        while self.peek().is_some_and(|sign| signs.contains(sign)) {
            self.at += 1;
        }
    }

    fn command(&mut self) -> Result<(), String> {
        self.skip(" \t\n;");
        self.addresses()?;
        self.skip(" \t!");
        let Some(name) = self.next() else { return Ok(()) };
        match name {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => Ok(()),
            'q' | 'Q' | 'l' | 'L' => {
                self.skip(" \t0123456789");
                Ok(())
            }
            ':' | 'b' | 't' | 'T' => {
                self.skip(" \t");
                self.until("\n; \t}");
                Ok(())
            }
            '#' => {
                self.until("\n");
                Ok(())
            }
            'a' | 'i' | 'c' => {
                self.text_lines();
                Ok(())
            }
            'r' | 'R' => {
                let file = self.file();
                self.deeds.push(SedDeed::Reads(file));
                Ok(())
            }
            'w' | 'W' => {
                let file = self.file();
                self.deeds.push(SedDeed::Writes(file));
                Ok(())
            }
            'y' => self.parts().map(drop),
            's' => self.substitute(),
            'e' => Err("its script's `e` runs a command".into()),
            other => Err(format!("its script holds `{other}`, which is not known here")),
        }
    }

    fn until(&mut self, ends: &str) -> String {
        let mut text = String::new();
        while let Some(sign) = self.peek().filter(|sign| !ends.contains(*sign)) {
            text.push(sign);
            self.at += 1;
        }
        text
    }

    /// A file's name goes to the end of the line.
    fn file(&mut self) -> String {
        self.skip(" \t");
        self.until("\n")
    }

    /// Text goes to the first line end without a backslash before it.
    fn text_lines(&mut self) {
        while let Some(sign) = self.next() {
            match sign {
                '\\' => drop(self.next()),
                '\n' => return,
                _ => {}
            }
        }
    }

    fn addresses(&mut self) -> Result<(), String> {
        loop {
            match self.peek() {
                Some('/') => {
                    self.at += 1;
                    self.regex('/')?;
                    self.skip("IM");
                }
                Some('\\') => {
                    self.at += 1;
                    let mark = self.mark()?;
                    self.regex(mark)?;
                    self.skip("IM");
                }
                Some('0'..='9' | '$' | ',' | '~' | '+' | ' ' | '\t') => self.at += 1,
                _ => return Ok(()),
            }
        }
    }

    fn mark(&mut self) -> Result<char, String> {
        self.next().filter(|mark| !"\n\\ ;".contains(*mark)).ok_or_else(|| "its script breaks off".to_string())
    }

    /// Goes behind the end of a regular expression. Programs differ on whether `[…]` hides the mark, so a script that
    /// depends on it is not known.
    fn regex(&mut self, mark: char) -> Result<(), String> {
        let mut in_brackets = false;
        while let Some(sign) = self.next() {
            match sign {
                '\\' => drop(self.next()),
                sign if sign == mark && in_brackets => return Err("its script ends a pattern within `[…]`".into()),
                sign if sign == mark => return Ok(()),
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                '\n' => return Err("its script has a line end in a pattern".into()),
                _ => {}
            }
        }
        Err("its script breaks off".into())
    }

    fn parts(&mut self) -> Result<(), String> {
        let mark = self.mark()?;
        self.regex(mark)?;
        loop {
            match self.next() {
                Some('\\') => drop(self.next()),
                Some(sign) if sign == mark => return Ok(()),
                Some(_) => {}
                None => return Err("its script breaks off".into()),
            }
        }
    }

    fn substitute(&mut self) -> Result<(), String> {
        self.parts()?;
        loop {
            match self.peek() {
                Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => self.at += 1,
                Some('e') => return Err("its script's `s///e` runs what it makes".into()),
                Some('w') => {
                    self.at += 1;
                    let file = self.file();
                    self.deeds.push(SedDeed::Writes(file));
                    return Ok(());
                }
                None | Some('\n' | ';' | '}' | '#' | ' ' | '\t') => return Ok(()),
                Some(other) => return Err(format!("its script has `{other}` after `s///`, which is not known here")),
            }
        }
    }
}

/// What an awk program may do beside printing to its output; none if nothing.
pub(super) fn awk(program: &str) -> Option<&'static str> {
    if program.contains("system") {
        return Some("its program may call `system`");
    }
    if program.contains("getline") {
        return Some("its program may read commands or files by `getline`");
    }
    if program.contains('@') && (has_directive(program) || program.contains("@/")) {
        return Some("its program may load others or call what it computes");
    }
    if program.contains("SYMTAB") || program.contains("FUNCTAB") || program.contains("ENVIRON") {
        return Some("its program looks into the environment");
    }
    if program.contains("ARGV") || program.contains("ARGC") || program.contains("/inet") {
        return Some("its program may open files its words do not show");
    }
    let first = program.find("print")?;
    // Where a slash or a comment could hide a quote, text and pattern cannot be told apart here.
    let is_plain = !program.contains(['/', '#', '`']);
    let redirects = if is_plain { print_redirects(&program[first..]) } else { has_redirection(&program[first..]) };
    redirects.then_some("its program may print to a file or a command")
}

/// `@load`, `@include`, or a call by name.
fn has_directive(program: &str) -> bool {
    program.split('@').skip(1).any(|rest| {
        let word = rest.trim_start();
        word.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_') && !rest.contains("\"")
            || word.starts_with("load")
            || word.starts_with("include")
            || word.starts_with("namespace")
            || word.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_')).nth(1).is_some()
                && word[word.find(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_')).unwrap_or(0)..]
                    .trim_start()
                    .starts_with('(')
    })
}

fn has_redirection(program: &str) -> bool {
    program.contains('>') || program.replace("||", "").contains('|')
}

/// Whether a statement with `print` holds `>` or `|` outside of quotes and brackets.
fn print_redirects(program: &str) -> bool {
    let mut signs = program.chars().peekable();
    let (mut depth, mut in_print, mut word) = (0i32, false, String::new());
    while let Some(sign) = signs.next() {
        if sign.is_ascii_alphanumeric() || sign == '_' {
            word.push(sign);
            in_print |= word == "print" || word == "printf";
            continue;
        }
        word.clear();
        match sign {
            '"' => skip_string(&mut signs),
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ';' | '}' | '{' | '\n' => (depth, in_print) = (0, false),
            '|' if signs.next_if_eq(&'|').is_some() => {}
            '>' | '|' if in_print && depth <= 0 => return true,
            _ => {}
        }
    }
    false
}

fn skip_string(signs: &mut std::iter::Peekable<std::str::Chars>) {
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => drop(signs.next()),
            '"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts_that_only_edit_text_are_known() {
        for script in [
            "s/a/b/g",
            "1,10p",
            "$d",
            "/x/,/y/d",
            "s|/a|/b|gp",
            "s#x#y#2",
            "/x/!d",
            "1~2p",
            "y/abc/def/",
            "$!N;P;D",
            ":a;N;$!ba;s/\\n/ /g",
            "1i\\ hello w x",
            "/a/{s/b/c/;p}",
            "s/[a-z]*/X/",
            "\\,x,d",
            "2q",
            "s/\\/w/x/",
            "/start/,+3p",
            "/w file/d",
            "s/a/w x/",
            "a\\\nw x",
            "-n",
        ] {
            let deeds = sed(script);
            assert_eq!(deeds.is_empty(), script != "-n", "{script}: {deeds:?}");
        }
    }

    #[test]
    fn sed_scripts_that_do_more_are_seen() {
        for script in [
            "w out",
            "1w out",
            "s/a/b/w out",
            "s/a/b/gw out",
            "e",
            "1e id",
            "s/a/id/e",
            "s/a/id/ge",
            "s,a,id,e",
            "r x",
            "R x",
            "W x",
            "/x/w out",
            "/x/{p;w out",
            "s/a/b/;w out",
            ":a;w out",
            "b;w out",
            "$!{w out",
            "\\,x,w out",
            "#c\nw out",
            "a\\\nx\nw out",
            "ba}w out",
            "v 4.2;e",
            "s/[/]e;s/x/e",
            "p;e",
            "sxaxidxe",
            "y/a/b/;w o",
        ] {
            assert!(!sed(script).is_empty(), "{script}");
        }
    }

    #[test]
    fn awk_programs_are_told_apart() {
        for program in [
            "{print $1}",
            "$3 > 100",
            "$3 > 100 {print $1}",
            "/a|b/ {print}",
            "NR==1 || NR==3 {print}",
            "END{print s}",
            "{print ($1>5)?\"a\":\"b\"}",
            "{print \"a|b > c\"}",
            "{print $1; if ($2>3) n++}",
            "{s+=$1/1024} END{print s}",
            "BEGIN{FS=\":\"}{printf \"%s\\n\", $1}",
            "{print $1 \"@x.y\"}",
            "!seen[$0]++",
        ] {
            assert_eq!(awk(program), None, "{program}");
        }
        for program in [
            "BEGIN{system(\"id\")}",
            "{print > \"f\"}",
            "{print $1 >> f}",
            "{print | \"sh\"}",
            "{printf \"x\" | c}",
            "{\"id\" | getline}",
            "BEGIN{while((getline l < \"/etc/passwd\")>0)print l}",
            "@load \"x\"",
            "@include \"x\"",
            "{print /\"/ > \"file\" }",
            "{f=\"system\"; @f(\"id\")}",
            "{print ENVIRON[\"X\"]}",
            "{print(1)>\"x\"}",
            "{print $1, $2 |& \"x\"}",
            "BEGIN{f=\"x\"; @f()}",
            "{print # \"\n > \"f\"}",
        ] {
            assert!(awk(program).is_some(), "{program}");
        }
    }
}

//! Secrets found in text and replaced by marks: those that the process knows by their value, in the forms they are
//! written in, and those that can be told by what they look like.

use crate::secret_forms::{Known, forms, is_like_a_secret};
use crate::secret_rules::{Found, RULES, Rule, own};
use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes of a known secret's form that are looked for first; no form is shorter.
pub(crate) const HEAD_BYTES: usize = 8;
/// Bytes that a stream is held back at most until a secret in it can be told.
const HELD_BYTES: usize = 32 << 10;
/// Secrets learned while the process runs; the oldest is forgotten for a further one.
const LEARNED: usize = 64;

/// How far the look of a text counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patterns {
    /// Only known values are secrets.
    Off,
    /// What tools, providers and other programs say is looked at, what persons and models say is not.
    #[default]
    Outputs,
    Everywhere,
}

/// Whose words a text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A person's or a model's.
    Speech,
    /// Those of a tool, a provider, another program.
    Output,
    /// Both, put before a person to be allowed: nothing is hidden that a command could hide in.
    Question,
}

/// What is a secret, as far as it can be said beforehand.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    pub patterns: Patterns,
    /// Beginnings of tokens of one's own.
    pub prefixes: Vec<String>,
    /// Secrets by name: the environment variable each is in, say.
    pub values: Vec<(String, String)>,
}

/// What must not be stored, told or printed. Shared by all sessions of a process, and taught further values meanwhile.
#[derive(Debug)]
pub struct Secrets {
    wish: Wish,
    learned: RwLock<Learned>,
}

#[derive(Debug)]
struct Learned {
    values: Vec<(String, String)>,
    matcher: Arc<Matcher>,
}

#[derive(Debug)]
struct Matcher {
    known: Vec<Known>,
    rules: Vec<Rule>,
    speech: Needles,
    output: Needles,
}

/// What is looked for first, before it is looked at closely.
#[derive(Debug)]
struct Needles {
    all: Vec<Vec<u8>>,
    longest: usize,
    search: Option<AhoCorasick>,
    /// Whether the rules count.
    ruled: bool,
}

/// A place in a text and the name of what stands there.
struct Hit<'a> {
    from: usize,
    to: usize,
    name: &'a str,
}

impl Default for Secrets {
    fn default() -> Secrets {
        Secrets::new(Wish::default())
    }
}

impl Secrets {
    pub fn new(wish: Wish) -> Secrets {
        let matcher = Arc::new(Matcher::new(&wish, &[]));
        Secrets { wish, learned: RwLock::new(Learned { values: vec![], matcher }) }
    }

    /// From here on `value` is a secret, unless it is too short or too plain to be told from ordinary text.
    pub fn learn(&self, name: &str, value: &str) {
        let is_known = |values: &[(String, String)]| values.iter().any(|(_, known)| known == value);
        let heard =
            |learned: &RwLock<Learned>| is_known(&learned.read().unwrap_or_else(PoisonError::into_inner).values);
        if !is_like_a_secret(value) || is_known(&self.wish.values) || heard(&self.learned) {
            return;
        }
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        if is_known(&learned.values) {
            return;
        }
        if learned.values.len() == LEARNED {
            learned.values.remove(0);
        }
        learned.values.push((name.to_owned(), value.to_owned()));
        learned.matcher = Arc::new(Matcher::new(&self.wish, &learned.values));
    }

    /// `text` with a mark in the place of each secret.
    pub fn redact<'a>(&self, text: &'a str, source: Source) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes(), source) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(self::text(bytes)),
        }
    }

    pub fn redact_bytes<'a>(&self, text: &'a [u8], source: Source) -> Cow<'a, [u8]> {
        let matcher = self.matcher();
        let (hits, _) = matcher.hits(text, source, None, true);
        if hits.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(marked(text, &hits)) }
    }

    /// The same of every text in a string of one's own.
    pub fn redact_string(&self, text: &mut String, source: Source) {
        if let Cow::Owned(clean) = self.redact(text, source) {
            *text = clean;
        }
    }

    /// The same of every text in a JSON value, its objects' keys among them.
    pub fn redact_value(&self, value: &mut Value, source: Source) {
        match value {
            Value::String(text) => self.redact_string(text, source),
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact_value(value, source)),
            Value::Object(fields) => {
                if fields.keys().any(|key| matches!(self.redact(key, source), Cow::Owned(_))) {
                    let kept = std::mem::take(fields).into_iter();
                    *fields = kept.map(|(key, value)| (self.redact(&key, source).into_owned(), value)).collect();
                }
                fields.values_mut().for_each(|value| self.redact_value(value, source));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The marks that stand for the secrets in `text`.
    pub(crate) fn marks(&self, text: &[u8]) -> BTreeSet<String> {
        let matcher = self.matcher();
        matcher.hits(text, Source::Output, None, true).0.iter().map(|hit| mark(hit.name)).collect()
    }

    fn matcher(&self) -> Arc<Matcher> {
        self.learned.read().unwrap_or_else(PoisonError::into_inner).matcher.clone()
    }
}

impl Matcher {
    fn new(wish: &Wish, learned: &[(String, String)]) -> Matcher {
        let values = wish.values.iter().chain(learned);
        let known: Vec<Known> = values.flat_map(|(name, value)| forms(name, value)).collect();
        let own = wish.prefixes.iter().filter(|prefix| !prefix.is_empty()).map(|prefix| own(prefix));
        let rules: Vec<Rule> = RULES.into_iter().chain(own).collect();
        let speech = Needles::new(&known, if wish.patterns == Patterns::Everywhere { &rules } else { &[] });
        let output = Needles::new(&known, if wish.patterns == Patterns::Off { &[] } else { &rules });
        Matcher { known, rules, speech, output }
    }

    /// The secrets in `text`, and from where on it can't be told yet: its end, if it is whole (`ended`).
    fn hits(&self, text: &[u8], source: Source, before: Option<u8>, ended: bool) -> (Vec<Hit<'_>>, usize) {
        let needles = if source == Source::Speech { &self.speech } else { &self.output };
        let mut hits = vec![];
        let Some(search) = &needles.search else { return (hits, text.len()) };
        let mut from = 0;
        while let Some(found) = search.find(aho_corasick::Input::new(text).range(from..)) {
            let at = found.start();
            match self.look(needles.ruled, text, at, source, before, ended) {
                (Found::Secret(start, end), name) => {
                    hits.push(Hit { from: start, to: end, name });
                    from = end;
                }
                (Found::Open, _) => return (hits, at),
                (Found::No, _) => from = at + 1,
            }
        }
        let told = if ended { text.len() } else { needles.told(text, from) };
        (hits, told)
    }

    /// Whether nothing in a piece of a text is a secret, nor the beginning of one.
    fn lets_through(&self, piece: &str, source: Source, before: Option<u8>) -> bool {
        let (hits, told) = self.hits(piece.as_bytes(), source, before, false);
        hits.is_empty() && told == piece.len()
    }

    fn look(
        &self,
        ruled: bool,
        text: &[u8],
        at: usize,
        source: Source,
        before: Option<u8>,
        ended: bool,
    ) -> (Found, &str) {
        let rest = &text[at..];
        let whole = self.known.iter().filter(|known| rest.starts_with(&known.form));
        if let Some(known) = whole.max_by_key(|known| known.form.len()) {
            return (Found::Secret(at, at + known.form.len()), &known.name);
        }
        let mut open = !ended && self.known.iter().any(|known| known.form.starts_with(rest));
        let rules = self.rules.iter().filter(|rule| ruled && rest.starts_with(rule.prefix.as_bytes()));
        for rule in rules.filter(|rule| source != Source::Question || !rule.spans_lines()) {
            match rule.look(text, at, before, ended) {
                Found::No => {}
                Found::Open => open = true,
                secret => return (secret, rule.name),
            }
        }
        (if open { Found::Open } else { Found::No }, "")
    }
}

impl Needles {
    fn new(known: &[Known], rules: &[Rule]) -> Needles {
        let heads = known.iter().map(|known| known.form[..HEAD_BYTES].to_vec());
        let mut all: Vec<Vec<u8>> = heads.chain(rules.iter().map(|rule| rule.prefix.as_bytes().to_vec())).collect();
        all.sort();
        all.dedup();
        let build = || AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(&all);
        // Building fails only beyond billions of states.
        let search = if all.is_empty() { None } else { build().ok() };
        let longest = all.iter().map(Vec::len).max().unwrap_or_default();
        Needles { all, longest, search, ruled: !rules.is_empty() }
    }

    /// From where on `text` may end in the beginning of a needle.
    fn told(&self, text: &[u8], from: usize) -> usize {
        let first = from.max((text.len() + 1).saturating_sub(self.longest));
        let begins = |at: &usize| self.all.iter().any(|needle| needle.starts_with(&text[*at..]));
        (first..text.len()).find(begins).unwrap_or(text.len())
    }
}

fn mark(name: &str) -> String {
    format!("[redacted: {name}]")
}

fn marked(text: &[u8], hits: &[Hit<'_>]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(text.len());
    let mut from = 0;
    for hit in hits {
        clean.extend_from_slice(&text[from..hit.from]);
        clean.extend_from_slice(mark(hit.name).as_bytes());
        from = hit.to;
    }
    clean.extend_from_slice(&text[from..]);
    clean
}

/// A text that comes in pieces: what could be the beginning of a secret is held back until it can be told.
#[derive(Clone, Debug, Default)]
pub struct SecretStream {
    held: Vec<u8>,
    /// The last byte that was let through.
    before: Option<u8>,
}

impl SecretStream {
    /// Takes `piece` in and gives what can be shown by now.
    pub fn push(&mut self, secrets: &Secrets, piece: &[u8], source: Source) -> Vec<u8> {
        let matcher = secrets.matcher();
        let held = std::mem::take(&mut self.held);
        let whole = if held.is_empty() { Cow::Borrowed(piece) } else { Cow::Owned([&held, piece].concat()) };
        let (mut hits, mut told) = matcher.hits(&whole, source, self.before, false);
        if whole.len() - told > HELD_BYTES {
            (hits, told) = matcher.hits(&whole, source, self.before, true);
        }
        self.held = whole[told..].to_vec();
        self.before = told.checked_sub(1).map(|last| whole[last]).or(self.before);
        marked(&whole[..told], &hits)
    }

    /// The same for text. What is held back begins where a secret would, between two characters.
    pub fn push_text(&mut self, secrets: &Secrets, piece: String, source: Source) -> String {
        // Most pieces are let through as they are.
        if self.held.is_empty() && secrets.matcher().lets_through(&piece, source, self.before) {
            self.before = piece.bytes().last().or(self.before);
            return piece;
        }
        text(self.push(secrets, piece.as_bytes(), source))
    }

    pub fn finish_text(&mut self, secrets: &Secrets, source: Source) -> String {
        text(self.finish(secrets, source))
    }

    /// What was held back of a text that ends here. The beginning of a known secret is as much a secret as the whole.
    pub fn finish(&mut self, secrets: &Secrets, source: Source) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let matcher = secrets.matcher();
        let (mut hits, _) = matcher.hits(&held, source, self.before, true);
        let from = hits.last().map_or(0, |hit| hit.to);
        let begun = matcher.known.iter().find_map(|known| {
            let begins = |at: &usize| known.form.starts_with(&held[*at..]);
            let at = (from..held.len().saturating_sub(HEAD_BYTES - 1)).find(begins)?;
            Some(Hit { from: at, to: held.len(), name: &known.name })
        });
        hits.extend(begun);
        marked(&held, &hits)
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEY: &str = "Xy7/provider+key-0042";

    fn secrets() -> Secrets {
        Secrets::new(Wish {
            values: vec![("MODEL_KEY".into(), KEY.into()), ("MODE".into(), "production".into())],
            prefixes: vec!["acme_".into()],
            ..Wish::default()
        })
    }

    fn redact(text: &str) -> String {
        secrets().redact(text, Source::Output).into_owned()
    }

    /// So that no file of this project looks as if it held one.
    fn tail(length: usize) -> String {
        "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cF".chars().cycle().take(length).collect()
    }

    #[test]
    fn kinds_are_told_by_what_they_look_like() {
        let upper: String = tail(64).to_uppercase();
        let table = [
            (format!("sk-ant-api03-{}", tail(40)), "anthropic key"),
            (format!("sk-proj-{}", tail(40)), "openai key"),
            (format!("sk-{}", tail(48)), "api key"),
            (format!("sk-or-v1-{}", tail(64)), "openrouter key"),
            (format!("ghp_{}", tail(36)), "github token"),
            (format!("gho_{}", tail(36)), "github token"),
            (format!("ghs_{}", tail(36)), "github token"),
            (format!("github_pat_{}_{}", tail(22), tail(59)), "github token"),
            (format!("glpat-{}", tail(20)), "gitlab token"),
            (format!("xoxb-123456789012-{}", tail(24)), "slack token"),
            (format!("xoxp-123456789012-{}", tail(24)), "slack token"),
            (format!("AKIA{}", &upper[..16]), "aws key id"),
            (format!("ASIA{}", &upper[..16]), "aws key id"),
            (format!("AIza{}", tail(35)), "google key"),
            (format!("GOCSPX-{}", tail(28)), "google secret"),
            (format!("ya29.{}", tail(60)), "google token"),
            (format!("npm_{}", tail(36)), "npm token"),
            (format!("pypi-AgEIcHlwaS5vcmc{}", tail(80)), "pypi token"),
            (format!("hf_{}", tail(34)), "hugging face token"),
            (format!("SG.{}.{}", tail(22), tail(43)), "sendgrid key"),
            (format!("sk_live_{}", tail(24)), "stripe key"),
            (format!("hvs.{}", tail(30)), "vault token"),
            (format!("eyJ{}.eyJ{}.{}", tail(20), tail(30), tail(40)), "json web token"),
            (format!("acme_{}", tail(20)), "token"),
        ];
        for (secret, kind) in &table {
            for (before, after) in [("", ""), ("token=\"", "\"\n"), ("a ", " b"), ("(", "),"), ("\\n", "\\n")] {
                let told = redact(&format!("{before}{secret}{after}"));
                assert_eq!(told, format!("{before}[redacted: {kind}]{after}"), "{secret}");
                assert_eq!(redact(&told), told, "a mark is no secret");
            }
        }
    }

    #[test]
    fn what_stands_behind_a_name_goes_and_the_name_stays() {
        let table = [
            (format!("Authorization: Bearer {}", tail(30)), "Authorization: Bearer [redacted: bearer token]"),
            (format!("authorization: Basic {}==", tail(22)), "authorization: Basic [redacted: password]"),
            (format!("aws_secret_access_key = {}", tail(40)), "aws_secret_access_key = [redacted: aws secret key]"),
            (format!("\"SecretAccessKey\": \"{}\"", tail(40)), "\"SecretAccessKey\": \"[redacted: aws secret key]\""),
            (format!("x;AccountKey={}==;y", tail(86)), "x;AccountKey=[redacted: azure key];y"),
            ("postgres://me:pa55-w0rd@db:5432/x".into(), "postgres://me:[redacted: password]@db:5432/x"),
            ("redis://:hunter2@cache".into(), "redis://:[redacted: password]@cache"),
            (
                format!("https://hooks.slack.com/services/T0000000/B0000000/{}", tail(24)),
                "https://hooks.slack.com/services/[redacted: slack webhook]",
            ),
        ];
        for (text, told) in table {
            assert_eq!(redact(&text), told);
        }
    }

    #[test]
    fn a_private_key_goes_whole_with_or_without_its_end() {
        let lines = format!("{}\n{}\n", tail(64), tail(64));
        let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{lines}-----END RSA PRIVATE KEY-----");
        assert_eq!(redact(&format!("a\n{key}\nb")), "a\n[redacted: private key]\nb");
        let numbered: String = key.lines().enumerate().map(|(n, line)| format!("{n}\t{line}\n")).collect();
        assert_eq!(redact(&numbered), "0\t[redacted: private key]\n");
        let json = format!("{{\"private_key\": \"{}\\n\", \"x\": 1}}", key.replace('\n', "\\n"));
        assert_eq!(redact(&json), "{\"private_key\": \"[redacted: private key]\\n\", \"x\": 1}");
        assert_eq!(redact(&format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}")), "[redacted: private key]");
        let public = format!("-----BEGIN PUBLIC KEY-----\n{lines}-----END PUBLIC KEY-----");
        assert_eq!(redact(&public), public);
    }

    #[test]
    fn ordinary_text_is_left_alone_and_not_copied() {
        let texts = [
            "a task-force of sk-8 boards, ask-me-anything",
            "ghp_ and sk-ant- are beginnings; ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx is an example",
            "Bearer tokens and bearer authentication; Authorization: Bearer <token>",
            "https://example.org:8080/a@b?x=1 http://user@host/ git@github.com:a/b.git",
            "postgres://me:${PASSWORD}@db, redis://:%s@cache, http://u:[redacted: password]@h",
            "production, 3.141592653589793, 0123456789abcdef0123456789abcdef01234567",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "018f3b1c-7b1e-7c3a-9d4e-2f6a8b0c1d2e toolu_01A09q90qw90lq917835lq9 call_abcDEF123",
            "eyJ is how JSON begins in base 64; eyJhbGciOiJIUzI1NiJ9 alone is a head",
            "-----BEGIN PRIVATE KEY----- and what follows is prose; it has sentences.",
            "AKIAEXAMPLE AIzaShort npm_config_registry hf_hub_download SG.x",
            "aws_secret_access_key is read from the environment",
        ];
        for text in texts {
            assert!(matches!(secrets().redact(text, Source::Output), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn a_known_value_is_found_however_it_is_written() {
        let mark = "[redacted: MODEL_KEY]";
        assert_eq!(redact(&format!("x{KEY}y")), format!("x{mark}y"));
        assert_eq!(redact("a=Xy7%2Fprovider%2Bkey-0042&b"), format!("a={mark}&b"));
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(redact(&hex), mark);
        // In base 64 what stands before it shifts it.
        for before in ["", "u:", "us", "user:", "somebody:"] {
            use base64::Engine;
            let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{before}{KEY} and more"));
            let told = redact(&encoded);
            assert!(told.contains(mark), "{before:?}: {encoded} → {told}");
        }
        assert_eq!(redact("production"), "production", "too plain to be told from a word");
    }

    #[test]
    fn what_persons_and_models_say_loses_known_values_only_unless_asked_for() {
        let text = format!("{KEY} ghp_{}", tail(36));
        let told = secrets().redact(&text, Source::Speech).into_owned();
        assert_eq!(told, format!("[redacted: MODEL_KEY] ghp_{}", tail(36)));
        let everywhere = Secrets::new(Wish { patterns: Patterns::Everywhere, ..Wish::default() });
        assert_eq!(everywhere.redact(&format!("ghp_{}", tail(36)), Source::Speech), "[redacted: github token]");
        let off = Secrets::new(Wish { patterns: Patterns::Off, ..Wish::default() });
        assert!(matches!(off.redact(&text, Source::Output), Cow::Borrowed(_)));
    }

    #[test]
    fn a_value_learned_later_is_a_secret_from_then_on() {
        let secrets = Secrets::default();
        assert_eq!(secrets.redact("tok-A1b2C3d4", Source::Speech), "tok-A1b2C3d4");
        secrets.learn("vertex key", "tok-A1b2C3d4");
        secrets.learn("plain", "not-needed");
        assert_eq!(secrets.redact("tok-A1b2C3d4 not-needed", Source::Speech), "[redacted: vertex key] not-needed");
        (0..100).for_each(|n| secrets.learn("many", &format!("tok-A1b2C3d4-{n:04}")));
        assert!(secrets.learned.read().unwrap().values.len() <= LEARNED);
    }

    #[test]
    fn json_loses_secrets_in_texts_and_keys() {
        let token = format!("ghp_{}", tail(36));
        let mut value = json!({"a": [token, 1, null], token.as_str(): {"b": format!("x {token}")}});
        secrets().redact_value(&mut value, Source::Output);
        let mark = "[redacted: github token]";
        assert_eq!(value, json!({"a": [mark, 1, null], mark: {"b": format!("x {mark}")}}));
    }

    /// Every way to cut a text in two, and into single bytes, tells the same as the whole.
    #[test]
    fn a_secret_split_over_pieces_is_not_told() {
        let key = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", tail(64));
        let text = format!("ä {KEY} x ghp_{} https://me:pa55w0rd@h/ Bearer {} sk {key}z", tail(36), tail(30));
        let (secrets, whole) = (secrets(), redact(&text));
        let cuts: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for cut in &cuts {
            let mut stream = SecretStream::default();
            let (first, second) = text.split_at(*cut);
            let mut told = stream.push_text(&secrets, first.into(), Source::Output);
            assert!(whole.starts_with(&told), "{told}");
            told += &stream.push_text(&secrets, second.into(), Source::Output);
            told += &stream.finish_text(&secrets, Source::Output);
            assert_eq!(told, whole, "cut at {cut}");
        }
        let mut stream = SecretStream::default();
        let mut told: String = text.chars().map(|c| stream.push_text(&secrets, c.into(), Source::Output)).collect();
        told += &stream.finish_text(&secrets, Source::Output);
        assert_eq!(told, whole);
    }

    #[test]
    fn a_stream_that_breaks_off_in_a_known_secret_does_not_tell_its_beginning() {
        let secrets = secrets();
        let mut stream = SecretStream::default();
        let told = stream.push_text(&secrets, format!("it is {}", &KEY[..12]), Source::Speech);
        assert_eq!(told, "it is ");
        assert_eq!(stream.finish_text(&secrets, Source::Speech), "[redacted: MODEL_KEY]");
        assert_eq!(stream.push_text(&secrets, "Xy".into(), Source::Speech), "");
        assert_eq!(stream.finish_text(&secrets, Source::Speech), "Xy", "two letters are no secret");
    }

    #[test]
    fn nothing_is_held_back_without_bound() {
        let (secrets, mut stream) = (secrets(), SecretStream::default());
        let told: usize = (0..1_000)
            .map(|n| stream.push(&secrets, format!("-----BEGIN PRIVATE KEY-----{n}").as_bytes(), Source::Output).len())
            .sum();
        assert!(stream.held.len() <= HELD_BYTES && told > 0, "{told}");
    }
}

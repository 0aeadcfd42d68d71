//! What secrets look like that nobody told of: by a beginning that only they have, and by what follows it.

use std::borrow::Cow;

/// Bytes a token may have behind its beginning.
const TOKEN_BYTES: usize = 4_096;
/// Bytes a private key may have between its first line and its last.
const KEY_BYTES: usize = 16 << 10;
/// Bytes of a user's name or password in an address.
const USER_BYTES: usize = 256;
/// Different characters a secret has at least: `xxxxxxxx` stands for one and is none.
const VARIETY: u32 = 5;

/// A kind of secret.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub prefix: Cow<'static, str>,
    /// What stands in its place: `[redacted: NAME]`.
    pub name: &'static str,
    shape: Shape,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The beginning belongs to the secret; `apart`: it is a word's beginning, too, and so must not follow a letter.
    Token {
        chars: Chars,
        least: usize,
        most: usize,
        apart: bool,
    },
    /// The beginning stays, and `=` or `:` may come between it and the secret.
    Behind {
        chars: Chars,
        least: usize,
        assigned: bool,
    },
    Jwt,
    PrivateKey,
    /// `://USER:PASSWORD@`; only the password goes.
    Address,
}

#[derive(Clone, Copy, Debug)]
enum Chars {
    Upper,
    Word,
    Dashed,
    Dotted,
    Base64,
    /// All that a header's token may be made of.
    Header,
}

impl Chars {
    fn has(self, byte: u8) -> bool {
        match self {
            Chars::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Chars::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Chars::Dashed => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Chars::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Chars::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Chars::Header => Chars::Base64.has(byte) || Chars::Dotted.has(byte) || byte == b'~',
        }
    }
}

/// What stands at a place where a secret may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    No,
    /// From the first to before the second.
    Secret(usize, usize),
    /// The text breaks off before it can be told.
    Open,
}

const fn token(prefix: &'static str, name: &'static str, chars: Chars, least: usize) -> Rule {
    Rule { prefix: Cow::Borrowed(prefix), name, shape: Shape::Token { chars, least, most: TOKEN_BYTES, apart: false } }
}

const fn word(prefix: &'static str, name: &'static str, chars: Chars, least: usize, most: usize) -> Rule {
    Rule { prefix: Cow::Borrowed(prefix), name, shape: Shape::Token { chars, least, most, apart: true } }
}

const fn behind(prefix: &'static str, name: &'static str, chars: Chars, least: usize, assigned: bool) -> Rule {
    Rule { prefix: Cow::Borrowed(prefix), name, shape: Shape::Behind { chars, least, assigned } }
}

const fn of(prefix: &'static str, name: &'static str, shape: Shape) -> Rule {
    Rule { prefix: Cow::Borrowed(prefix), name, shape }
}

/// A beginning that the user knows of.
pub(crate) fn own(prefix: &str) -> Rule {
    let shape = Shape::Token { chars: Chars::Dashed, least: 12, most: TOKEN_BYTES, apart: false };
    Rule { prefix: Cow::Owned(prefix.to_owned()), name: "token", shape }
}

pub(crate) const RULES: [Rule; 57] = [
    token("sk-ant-", "anthropic key", Chars::Dashed, 20),
    token("sk-proj-", "openai key", Chars::Dashed, 20),
    token("sk-svcacct-", "openai key", Chars::Dashed, 20),
    token("sk-admin-", "openai key", Chars::Dashed, 20),
    token("sk-or-v1-", "openrouter key", Chars::Word, 32),
    word("sk-", "api key", Chars::Word, 32, 128),
    token("ghp_", "github token", Chars::Word, 30),
    token("gho_", "github token", Chars::Word, 30),
    token("ghu_", "github token", Chars::Word, 30),
    token("ghs_", "github token", Chars::Word, 30),
    token("ghr_", "github token", Chars::Word, 30),
    token("github_pat_", "github token", Chars::Word, 40),
    token("glpat-", "gitlab token", Chars::Dotted, 20),
    token("gldt-", "gitlab token", Chars::Dashed, 20),
    token("glrt-", "gitlab token", Chars::Dotted, 20),
    token("xoxa-", "slack token", Chars::Dashed, 20),
    token("xoxb-", "slack token", Chars::Dashed, 20),
    token("xoxp-", "slack token", Chars::Dashed, 20),
    token("xoxr-", "slack token", Chars::Dashed, 20),
    token("xoxs-", "slack token", Chars::Dashed, 20),
    token("xoxe.", "slack token", Chars::Dotted, 20),
    token("xapp-1-", "slack token", Chars::Dashed, 20),
    behind("hooks.slack.com/services/", "slack webhook", Chars::Base64, 30, false),
    word("AKIA", "aws key id", Chars::Upper, 16, 16),
    word("ASIA", "aws key id", Chars::Upper, 16, 16),
    behind("aws_secret_access_key", "aws secret key", Chars::Base64, 40, true),
    behind("AWS_SECRET_ACCESS_KEY", "aws secret key", Chars::Base64, 40, true),
    behind("SecretAccessKey", "aws secret key", Chars::Base64, 40, true),
    behind("aws_session_token", "aws session token", Chars::Base64, 100, true),
    behind("AWS_SESSION_TOKEN", "aws session token", Chars::Base64, 100, true),
    behind("SessionToken", "aws session token", Chars::Base64, 100, true),
    behind("AccountKey", "azure key", Chars::Base64, 40, true),
    behind("SharedAccessKey", "azure key", Chars::Base64, 40, true),
    word("AIza", "google key", Chars::Dashed, 35, 35),
    token("GOCSPX-", "google secret", Chars::Dashed, 20),
    word("ya29.", "google token", Chars::Dashed, 20, TOKEN_BYTES),
    word("npm_", "npm token", Chars::Word, 36, 36),
    token("pypi-AgE", "pypi token", Chars::Dashed, 50),
    word("hf_", "hugging face token", Chars::Word, 30, 64),
    word("SG.", "sendgrid key", Chars::Dotted, 40, 128),
    token("sk_live_", "stripe key", Chars::Word, 20),
    token("rk_live_", "stripe key", Chars::Word, 20),
    token("whsec_", "webhook secret", Chars::Base64, 24),
    token("shpat_", "shopify token", Chars::Word, 32),
    token("dop_v1_", "digitalocean token", Chars::Word, 40),
    token("dckr_pat_", "docker token", Chars::Dashed, 20),
    token("hvs.", "vault token", Chars::Dashed, 24),
    word("xai-", "xai key", Chars::Word, 40, 128),
    word("gsk_", "groq key", Chars::Word, 40, 128),
    token("AGE-SECRET-KEY-1", "age key", Chars::Upper, 50),
    of("eyJ", "json web token", Shape::Jwt),
    of("-----BEGIN ", "private key", Shape::PrivateKey),
    behind("Bearer ", "bearer token", Chars::Header, 16, false),
    behind("bearer ", "bearer token", Chars::Header, 16, false),
    behind("uthorization: Basic ", "password", Chars::Base64, 8, false),
    behind("uthorization: basic ", "password", Chars::Base64, 8, false),
    of("://", "password", Shape::Address),
];

impl Rule {
    /// Whether what is hidden may have lines of anything in it.
    pub(crate) fn spans_lines(&self) -> bool {
        matches!(self.shape, Shape::PrivateKey)
    }

    /// What stands at `at`, where this rule's beginning was found, in a text that is whole if `ended`. `before` is the
    /// byte in front of the text, if there is one.
    pub(crate) fn look(&self, text: &[u8], at: usize, before: Option<u8>, ended: bool) -> Found {
        let body = at + self.prefix.len();
        let text = View { text, ended };
        match self.shape {
            Shape::Token { apart: true, .. } | Shape::Jwt if !is_apart(text.text, at, before) => Found::No,
            Shape::Token { chars, least, most, .. } => match text.run(body, chars, most.saturating_add(1)) {
                Run::Open => Found::Open,
                Run::To(end) if (least..=most).contains(&(end - body)) && varied(&text.text[body..end]) => {
                    Found::Secret(at, end)
                }
                Run::To(_) => Found::No,
            },
            Shape::Behind { chars, least, assigned } => text.behind(body, chars, least, assigned),
            Shape::Jwt => text.jwt(at),
            Shape::PrivateKey => text.private_key(at, body),
            Shape::Address => text.address(body),
        }
    }
}

/// Whether nothing that a word could be made of stands before `at`; the letter of an escape (`\n`) does not count.
fn is_apart(text: &[u8], at: usize, before: Option<u8>) -> bool {
    let last = if at == 0 { before } else { Some(text[at - 1]) };
    let escaped = at >= 2 && text[at - 2] == b'\\';
    !last.is_some_and(|byte| Chars::Word.has(byte)) || escaped
}

/// Whether `bytes` have enough different ones to be a secret.
pub(crate) fn varied(bytes: &[u8]) -> bool {
    let mut seen = [0u64; 4];
    bytes.iter().for_each(|byte| seen[usize::from(byte >> 6)] |= 1 << (byte & 63));
    seen.iter().map(|part| part.count_ones()).sum::<u32>() >= VARIETY
}

enum Run {
    To(usize),
    Open,
}

struct View<'a> {
    text: &'a [u8],
    ended: bool,
}

impl View<'_> {
    /// Where the run of `chars` from `from` ends, after `most` of them at the latest.
    fn run(&self, from: usize, chars: Chars, most: usize) -> Run {
        self.until(from, most, |byte| !chars.has(byte))
    }

    fn until(&self, from: usize, most: usize, ends: impl Fn(u8) -> bool) -> Run {
        let rest = self.text.get(from..).unwrap_or_default();
        match rest.iter().take(most).position(|byte| ends(*byte)) {
            Some(length) => Run::To(from + length),
            None if rest.len() < most && !self.ended => Run::Open,
            None => Run::To(from + rest.len().min(most)),
        }
    }

    fn behind(&self, body: usize, chars: Chars, least: usize, assigned: bool) -> Found {
        let mut from = body;
        if assigned {
            let gap = |byte: u8| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'\\' | b'=' | b':');
            let Run::To(start) = self.until(body, 8, |byte| !gap(byte)) else { return Found::Open };
            if !self.text[body..start].iter().any(|byte| matches!(byte, b'=' | b':')) {
                return Found::No;
            }
            from = start;
        }
        let Run::To(end) = self.run(from, chars, TOKEN_BYTES) else { return Found::Open };
        let secret = &self.text[from..end];
        let is_long = secret.len() >= least && varied(secret);
        // Prose has words behind `Bearer`, too, but no figures in them.
        let is_token = secret.iter().any(u8::is_ascii_digit) || matches!(chars, Chars::Base64);
        if is_long && is_token { Found::Secret(from, end) } else { Found::No }
    }

    fn jwt(&self, at: usize) -> Found {
        let mut from = at;
        for part in 0..3 {
            let Run::To(end) = self.run(from, Chars::Dashed, TOKEN_BYTES) else { return Found::Open };
            if end - from < 10 {
                return Found::No;
            }
            if part == 2 {
                return Found::Secret(at, end);
            }
            match self.text.get(end) {
                Some(b'.') => from = end + 1,
                None if !self.ended => return Found::Open,
                _ => return Found::No,
            }
        }
        Found::No
    }

    /// From the first line of a private key to its last, or as far as it looks like one.
    fn private_key(&self, at: usize, body: usize) -> Found {
        let Run::To(end) = self.until(body, 64, |byte| !(byte.is_ascii_uppercase() || byte == b' ')) else {
            return Found::Open;
        };
        let title = &self.text[body..end];
        let is_private = [&b"PRIVATE KEY"[..], b"PRIVATE KEY BLOCK"].iter().any(|kind| title.ends_with(kind));
        if !is_private {
            return Found::No;
        }
        let rest = &self.text[end..];
        let window = &rest[..rest.len().min(KEY_BYTES)];
        let last = memchr::memmem::find(window, b"-----END ");
        let stop = last.unwrap_or(window.len());
        let line = |byte: &u8| {
            Chars::Base64.has(*byte) || matches!(byte, b'-' | b'\r' | b'\n' | b'\t' | b' ' | b'\\' | b':' | b',')
        };
        let looks = window[..stop].iter().take_while(|byte| line(byte)).count();
        match last {
            Some(last) => match self.until(end + last + 9, 80, |byte| matches!(byte, b'\n' | b'"' | b'\'' | b'\\')) {
                Run::Open => Found::Open,
                // What an end was written for is a key, whatever stands in between: lines of grep, a diff's signs.
                Run::To(end) => Found::Secret(at, end),
            },
            None if rest.len() < KEY_BYTES && !self.ended => Found::Open,
            None if looks >= 64 => Found::Secret(at, end + looks),
            None => Found::No,
        }
    }

    fn address(&self, body: usize) -> Found {
        let ends =
            |byte: u8| byte <= b' ' || matches!(byte, b'/' | b'?' | b'#' | b'@' | b'"' | b'\'' | b'<' | b'>' | b'`');
        let Run::To(colon) = self.until(body, USER_BYTES, |byte| ends(byte) || byte == b':') else {
            return Found::Open;
        };
        match self.text.get(colon) {
            Some(b':') => {}
            _ => return Found::No,
        }
        let Run::To(end) = self.until(colon + 1, USER_BYTES, ends) else { return Found::Open };
        let password = &self.text[colon + 1..end];
        // What a shell or a template will fill in is no password, nor is a mark that stands for one.
        let stands_for = matches!(password.first(), None | Some(b'$' | b'{' | b'%' | b'*' | b'['));
        match self.text.get(end) {
            Some(b'@') if !stands_for && password.len() >= 3 => Found::Secret(colon + 1, end),
            _ => Found::No,
        }
    }
}

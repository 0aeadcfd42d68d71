//! Variables: which may be set before a command, and which change what later commands do.

use crate::shell::Word;

/// Names a command may be given without changing what it runs or where it writes.
const HARMLESS: [&str; 58] = [
    "APP_ENV",
    "CARGO_INCREMENTAL",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_PROGRESS_WHEN",
    "CARGO_TERM_VERBOSE",
    "CGO_ENABLED",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "COVERAGE",
    "DEBIAN_FRONTEND",
    "DEBUG",
    "DJANGO_DEBUG",
    "DOTNET_CLI_TELEMETRY_OPTOUT",
    "DRY_RUN",
    "ENVIRONMENT",
    "FLASK_DEBUG",
    "FLASK_ENV",
    "FORCE_COLOR",
    "GOARCH",
    "GOMAXPROCS",
    "GOOS",
    "HOST",
    "INSTA_UPDATE",
    "LANG",
    "LANGUAGE",
    "LINES",
    "LOGLEVEL",
    "LOG_LEVEL",
    "MIX_ENV",
    "NEXT_TELEMETRY_DISABLED",
    "NODE_ENV",
    "NO_COLOR",
    "OMP_NUM_THREADS",
    "PORT",
    "POSIXLY_CORRECT",
    "PROPTEST_CASES",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "PY_COLORS",
    "QUIET",
    "RACK_ENV",
    "RAILS_ENV",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "RUST_MIN_STACK",
    "RUST_TEST_THREADS",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TESTING",
    "TZ",
    "VERBOSE",
];

/// Names that decide what programs run, load or reach, whoever set them before.
const DANGEROUS: [&str; 62] = [
    "ANSIBLE_CONFIG",
    "AR",
    "AS",
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "CC",
    "CDPATH",
    "CFLAGS",
    "CLASSPATH",
    "CPATH",
    "CPP",
    "CURL_HOME",
    "CXX",
    "CXXFLAGS",
    "EDITOR",
    "ENV",
    "EXINIT",
    "FCEDIT",
    "FIGNORE",
    "FPATH",
    "GCONV_PATH",
    "GLOBIGNORE",
    "GREP_OPTIONS",
    "HGRCPATH",
    "HISTFILE",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "INPUTRC",
    "KUBECONFIG",
    "LDFLAGS",
    "LESS",
    "LESSCLOSE",
    "LESSEDIT",
    "LESSKEY",
    "LESSOPEN",
    "LIBRARY_PATH",
    "LOCPATH",
    "MAKE",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANOPT",
    "MANPAGER",
    "NLSPATH",
    "OPENSSL_CONF",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "TAR_OPTIONS",
    "TMPDIR",
    "VISUAL",
    "WGETRC",
    "ZDOTDIR",
];
/// Beginnings of such names.
const DANGEROUS_FAMILIES: [&str; 34] = [
    "AWS_",
    "BASH_",
    "BUNDLE_",
    "CARGO_",
    "CMAKE_",
    "COMPOSER_",
    "DOCKER_",
    "DOTNET_",
    "DYLD_",
    "GEM_",
    "GIT_",
    "GO",
    "GRADLE_",
    "JAVA_",
    "JDK_",
    "LD_",
    "LUA_",
    "MALLOC_",
    "MAVEN_",
    "NODE_",
    "NPM_",
    "PERL",
    "PHP",
    "PIP_",
    "PKG_",
    "PYTEST_",
    "PYTHON",
    "RIPGREP_",
    "RUBY",
    "RUST",
    "SSH_",
    "SSL_",
    "UV_",
    "XDG_",
];

/// Ends of names whose value may be a program, a file or options, however plain it looks.
const NAMING: [&str; 26] = [
    "ARGS", "ASKPASS", "BASE", "BIN", "CMD", "COMMAND", "CONFIG", "DIR", "EDITOR", "EXEC", "FILE", "FLAGS", "HOME",
    "HOOK", "HOST", "LIB", "OPT", "OPTIONS", "OPTS", "PAGER", "PATH", "PROFILE", "RC", "RUNNER", "SHELL", "WRAPPER",
];

/// A number or a word that switches something, in a variable that nobody takes for a program, a file or options.
fn is_switch(name: &str, value: &Word) -> bool {
    const WORDS: [&str; 22] = [
        "all",
        "always",
        "auto",
        "debug",
        "dev",
        "development",
        "error",
        "false",
        "full",
        "info",
        "local",
        "never",
        "no",
        "none",
        "off",
        "on",
        "production",
        "test",
        "trace",
        "true",
        "warn",
        "yes",
    ];
    let Some(text) = value.value() else { return false };
    let is_number = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_named = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    let is_plain = is_number || WORDS.contains(&&*text.to_ascii_lowercase());
    is_plain && is_named && !NAMING.iter().any(|end| name.ends_with(end)) && alone(name, value).is_none()
}

/// Options of a compiler or an engine that only set lints or memory.
fn is_tuning(name: &str, value: &Word) -> bool {
    let Some(text) = value.value() else { return false };
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let is_lint =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-:".contains(&byte));
    match name {
        "RUSTFLAGS" | "RUSTDOCFLAGS" => loop {
            match words.next() {
                None => return true,
                Some("-A" | "-D" | "-F" | "-W") if words.next().is_some_and(is_lint) => {}
                Some(word)
                    if word.len() > 2
                        && word.starts_with(['-'])
                        && "ADFW".contains(&word[1..2])
                        && is_lint(&word[2..]) => {}
                Some(_) => return false,
            }
        },
        "NODE_OPTIONS" => words.all(|word| {
            let size =
                word.strip_prefix("--max-old-space-size=").or_else(|| word.strip_prefix("--max_old_space_size="));
            size.is_some_and(|size| !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit()))
        }),
        _ => false,
    }
}

/// Programs that show a text, or take it as it is, without running anything in turn.
fn is_quiet(name: &str, value: &Word) -> bool {
    let shows = matches!(name, "PAGER" | "GIT_PAGER" | "MANPAGER" | "GH_PAGER");
    let edits = matches!(name, "EDITOR" | "VISUAL" | "GIT_EDITOR" | "GIT_SEQUENCE_EDITOR");
    match value.value() {
        Some("" | "cat") => shows,
        Some("true" | ":") => edits,
        _ => false,
    }
}

/// Why `NAME=value` in front of a command keeps it from being known; none if it is harmless.
pub(super) fn before_command(name: &str, value: &Word) -> Option<String> {
    if is_harmless(name) || is_quiet(name, value) || is_switch(name, value) || is_tuning(name, value) {
        return None;
    }
    Some(format!("`{}=` may change what the command runs or reaches", clean(name)))
}

/// Why a variable set for the commands after it keeps them from being known.
pub(super) fn alone(name: &str, value: &Word) -> Option<String> {
    let name = clean(name);
    let is_family = DANGEROUS_FAMILIES.iter().any(|family| name.starts_with(family));
    let is_proxy = name.to_ascii_lowercase().ends_with("_proxy") || name.starts_with("npm_config_");
    if name.contains('[') && (name.contains('$') || name.contains('`')) {
        return Some(format!("`{name}` is computed when it runs"));
    }
    if value.kind != crate::shell::WordKind::Known && value.text.contains("/dev/tcp/") {
        return Some(format!("`{name}=` opens a connection"));
    }
    if (DANGEROUS.binary_search(&name).is_ok() || is_family || is_proxy) && !is_harmless(name) {
        return Some(format!("`{name}=` changes what the commands after it run or reach"));
    }
    None
}

/// Why handing `NAME` to the commands after it (`export`) keeps them from being known.
pub(super) fn exported(name: &str) -> Option<String> {
    let name = clean(name);
    (!is_harmless(name)).then(|| format!("`{name}` may change what the commands after it run or reach"))
}

fn is_harmless(name: &str) -> bool {
    let name = clean(name);
    let is_locale = name.strip_prefix("LC_").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_uppercase()));
    is_locale || HARMLESS.binary_search(&name).is_ok()
}

/// The name without the `+` of `NAME+=`.
fn clean(name: &str) -> &str {
    name.trim_end_matches('+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_judged() {
        assert!(HARMLESS.is_sorted() && DANGEROUS.is_sorted() && DANGEROUS_FAMILIES.is_sorted());
        for (name, before, later) in [
            ("CI", true, true),
            ("LC_ALL", true, true),
            ("RUST_LOG", true, true),
            ("FOO", true, true),
            ("x", false, true),
            ("RC", false, true),
            ("EXTRA_FLAGS", false, true),
            ("PYTHONINSPECT", false, false),
            ("PATH", false, false),
            ("PATH+", false, false),
            ("LD_PRELOAD", false, false),
            ("https_proxy", false, false),
            ("RUSTFLAGS", false, false),
        ] {
            let value = Word::known("1");
            assert_eq!(before_command(name, &value).is_none(), before, "{name}");
            assert_eq!(alone(name, &value).is_none(), later, "{name}");
        }
    }

    #[test]
    fn values_that_only_switch_or_tune_are_harmless() {
        for (name, value, expected) in [
            ("FOO", "true", true),
            ("APP_MODE", "test", true),
            ("FOO", "./x", false),
            ("FOO", "sh", false),
            ("FOO", "", false),
            ("PAGER", "cat", true),
            ("PAGER", "less", false),
            ("GIT_EDITOR", "true", true),
            ("GIT_EDITOR", "sh", false),
            ("GIT_SSH_COMMAND", "true", false),
            ("RUSTFLAGS", "-D warnings", true),
            ("RUSTFLAGS", "-Dwarnings -A dead_code", true),
            ("RUSTFLAGS", "-C linker=./x", false),
            ("RUSTFLAGS", "-D", false),
            ("RUSTFLAGS", "-Clinker=x", false),
            ("NODE_OPTIONS", "--max-old-space-size=4096", true),
            ("NODE_OPTIONS", "--max-old-space-size=4096 -r ./x", false),
        ] {
            assert_eq!(before_command(name, &Word::known(value)).is_none(), expected, "{name}={value}");
        }
    }
}

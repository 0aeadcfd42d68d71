//! Shells and interpreters: code in their words, in files, and fed to them.

use super::act::{Act, Inner};
use super::options::{ANYTHING, STRICT, Style, Table};
use crate::deed::{FileHow, Reach};
use crate::shell::{Input, Word};

const FIRST: Table = Table { reach: Reach::Anything, style: Style::First, ..STRICT };

/// Options by which they run code given in the words are sharp, and so is what is not known.
const TABLES: [Table; 14] = [
    Table {
        names: "python,pypy",
        flags: "-bBdEhIOPqsSuvVx --help --version --help-all",
        values: "-mW --check-hash-based-pycs",
        loads: "-X",
        dares: "-i",
        runs: "-c",
        ..FIRST
    },
    Table {
        names: "node,nodejs,iojs,tsx,ts-node",
        flags: "-cvhi --check --version --help --test --watch --no-warnings --enable-source-maps \
                --trace-warnings --trace-deprecation --trace-uncaught --experimental-strip-types \
                --experimental-vm-modules --experimental-test-coverage --experimental-modules --expose-gc \
                --preserve-symlinks --throw-deprecation --no-deprecation --test-only --test-force-exit \
                --experimental-sqlite --experimental-transform-types --pending-deprecation \
                --preserve-watch-output --experimental-default-type --prof --cpu-prof --heap-prof",
        edits: "--test-reporter-destination",
        maybe: "--max-old-space-size --max_old_space_size --stack-size --stack-trace-limit \
                --unhandled-rejections --test-concurrency --test-timeout --input-type --dns-result-order \
                --max-http-header-size --test-shard --test-isolation",
        values: "--test-name-pattern --test-skip-pattern --test-coverage-exclude \
                --watch-path --stack-trace",
        loads: "-rC --require --import --loader --experimental-loader --env-file --env-file-if-exists \
                --conditions --test-reporter --openssl-config --icu-data-dir --build-snapshot \
                --snapshot-blob --inspect --inspect-brk --inspect-port --inspect-wait --run \
                --test-global-setup --experimental-config-file --title --redirect-warnings --report-dir \
                --diagnostic-dir",
        runs: "-ep --eval --print -pe",
        ..FIRST
    },
    Table {
        names: "perl",
        flags: "-vwctTWVXhuU --version --help",
        runs: "-eE",
        loads: "-MmIdDCFl0",
        dares: "-npaisSxg",
        ..FIRST
    },
    Table {
        names: "ruby,jruby",
        flags: "-vwch --version --help --verbose --yjit --jit",
        values: "-WEKT --encoding",
        runs: "-e",
        loads: "-rICFdX0",
        dares: "-nplaisSx",
        ..FIRST
    },
    Table {
        names: "php",
        flags: "-vilmhqCwn --version --help --info --modules --syntax-check",
        values: "-f --file",
        runs: "-rBRE --run --process-begin --process-code --process-end",
        loads: "-cdFzSt --define --server --process-file --zend-extension --docroot --php-ini",
        dares: "-aHs --interactive",
        ..FIRST
    },
    Table { names: "lua,luajit,texlua", flags: "-vEWb", runs: "-e", loads: "-l", dares: "-i", ..FIRST },
    Table {
        names: "irb,pry,Rscript,R,julia,elixir,iex,erl,scala,scala-cli,groovy,swift,ghc,runghc,ghci,clojure,clj,bb,\
                guile,racket,sbcl,clisp,raku,gjs,qjs,jshell,octave,kotlin,dart,nim,crystal,tclsh,wish,\
                jrunscript,coffee,pwsh,powershell,fish,nu,csh,tcsh,elvish,xonsh",
        flags: "--version --help --vanilla",
        ..FIRST
    },
    Table {
        names: "bc,dc",
        flags: "-lqshiwv --mathlib --quiet --standard --version --help",
        runs: "-ef --expression --file",
        ..FIRST
    },
    Table {
        names: "psql,mysql,mariadb,sqlite3,sqlite,duckdb,mongosh,mongo,redis-cli,clickhouse,osqueryi",
        loads: "-f --file --init --rcfile --eval",
        ..ANYTHING
    },
    Table {
        names: "vim,vi,nvim,view,vimdiff,ex,rvim,gvim,emacs,emacsclient,nano,pico,micro,ed,red,code,subl,\
                kak,hx,joe",
        flags: "--version --help",
        loads: "-SuUoOTVsr",
        runs: "-c --cmd --eval --batch --script -l -e -f",
        dares: "-es",
        ..Table { open: false, ..ANYTHING }
    },
    Table { names: "gdb,lldb,jdb,pdb,dlv,radare2,r2", flags: "--version --help", ..FIRST },
    Table {
        names: "java",
        style: Style::Dash,
        loads: "-javaagent -agentlib -agentpath",
        values: "-cp -classpath -class-path -module-path -p",
        ..ANYTHING
    },
    Table { names: "wasmtime,wasmer", ..ANYTHING },
    Table {
        names: "m4,tex,latex,pdflatex,xelatex,lualatex,latexmk,gnuplot,ghostscript,gs,maxima",
        values: "-interaction -output-directory",
        flags: "-version -help -halt-on-error -file-line-error",
        dares: "-shell-escape -enable-write18",
        style: Style::Dash,
        ..FIRST
    },
];

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    match name {
        "sh" | "bash" | "dash" | "ash" | "ksh" | "mksh" | "rbash" | "zsh" | "hush" => shell(act, name),
        _ => {
            let plain = name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
            let find = |name: &str| TABLES.iter().find(|table| table.is_named(name));
            let Some(table) = find(name).or_else(|| find(plain)) else { return false };
            interpreter(act, table, name);
        }
    }
    true
}

fn interpreter(act: &mut Act, table: &Table, name: &str) {
    let words = act.deed.argv.clone();
    let options = act.judge_options(table, &words, 1);
    let told = ["m", "f", "--file", "--test", "--run", "l", "c", "--check"];
    let is_asked =
        words.len() == 2 && matches!(words[1].value(), Some("--version" | "-V" | "-v" | "--help" | "-h" | "-version"));
    if is_asked {
        act.deed.reach = Reach::Looks;
        return;
    }
    if table.is_named("psql") {
        return database(act, &words);
    }
    if table.is_named("vim") || table.is_named("gdb") {
        return editor(act, &words, name);
    }
    if table.is_named("java") {
        for (at, word) in words.iter().enumerate().skip(1) {
            let text = &word.text[..];
            if text.starts_with('@')
                || text.starts_with("-agent")
                || text.starts_with("-javaagent")
                || text.starts_with("-XX:On")
                || text.starts_with("-Xrun")
                || text.starts_with("-XX:Flags")
            {
                act.sharp(at, format!("`{text}` loads code or runs others"));
            }
        }
    }
    if let (true, Some(module)) = (table.is_named("python"), options.value(&["m"]).map(|module| module.text.clone()))
        && matches!(&module[..], "timeit" | "pdb" | "code" | "trace" | "cProfile" | "profile")
    {
        let at = options.taken.iter().find(|taken| taken.name == "m").map_or(1, |taken| taken.at);
        act.sharp(at, format!("`-m {module}` runs code given in the words"));
    }
    match options.operands.first() {
        Some(at) if !options.has(&["m"]) => script_file(act, *at),
        Some(_) => {}
        None if options.has(&told) && !table.is_named("bc") || table.is_named("java") => {}
        None if act.deed.sharp.is_empty() => fed(act, name),
        None => {}
    }
}

/// A script whose name is the standard input is what it is fed.
fn script_file(act: &mut Act, at: usize) {
    let text = act.text(at).to_string();
    if text == "-" || is_stream(&text) {
        act.doubt(format!("`{text}` runs what it is fed as code"));
    } else {
        let word = act.deed.argv[at].clone();
        act.file(FileHow::Read, &word);
        act.deed.reach = Reach::Anything;
    }
}

pub(super) fn is_stream(path: &str) -> bool {
    path == "/dev/stdin"
        || path == "/dev/tty"
        || path.starts_with("/dev/fd/")
        || path.starts_with("/proc/")
        || path.starts_with("/dev/tcp/")
}

fn fed(act: &mut Act, name: &str) {
    let why = match act.input {
        Input::Pipe => format!("`{name}` runs what is piped into it"),
        Input::Text(_) => format!("`{name}` runs the text it is fed"),
        Input::File => format!("`{name}` runs the file it is fed"),
        Input::Inherited => format!("`{name}` runs what it reads from its input"),
    };
    act.doubt(why);
}

/// Clients of databases have commands of their own that write files and run others.
fn database(act: &mut Act, words: &[Word]) {
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.to_ascii_lowercase();
        let dares = [
            "\\!",
            "\\o",
            "\\w",
            "\\copy",
            "\\i",
            "program",
            "writefile",
            "readfile",
            "load_extension",
            "outfile",
            "dumpfile",
            "load_file",
            "edit(",
            "fts3_tokenizer",
            "eval",
        ];
        if text.starts_with('.') && !text.starts_with("./") && !text.starts_with("../")
            || text.contains("\n.")
            || text.split([';', '\n']).any(|part| {
                let first = part.split_whitespace().next().unwrap_or_default();
                at > 1 && matches!(first, "system" | "source" | "tee" | "pager" | "edit" | "nopager")
            })
            || dares.iter().any(|dare| text.contains(dare))
        {
            act.sharp(at, format!("`{}` may write files or run commands", word.text));
        }
    }
    if !matches!(act.input, Input::Inherited) {
        fed(act, "the client");
    }
}

fn editor(act: &mut Act, words: &[Word], name: &str) {
    for (at, word) in words.iter().enumerate().skip(1) {
        if word.text.starts_with('+') || word.text.starts_with("-c") {
            act.sharp(at, format!("`{}` is a command of `{name}`, which may run others", word.text));
        }
    }
    if !matches!(act.input, Input::Inherited) {
        fed(act, name);
    }
}

/// A shell: its text is read in turn.
fn shell(act: &mut Act, name: &str) {
    act.deed.reach = Reach::Anything;
    let words = act.deed.argv.clone();
    let (mut at, mut takes_text, mut reads_input) = (1, false, false);
    while let Some(word) = words.get(at).filter(|word| word.text.len() > 1 && word.text.starts_with(['-', '+'])) {
        let Some(text) = word.value() else { break };
        at += 1;
        match text {
            "--" => break,
            "--norc" | "--noprofile" | "--posix" | "--login" | "--verbose" | "--restricted" => {}
            "--version" | "--help" if words.len() == 2 => {
                act.deed.reach = Reach::Looks;
                return;
            }
            text if text.starts_with("--") => {
                act.sharp(at - 1, format!("`{text}` takes settings that may run commands"))
            }
            text => {
                takes_text |= text.contains('c');
                reads_input |= text.contains('s');
                if text.contains('i') {
                    act.sharp(at - 1, format!("`{text}` runs what the shell's settings hold"));
                }
                if !text[1..].bytes().all(|byte| b"abefhkmnptuvxBCHPlcsioOErTD".contains(&byte)) {
                    act.sharp(at - 1, format!("`{text}` is not an option that is known here"));
                }
                at += text[1..].bytes().filter(|byte| matches!(byte, b'o' | b'O')).count();
            }
        }
    }
    match words.get(at) {
        Some(text) if takes_text => read_text(act, text, name),
        Some(_) if !reads_input => script_file(act, at),
        _ if takes_text => {}
        _ => fed_shell(act, name),
    }
}

fn read_text(act: &mut Act, text: &Word, name: &str) {
    act.seen_through = true;
    let Some(text) = text.value() else {
        return act.doubt(format!("the text that `{name}` runs is only known when it runs"));
    };
    if name == "zsh" && text.split_ascii_whitespace().any(|word| word.starts_with('=')) {
        act.doubt("`=name` is the path of a program to zsh");
    }
    act.inner.push(Inner::Text(text.into()));
}

fn fed_shell(act: &mut Act, name: &str) {
    match act.input {
        Input::Text(Some(text)) => {
            act.inner.push(Inner::Text(text.clone()));
            act.seen_through = true;
        }
        _ => fed(act, name),
    }
}

//! Programs that run the command in their own words.

use super::act::{Act, Inner, put_in, unknown};
use super::assign;
use super::options::{Class, LOOKS, Options, STRICT, Style, Table};
use crate::deed::{FileHow, Reach};
use crate::shell::{Word, WordKind};

/// Other spellings of one command that are told to rules that deny.
const MAX_SPELLINGS: usize = 16;

const FIRST: Table = Table { style: Style::First, ..STRICT };

/// Seen through, with how many operands stand before the command.
const WRAPPERS: [(Table, usize); 13] = [
    (
        Table {
            names: "timeout,gtimeout",
            flags: "-fpv --foreground --preserve-status --verbose --help --version",
            values: "-ks --kill-after --signal",
            ..FIRST
        },
        1,
    ),
    (Table { names: "nice,gnice", flags: "--help --version", values: "-n --adjustment", ..FIRST }, 0),
    (
        Table {
            names: "ionice",
            flags: "-t --ignore --help --version",
            values: "-cnpPu --class --classdata --pid",
            ..FIRST
        },
        0,
    ),
    (Table { names: "nohup,caffeinate", flags: "--help --version", ..FIRST }, 0),
    (Table { names: "stdbuf,gstdbuf", flags: "--help --version", values: "-ioe --input --output --error", ..FIRST }, 0),
    (Table { names: "setsid", flags: "-cfwhV --ctty --fork --wait --help --version", ..FIRST }, 0),
    (
        Table {
            names: "chrt",
            flags: "-abfiorRdm --all-tasks --batch --fifo --idle --other --rr --help",
            values: "-TPD",
            ..FIRST
        },
        1,
    ),
    (Table { names: "taskset", flags: "-c --cpu-list --help", ..FIRST }, 1),
    (
        Table {
            names: "time,gtime",
            flags: "-pvqa --portability --verbose --quiet --append --help --version",
            values: "-f --format",
            edits: "-o --output",
            ..FIRST
        },
        0,
    ),
    (Table { names: "builtin,coproc", ..FIRST }, 0),
    (Table { names: "exec", flags: "-cl", values: "-a", ..FIRST }, 0),
    (Table { names: "busybox,toybox", flags: "--help --list --list-full --long", dares: "--install", ..FIRST }, 0),
    (Table { names: "command", flags: "-pvV", ..FIRST }, 0),
];

/// They run a command as another user, elsewhere, or in ways that are not followed: never seen through. Options with
/// a value stand behind the names.
const OPAQUE: [(&str, &str); 9] = [
    (
        "sudo,sudoedit,doas,gosu,su-exec,chpst",
        "-ugpCDhrTtRUc --user --group --prompt --chdir --host --role --type --chroot --other-user \
         --close-from --command-timeout",
    ),
    ("su,runuser", "-cgGswT --command --group --supp-group --shell --whitelist-environment --session-command"),
    ("pkexec", "-u --user"),
    (
        "chroot,unshare,nsenter,setpriv,capsh,bwrap,firejail,proot,fakeroot,fakechroot,setarch,linux32,linux64",
        "-tSGR --target --setuid --setgid --root --wd --userspec --groups",
    ),
    ("strace,ltrace,valgrind,perf,gdbserver,rr", "-oeEpPsauSbIOX --output --trace --attach"),
    ("script,scriptreplay,unbuffer,rlwrap,expect,dtach,abduco", "-cotEBIOmT --command --log-out --echo"),
    (
        "parallel,rush,entr,hyperfine,cpulimit,daemonize,start-stop-daemon,run-parts,setuidgid,softlimit,run-one,\
         ts-node-dev,nodemon,watchexec,chronic,ifne,pee,mispipe,choom,uclampset",
        "-jSNnaIlwrcpe --jobs --warmup --runs --prepare --setup --exec --watch --ext",
    ),
    (
        "systemd-run,systemd-nspawn,machinectl,dbus-run-session,dbus-launch,xvfb-run,ssh-agent,\
         torsocks,torify,proxychains,proxychains4,tsocks,faketime,prlimit,gpg-agent,aa-exec,newgrp,sg,cgexec",
        "-pEnus --unit --property --uid --gid --setenv --slice",
    ),
    (
        "tmux,screen,tmate,msgfilter,multitime,logrotate,cowsay,cowthink,\
         zellij,at,batch,osascript,open,xdg-open,start,wsl,adb",
        "-SLftcd",
    ),
];

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    let words = act.deed.argv.clone();
    match name {
        "env" | "genv" => env(act, &words),
        "xargs" | "gxargs" => xargs(act, &words),
        "watch" => watch(act, &words),
        "flock" => flock(act, &words),
        _ => {
            if let Some((table, before)) = WRAPPERS.iter().find(|(table, _)| table.is_named(name)) {
                wrapper(act, &words, name, table, *before);
            } else if let Some((_, values)) = OPAQUE.iter().find(|(names, _)| names.split(',').any(|own| own == name)) {
                opaque(act, &words, name, values);
            } else {
                return false;
            }
        }
    }
    true
}

fn wrapper(act: &mut Act, words: &[Word], name: &str, table: &Table, before: usize) {
    let options = act.judge_options(table, words, 1);
    let looks = match name {
        "command" => options.has(&["v", "V"]),
        "ionice" => options.has(&["p", "P", "u", "--pid"]),
        "exec" => options.operands.is_empty(),
        _ => false,
    };
    if looks {
        return;
    }
    let at = options.operands.get(before).copied();
    if words.get(1).is_some_and(|word| word.kind != WordKind::Known) && at.is_some() {
        act.doubt(format!("where the command of `{name}` begins, is only known when it runs"));
    }
    run(act, words, at);
}

/// Runs the words from `at` on.
fn run(act: &mut Act, words: &[Word], at: Option<usize>) {
    let Some(at) = at else { return };
    act.seen_through = true;
    act.inner.push(Inner::Own(words[at..].to_vec()));
    if !act.deed.sharp.is_empty() {
        also_from(act, words, at);
    }
}

/// Where a command begins is in doubt: for rules that deny, it may begin at each of the next words.
fn also_from(act: &mut Act, words: &[Word], at: usize) {
    for from in (at..words.len()).filter(|from| !words[*from].text.starts_with('-')).take(MAX_SPELLINGS) {
        act.deed.also.push(words[from..].to_vec());
    }
}

fn env(act: &mut Act, words: &[Word]) {
    const ENV: Table = Table {
        flags: "-i0v --ignore-environment --null --debug --list-signal-handling --help --version",
        maybe: "--default-signal --ignore-signal --block-signal",
        values: "-u --unset",
        loads: "-Ca --chdir --argv0 -P",
        runs: "-S --split-string",
        ..FIRST
    };
    let options = act.judge_options(&ENV, words, 1);
    for taken in options.taken.iter().filter(|taken| matches!(taken.name, "S" | "--split-string")) {
        let text = taken.value.as_ref().map_or("", |value| &value.text);
        act.doubt("what `env -S` splits is not followed");
        act.inner.push(Inner::Text(text.into()));
    }
    // A lone dash means `-i`.
    let alone = options.operands.first().is_some_and(|at| words[*at].text == "-");
    let mut operands = options.operands.iter().copied().skip(usize::from(alone)).peekable();
    while let Some(at) = operands.next_if(|at| words[*at].text.contains('=')) {
        let (name, value) = words[at].text.split_once('=').unwrap_or_default();
        let is_computed = words[at].kind != WordKind::Known && name.contains(['$', '`', '*', '?']);
        if let Some(why) = assign::before_command(name, &Word::known(value)) {
            act.doubt(why);
        } else if is_computed {
            act.doubt(format!("which variable `{name}` is, is only known when it runs"));
        }
    }
    run(act, words, operands.next());
}

fn xargs(act: &mut Act, words: &[Word]) {
    const XARGS: Table = Table {
        flags: "-0rtpxo --null --no-run-if-empty --verbose --interactive --open-tty --exit --show-limits \
                --help --version",
        maybe: "-ile --replace --max-lines --eof",
        values: "-ILnPsdEJRS --max-args --max-procs --max-chars --delimiter --process-slot-var",
        reads: "-a --arg-file",
        ..FIRST
    };
    let options = act.judge_options(&XARGS, words, 1);
    let Some(at) = options.operands.first().copied() else { return };
    let place = options
        .taken
        .iter()
        .find(|taken| matches!(taken.name, "I" | "J" | "i" | "--replace"))
        .map(|taken| taken.value.as_ref().map_or("{}".to_string(), |value| value.text.clone()));
    let mut inner: Vec<Word> = words[at..].to_vec();
    match place {
        Some(place) if !place.is_empty() => {
            for word in inner.iter_mut().filter(|word| word.text.contains(&place)) {
                *word = if word.text == place { put_in(&place) } else { unknown(&word.text) };
            }
        }
        _ => inner.push(put_in("…")),
    }
    act.seen_through = true;
    act.inner.push(Inner::Own(inner));
    if !act.deed.sharp.is_empty() {
        also_from(act, words, at);
    }
}

fn watch(act: &mut Act, words: &[Word]) {
    const WATCH: Table = Table {
        flags: "-bcCdegprtwxvh --beep --color --no-color --errexit --chgexit --precise --no-rerun \
                --no-title --no-wrap --exec --help --version",
        maybe: "--differences",
        values: "-nqs --interval --equexit",
        ..FIRST
    };
    let options = act.judge_options(&WATCH, words, 1);
    let Some(at) = options.operands.first().copied() else { return };
    let text: Option<Vec<&str>> = words[at..].iter().map(Word::value).collect();
    match text {
        _ if options.has(&["x", "--exec"]) => act.inner.push(Inner::Own(words[at..].to_vec())),
        Some(text) => act.inner.push(Inner::Text(text.join(" "))),
        None => act.doubt("what `watch` runs is only known when it runs"),
    }
    act.seen_through = true;
}

fn flock(act: &mut Act, words: &[Word]) {
    const FLOCK: Table = Table {
        flags: "-senuoxFv --shared --exclusive --nonblock --nb --unlock --close --no-fork --verbose --help \
                --version",
        values: "-wE --wait --timeout --conflict-exit-code",
        ..FIRST
    };
    let options = act.judge_options(&FLOCK, words, 1);
    if let Some(at) = options.operands.first() {
        act.file(FileHow::Write, &words[*at]);
    }
    let Some(at) = options.operands.get(1).copied() else { return };
    if words[at].text != "-c" && words[at].text != "--command" {
        return run(act, words, Some(at));
    }
    match words.get(at + 1).and_then(Word::value) {
        Some(text) => act.inner.push(Inner::Text(text.into())),
        None => act.doubt("what `flock` runs is only known when it runs"),
    }
    act.seen_through = true;
}

/// The outer deed stays, and no wildcard grants it; what it would run is told with it.
fn opaque(act: &mut Act, words: &[Word], name: &str, values: &'static str) {
    let table = Table { style: Style::First, values, ..LOOKS };
    let options = Options::read(&table, words, 1);
    let at = options.operands.iter().copied().find(|at| !words[*at].text.contains('='));
    act.deed.reach = Reach::Anything;
    if words.len() == 1 {
        return act.doubt(format!("`{name}` runs what it is told later"));
    }
    let looks = words.len() == 2 && matches!(words[1].value(), Some("-V" | "--version" | "--help"));
    if looks {
        act.deed.reach = Reach::Looks;
        return;
    }
    for (at, word) in words.iter().enumerate().skip(1) {
        if word.text.contains(char::is_whitespace) || word.text.contains([';', '|', '&']) {
            act.sharp(at, format!("`{name}` may run this text"));
            act.inner.push(Inner::Text(word.text.clone()));
        }
    }
    for taken in options.taken.iter().filter(|taken| taken.class == Class::Value) {
        if let (true, Some(value)) = (matches!(taken.name, "c" | "--command" | "--session-command"), &taken.value) {
            act.sharp(taken.at, format!("`{name}` runs this text"));
            act.inner.push(Inner::Text(value.text.clone()));
        }
    }
    match at {
        Some(at) => {
            let why = match name {
                "sudo" | "sudoedit" | "doas" | "su" | "runuser" | "pkexec" => "it runs as another user",
                _ => "it runs another command",
            };
            act.sharp(at, format!("{why}, by `{name}`"));
            act.inner.push(Inner::Folded(at));
            also_from(act, words, 1);
        }
        None => act.sharp(1, format!("`{name}` runs what its words do not show")),
    }
    for (at, word) in
        words.iter().enumerate().skip(1).take_while(|(at, _)| options.operands.first().is_none_or(|first| at < first))
    {
        if word.text.starts_with('-') && !act.deed.sharp.iter().any(|sharp| sharp.at == at) {
            act.sharp(at, format!("`{}` changes how `{name}` runs it", word.text));
        }
    }
}

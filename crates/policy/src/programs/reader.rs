//! From simple commands to deeds.

use super::act::{Act, Inner};
use super::place::{Place, join};
use super::wrappers;
use super::{
    archives, assign, build, builtins, containers, files, filters, find, git, interpreters, net, runners, system, text,
};
use crate::deed::{Deed, FileHow, FileUse, Reach, Reading, Sharp};
use crate::shell::{self, Input, Redirect, RedirectKind, Script, Simple, Word, WordKind};

/// Commands within commands, counted in levels.
const MAX_LEVELS: usize = 8;
/// Deeds of one command line.
const MAX_DEEDS: usize = 1024;
/// Words of commands around others that are carried along to these; many inner ones in a long line would be a square.
const MAX_CARRIED: usize = 32 * 1024;
/// Folders whose programs are the known ones.
const SYSTEM_FOLDERS: [&str; 6] = ["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin"];

/// What `script`, started in `folder` (absolute), would do.
pub fn read(script: &Script, folder: &str) -> Reading {
    read_text(script, "", folder)
}

/// The same, with the text that was parsed, from which commands are shown.
pub fn read_text(script: &Script, text: &str, folder: &str) -> Reading {
    let mut reader = Reader { place: Place::new(folder), deeds: 0, carried: 0, doubts: Vec::new() };
    let mut deeds = reader.script(script, text, &Way::default());
    if ["while", "until", "for", "select", "function", "()", "( )"].iter().any(|word| text.contains(word)) {
        doubt_rounds(&mut deeds);
    }
    Reading { deeds, doubts: reader.doubts }
}

/// How a command comes to run.
#[derive(Clone, Default)]
struct Way {
    /// The commands around it, the outermost first.
    outer: Vec<Vec<Word>>,
    /// The subshells it runs in.
    scope: Vec<u32>,
    /// It is the text of a command that is shown as a whole.
    is_inner: bool,
}

struct Reader {
    place: Place,
    deeds: usize,
    /// Words of outer commands that deeds have been given.
    carried: usize,
    doubts: Vec<String>,
}

type Judge = fn(&mut Act, &str) -> bool;
/// The families of programs; the first that knows a name judges the command.
const FAMILIES: [Judge; 13] = [
    builtins::judge,
    git::judge,
    text::judge,
    filters::judge,
    files::judge,
    archives::judge,
    find::judge,
    wrappers::judge,
    interpreters::judge,
    build::judge,
    containers::judge,
    system::judge,
    net::judge,
];

impl Reader {
    fn script(&mut self, script: &Script, text: &str, way: &Way) -> Vec<Deed> {
        self.doubt_all(&script.doubts);
        let mut deeds = Vec::new();
        let mut before: Option<&Simple> = None;
        // Every `cd` of the `&&` list so far has led where it says.
        let mut leads = false;
        for simple in script.commands.iter().filter(|simple| !simple.repeats) {
            let joined = before.is_some_and(|before| only_after(before, simple, text));
            self.place.set_sure(joined && leads);
            let sure = self.place.is_sure();
            deeds.extend(self.simple(simple, text, way));
            leads = if is_plain_cd(simple, text) { sure } else { joined && leads };
            before = Some(simple);
        }
        self.place.set_sure(false);
        deeds
    }

    fn doubt_all(&mut self, doubts: &[String]) {
        for doubt in doubts {
            if !self.doubts.contains(doubt) {
                self.doubts.push(doubt.clone());
            }
        }
    }

    fn simple(&mut self, simple: &Simple, text: &str, way: &Way) -> Vec<Deed> {
        let mut way = way.clone();
        way.scope.extend(&simple.scope);
        self.place.enter(&way.scope);
        let shown = if way.is_inner { None } else { text.get(simple.span.clone()).filter(|shown| !shown.is_empty()) };
        let is_alone = simple.words.is_empty();
        let mut doubts = Vec::new();
        for (name, value) in &simple.assignments {
            if is_alone {
                self.doubt_all(assign::alone(name, value).as_slice());
            } else {
                doubts.extend(assign::before_command(name, value));
            }
        }
        let files = redirected(&simple.redirects, &mut doubts);
        let before = self.place.clone();
        let folder = before.here();
        let mut deeds = if is_alone { Vec::new() } else { self.command(&simple.words, &simple.input, &way) };
        if deeds.is_empty() && !(files.is_empty() && doubts.is_empty()) {
            let reach = if files.iter().all(|file| file.how == FileHow::Read) { Reach::Looks } else { Reach::Changes };
            deeds.push(Deed { folder, reach, ..Deed::default() });
        }
        for deed in &mut deeds {
            deed.doubts.extend(doubts.iter().cloned());
            if let Some(shown) = shown {
                deed.shown = shown.into();
            }
        }
        if let Some(deed) = deeds.first_mut() {
            if files.iter().any(|file| file.how != FileHow::Read) {
                deed.reach = deed.reach.max(Reach::Changes);
            }
            add_files(&before, deed, files);
        }
        deeds
    }

    /// What the command of these words does, wrappers seen through.
    fn command(&mut self, words: &[Word], input: &Input, way: &Way) -> Vec<Deed> {
        self.deeds += 1;
        self.carried += way.outer.iter().map(Vec::len).sum::<usize>();
        if way.outer.len() >= MAX_LEVELS || self.deeds > MAX_DEEDS || self.carried > MAX_CARRIED {
            let doubt = "it nests deeper, or does more, than is followed".to_string();
            return vec![Deed { doubts: vec![doubt], ..self.new_deed(words, &Way::default()) }];
        }
        let deed = self.new_deed(words, way);
        let before = self.place.clone();
        let mut act =
            Act { deed, input, place: &mut self.place, inner: vec![], seen_through: false, whole: Vec::new() };
        judge(&mut act);
        let Act { mut deed, inner, seen_through, whole, .. } = act;
        self.doubt_all(&whole);
        let files = std::mem::take(&mut deed.files);
        add_files(&before, &mut deed, files);
        self.finish(deed, inner, seen_through, input, way)
    }

    fn new_deed(&self, words: &[Word], way: &Way) -> Deed {
        let shown: Vec<&str> = words.iter().map(|word| &word.text[..]).collect();
        Deed {
            argv: words.to_vec(),
            also: way.outer.clone(),
            written: way.outer.clone(),
            shown: shown.join(" "),
            folder: self.place.here(),
            ..Deed::default()
        }
    }

    fn finish(&mut self, mut deed: Deed, inner: Vec<Inner>, through: bool, input: &Input, way: &Way) -> Vec<Deed> {
        let mut way = Way { is_inner: way.is_inner, ..way.clone() };
        way.outer.push(deed.argv.clone());
        let mut found = Vec::new();
        for inner in inner {
            match inner {
                Inner::Own(words) => found.extend(self.command(&words, input, &way)),
                Inner::Folded(from) => {
                    let words = deed.argv[from..].to_vec();
                    for part in self.command(&words, input, &way) {
                        fold(&mut deed, part, from);
                    }
                }
                Inner::Text(text) => {
                    let mut own = way.clone();
                    own.scope.push(u32::MAX);
                    found.extend(self.nested(&text, &own));
                    self.place.enter(&way.scope);
                }
                Inner::Here(text) => found.extend(self.nested(&text, &way)),
            }
        }
        self.place.enter(&way.scope);
        also_spelled(&mut deed);
        let is_nothing = through && !found.is_empty() && deed.sharp.is_empty() && deed.doubts.is_empty();
        if is_nothing {
            let files = std::mem::take(&mut deed.files);
            found[0].files.extend(files);
            return found;
        }
        found.insert(0, deed);
        found
    }

    /// The deeds of a text that a shell would read in turn.
    fn nested(&mut self, text: &str, way: &Way) -> Vec<Deed> {
        let script = shell::script(text);
        let mut way = way.clone();
        way.is_inner = true;
        self.script(&script, text, &way)
    }
}

/// Whether `next` runs only if `before`, right in front of it, succeeded.
fn only_after(before: &Simple, next: &Simple, text: &str) -> bool {
    let between = text.get(before.span.end..next.span.start).unwrap_or_default();
    before.scope == next.scope && between.trim() == "&&"
}

/// A `cd` that succeeds only if it leads where it says.
fn is_plain_cd(simple: &Simple, text: &str) -> bool {
    let negated = text.get(..simple.span.start).is_none_or(|front| front.trim_end().ends_with('!'));
    !negated && simple.words.first().is_some_and(|word| word.value() == Some("cd"))
}

/// Files a deed uses, and where else they may be should a `cd` before have failed.
fn add_files(place: &Place, deed: &mut Deed, files: Vec<FileUse>) {
    let is_relative = |word: &Word| word.kind == WordKind::Known && !word.tilde && !word.text.starts_with('/');
    for file in files {
        if is_relative(&file.path) {
            for folder in place.elsewhere() {
                let path = join(folder, &file.path.text);
                let tilde = path.starts_with('~');
                let path = Word { tilde, ..Word::known(&path) };
                deed.files.push(FileUse { how: file.how, path });
            }
            if place.here().is_none() && file.how != FileHow::Read {
                deed.doubts.push(format!("it changes `{}` in a folder that is not known", file.path.text));
            }
        }
        deed.files.push(file);
    }
}

/// In a loop or a function, what stands before a `cd` may run after it, too.
fn doubt_rounds(deeds: &mut [Deed]) {
    let changes =
        |deed: &Deed| deed.argv.first().is_some_and(|word| matches!(&word.text[..], "cd" | "chdir" | "pushd" | "popd"));
    let Some(last) = deeds.iter().rposition(changes) else { return };
    for deed in &mut deeds[..last] {
        let is_fixed = |file: &FileUse| file.how == FileHow::Read || file.path.text.starts_with('/') || file.path.tilde;
        if deed.reach == Reach::Anything || !deed.files.iter().all(is_fixed) {
            deed.doubts.push("it may run again after a `cd` that stands behind it".into());
        }
    }
}

fn judge(act: &mut Act) {
    let program = &act.deed.argv[0];
    let Some(written) = program.value().filter(|text| !text.is_empty()).map(str::to_string) else {
        let shown = program.text.clone();
        return act.doubt(format!("which program `{shown}` is, is only known when it runs"));
    };
    let mut name = &written[..];
    if let Some((folder, base)) = written.rsplit_once('/') {
        let mut spelled = act.deed.argv.clone();
        spelled[0] = Word::known(base);
        act.deed.also.push(spelled);
        name = if SYSTEM_FOLDERS.contains(&folder) { base } else { "" };
    }
    FAMILIES.iter().any(|family| family(act, name));
    runners::see(act, name);
    if act.deed.reach == Reach::Anything
        && let Some(outside) = act.place.outside()
        && !act.seen_through
    {
        act.doubt(format!("it may run in `{outside}`, outside of the folder it starts in"));
    }
}

/// What redirections do to files.
fn redirected(redirects: &[Redirect], doubts: &mut Vec<String>) -> Vec<FileUse> {
    let mut files = Vec::new();
    for redirect in redirects {
        let target = &redirect.target;
        let is_free = target.value().is_some_and(|path| {
            matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin" | "/dev/tty")
                || path.strip_prefix("/dev/fd/").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        });
        if is_free {
            continue;
        }
        if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
            doubts.push(format!("`{}` opens a connection", target.text));
        }
        if target.kind != WordKind::Known {
            doubts.push(format!("which file `{}` is, is only known when it runs", target.text));
        }
        let how = if redirect.kind == RedirectKind::Read { FileHow::Read } else { FileHow::Edit };
        files.push(FileUse { how, path: target.clone() });
    }
    files
}

/// Tells what an inner command does as part of the outer deed.
fn fold(deed: &mut Deed, part: Deed, from: usize) {
    let fits = deed.argv.len() >= from && deed.argv[from..] == part.argv[..];
    for Sharp { at, why } in part.sharp {
        if fits {
            deed.sharp.push(Sharp { at: from + at, why });
        } else {
            deed.doubts.push(why);
        }
    }
    if !fits {
        deed.sharp.push(Sharp { at: from, why: format!("it runs `{}` in turn", part.shown) });
    }
    if part.files.iter().any(|file| file.how != FileHow::Read) {
        deed.sharp.push(Sharp { at: from, why: format!("`{}` changes files", part.shown) });
    }
    deed.also.push(part.argv);
    for spelled in part.also {
        if !deed.also.contains(&spelled) && spelled != deed.argv {
            deed.also.push(spelled);
        }
    }
    deed.doubts.extend(part.doubts);
    deed.files.extend(part.files);
    deed.net |= part.net;
}

/// The command with its options in front of its operands, for rules that deny `rm -rf` and meet `rm x -rf`.
fn also_spelled(deed: &mut Deed) {
    let fixed = 1 + usize::from(deed.argv.get(1).is_some_and(|word| !word.text.starts_with('-')));
    let is_option = |word: &Word| word.text.len() > 1 && word.text.starts_with('-');
    for fixed in [1, fixed] {
        let end = deed.argv.iter().position(|word| word.text == "--").unwrap_or(deed.argv.len());
        if fixed >= end || deed.argv[fixed..end].windows(2).all(|pair| is_option(&pair[0]) || !is_option(&pair[1])) {
            continue;
        }
        let (options, operands): (Vec<_>, Vec<_>) = deed.argv[fixed..end].iter().cloned().partition(is_option);
        let mut spelled = deed.argv[..fixed].to_vec();
        spelled.extend(options);
        spelled.extend(operands);
        spelled.extend(deed.argv[end..].iter().cloned());
        if !deed.also.contains(&spelled) {
            deed.also.push(spelled);
        }
    }
}

//! Filters with a language of their own: sed, awk, jq, yq.

use super::act::Act;
use super::code::{self, SedDeed};
use super::options::{Operands, STRICT, Style, Table};
use crate::deed::FileHow;
use crate::shell::Word;

const SED: Table = Table {
    names: "sed,gsed",
    flags: "-nErsuz --quiet --silent --debug --regexp-extended --separate --unbuffered --null-data \
                --posix --sandbox --follow-symlinks --binary -b --version --help",
    maybe: "-i --in-place",
    values: "-el --expression --line-length",
    loads: "-f --file",
    ..STRICT
};

const AWK: Table = Table {
    names: "awk,gawk,mawk,nawk,original-awk",
    style: Style::First,
    flags: "-bcCgGhkMnNOPrsStV --characters-as-bytes --traditional --posix --re-interval --sandbox \
                --version --help --bignum --non-decimal-data --optimize --csv",
    values: "-Fv --field-separator --assign",
    maybe: "-L --lint",
    loads: "-feEilpdoDmW --file --exec --source --include --load --profile --dump-variables \
                --pretty-print --debug",
    ..STRICT
};

const JQ: Table = Table {
    operands: Operands::PatternThenRead,
    flags: "-ncsrjaCMSReV0 --null-input --compact-output --slurp --raw-output --join-output \
                --ascii-output --color-output --monochrome-output --sort-keys --raw-input --exit-status \
                --tab --stream --seq --stream-errors --raw-output0 --unbuffered --version --help --args \
                --jsonargs -h",
    values: "--indent",
    loads: "-fL --from-file --library-path --run-tests --arg --argjson --slurpfile --rawfile --argfile",
    ..STRICT
};

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    let words = act.deed.argv.clone();
    match name {
        "sed" | "gsed" => sed(act, &words),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk(act, &words),
        "yq" => yq(act, &words),
        "jq" | "gojq" | "jaq" => jq(act, &words),
        _ => return false,
    }
    true
}

fn sed(act: &mut Act, words: &[Word]) {
    let options = act.judge_options(&SED, words, 1);
    let mut scripts: Vec<&Word> = Vec::new();
    for taken in &options.taken {
        if matches!(taken.name, "e" | "--expression") {
            scripts.extend(taken.value.as_ref());
        }
    }
    let own_script = scripts.is_empty() && !options.has(&["f", "--file"]);
    let files = options.operands.get(usize::from(own_script)..).unwrap_or_default();
    let at = options.operands.first().copied().filter(|_| own_script);
    let script = match at {
        Some(at) => words[at].text.clone(),
        None => scripts.iter().map(|script| &script.text[..]).collect::<Vec<_>>().join("\n"),
    };
    let option_at = options.taken.iter().find(|taken| matches!(taken.name, "e" | "--expression"));
    let at = at.or(option_at.map(|taken| taken.at)).unwrap_or(0);
    for deed in code::sed(&script) {
        match deed {
            SedDeed::Reads(file) => act.file(FileHow::Read, &Word::known(&file)),
            SedDeed::Writes(file) => {
                act.file(FileHow::Edit, &Word::known(&file));
                act.sharp(at, "its script writes a file");
            }
            SedDeed::Dares(why) => act.sharp(at, why),
        }
    }
    let how = if options.has(&["i", "--in-place"]) { FileHow::Edit } else { FileHow::Read };
    act.files(how, files);
    if let Some(suffix) = options.value(&["i", "--in-place"]).filter(|suffix| suffix.text.contains(['/', '*'])) {
        let why = format!("it keeps what was in `{}`", suffix.text);
        let at =
            options.taken.iter().find(|taken| matches!(taken.name, "i" | "--in-place")).map_or(0, |taken| taken.at);
        act.sharp(at, why);
    }
}

fn awk(act: &mut Act, words: &[Word]) {
    let options = act.judge_options(&AWK, words, 1);
    let given = options.has(&["f", "e", "E", "--file", "--source", "--exec"]);
    if let Some(at) = options.operands.first().copied().filter(|_| !given)
        && let Some(why) = code::awk(&words[at].text)
    {
        act.sharp(at, why);
    }
    let files = options.operands.get(usize::from(!given)..).unwrap_or_default();
    let files: Vec<usize> = files.iter().copied().filter(|at| !words[*at].text.contains('=')).collect();
    act.files(FileHow::Read, &files);
}

fn yq(act: &mut Act, words: &[Word]) {
    const YQ: Table = Table {
        flags: "-iCMnNPrejvVhySt --inplace --in-place --colors --no-colors --null-input --no-doc \
                --prettyPrint --raw-output --exit-status --unwrapScalar --version --help --tojson --slurp \
                --verbose",
        values: "-opI --output-format --input-format --indent --front-matter --arg",
        maybe: "--xml-attribute-prefix",
        loads: "-fs --from-file --split-exp --split-exp-file",
        ..STRICT
    };
    let first = 1 + usize::from(matches!(act.text(1), "e" | "eval" | "ea" | "eval-all"));
    let options = act.judge_options(&YQ, words, first);
    let edits = options.has(&["i", "--inplace", "--in-place"]);
    let at = options.operands.first().copied().unwrap_or(0);
    if ["load(", "load_", "env(", "strenv", "envsubst", "system("].iter().any(|call| words[at].text.contains(call)) {
        act.sharp(at, "its expression may read files, variables or run commands");
    }
    act.files(if edits { FileHow::Edit } else { FileHow::Read }, options.operands.get(1..).unwrap_or_default());
}

/// `--arg` and its kin take two words.
fn jq(act: &mut Act, words: &[Word]) {
    let mut kept: Vec<Word> = Vec::with_capacity(words.len());
    let mut places: Vec<usize> = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let pairs = matches!(&words[at].text[..], "--arg" | "--argjson" | "--slurpfile" | "--rawfile" | "--argfile");
        if pairs {
            if let Some(file) = words.get(at + 2).filter(|_| words[at].text.ends_with("file")) {
                act.file(FileHow::Read, file);
            }
            at += 3;
            continue;
        }
        places.push(at);
        kept.push(words[at].clone());
        at += 1;
    }
    let argv = std::mem::replace(&mut act.deed.argv, kept.clone());
    let options = act.judge(&JQ, &kept, 1);
    act.deed.argv = argv;
    for sharp in &mut act.deed.sharp {
        sharp.at = places[sharp.at];
    }
    if let Some(at) = options.operands.first().filter(|_| !options.has(&["f", "--from-file"]))
        && (kept[*at].text.contains("env") || kept[*at].text.contains("$ENV"))
        && names_environment(&kept[*at].text)
    {
        act.sharp(places[*at], "its program looks into the environment");
    }
}

fn names_environment(program: &str) -> bool {
    program.contains("$ENV")
        || program
            .split(|sign: char| !(sign.is_alphanumeric() || "_.$\"".contains(sign)))
            .any(|word| word == "env" || word.starts_with("env."))
}

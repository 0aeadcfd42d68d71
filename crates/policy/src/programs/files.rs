//! Programs that list, copy, move, link and remove files.

use super::act::Act;
use super::options::{CHANGES, LOOKS, Operands, Options, STRICT, Table};
use super::place::join;
use crate::deed::{FileHow, Reach};
use crate::shell::{Word, WordKind};

const TABLES: [Table; 18] = [
    Table { names: "ls,dir,vdir,exa,eza,lsd", operands: Operands::Read, values: "-ITw --ignore --time-style", ..LOOKS },
    Table { names: "stat", operands: Operands::Read, values: "-cft --format --printf", ..LOOKS },
    Table {
        names: "du,df",
        operands: Operands::Read,
        values: "-dBtx --max-depth --block-size --threshold --exclude --type",
        ..LOOKS
    },
    Table {
        names: "basename,dirname,readlink,realpath,pathchk,namei",
        values: "-s --suffix --relative-to --relative-base",
        ..LOOKS
    },
    Table { names: "lsattr,getfacl,getfattr,lsblk,blkid,findmnt,tty,sync", ..LOOKS },
    Table {
        names: "file",
        operands: Operands::Read,
        flags: "-bchikLhNnprsvz0ZdESl --brief --checking-printout --mime --mime-type --mime-encoding \
                --keep-going --dereference --no-dereference --no-buffer --no-pad --preserve-date --raw \
                --special-files --version --extension --help",
        values: "-eFP --exclude --separator --parameter",
        reads: "-f --files-from",
        loads: "-mM --magic-file",
        dares: "-C --compile",
        ..STRICT
    },
    Table {
        names: "mkdir",
        operands: Operands::Write,
        flags: "-pvZ --parents --verbose --help --version",
        maybe: "--context",
        values: "-m --mode",
        ..CHANGES
    },
    Table {
        names: "rmdir",
        operands: Operands::Write,
        flags: "-pv --parents --verbose --ignore-fail-on-non-empty --help --version",
        ..CHANGES
    },
    Table { names: "unlink", operands: Operands::Write, flags: "--help --version", ..CHANGES },
    Table {
        names: "touch",
        operands: Operands::Write,
        flags: "-acfmh --no-create --no-dereference --help --version",
        values: "-dtA --date --time",
        reads: "-r --reference",
        ..CHANGES
    },
    Table {
        names: "cp",
        operands: Operands::Copy,
        flags: "-abdfiHlLnpPRrsTuvxZcX --archive --attributes-only --force --interactive --link \
                --dereference --no-clobber --no-dereference --parents --recursive --remove-destination \
                --strip-trailing-slashes --symbolic-link --no-target-directory --verbose --one-file-system \
                --copy-contents --debug --help --version",
        maybe: "--backup --preserve --no-preserve --reflink --sparse --update --context",
        values: "-S --suffix",
        writes: "-t --target-directory",
        ..CHANGES
    },
    Table {
        names: "mv",
        operands: Operands::Move,
        flags: "-bfinTuvZh --force --interactive --no-clobber --strip-trailing-slashes \
                --no-target-directory --verbose --exchange --no-copy --debug --help --version",
        maybe: "--backup --update --context",
        values: "-S --suffix",
        writes: "-t --target-directory",
        ..CHANGES
    },
    Table {
        names: "install",
        operands: Operands::Copy,
        flags: "-bcCDpsTvdZ --compare --directory --preserve-timestamps --strip --no-target-directory \
                --verbose --help --version",
        maybe: "--backup",
        values: "-gmoS --group --mode --owner --suffix",
        writes: "-t --target-directory",
        runs: "--strip-program",
        ..CHANGES
    },
    Table {
        names: "truncate,fallocate,mkfifo,mknod",
        operands: Operands::Write,
        flags: "-co --no-create --io-blocks --help --version",
        values: "-sm --size --mode",
        reads: "-r --reference",
        ..CHANGES
    },
    Table {
        names: "shred",
        operands: Operands::Write,
        flags: "-fuvxz --force --verbose --exact --zero --help --version",
        maybe: "--remove",
        values: "-ns --iterations --size",
        reads: "--random-source",
        ..CHANGES
    },
    Table {
        names: "mktemp,tempfile",
        flags: "-duqt --directory --dry-run --quiet --help --version",
        values: "--suffix",
        writes: "-p --tmpdir",
        ..CHANGES
    },
    Table { names: "rename,prename", operands: Operands::Write, dares: "-e -E", flags: "-nvf", ..CHANGES },
    Table {
        names: "patch",
        operands: Operands::Write,
        flags: "-fstNREblun --dry-run --forward --reverse --force --silent --quiet --batch --verbose \
                --binary --backup",
        values: "-pFVYzBgD --strip --fuzz",
        reads: "-i --input",
        edits: "-or --output --reject-file",
        loads: "-d --directory",
        ..CHANGES
    },
];

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    let words = act.deed.argv.clone();
    match name {
        "rm" => rm(act, &words),
        "ln" | "link" => ln(act, &words),
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "setfattr" | "chcon" => owners(act, &words),
        "dd" => dd(act, &words),
        "rsync" => rsync(act, &words),
        "scp" => scp(act, &words),
        _ => {
            let Some(table) = TABLES.iter().find(|table| table.is_named(name)) else { return false };
            let options = act.judge(table, &words, 1);
            if name == "install" && options.has(&["d", "--directory"]) {
                act.deed.files.clear();
                act.files(FileHow::Write, &options.operands);
            }
            if name == "patch" && !options.has(&["o", "--output", "--dry-run"]) {
                act.file(FileHow::Write, &Word::known("."));
            }
        }
    }
    true
}

fn rm(act: &mut Act, words: &[Word]) {
    const RM: Table = Table {
        flags: "-fiIrRdvPxW --force --one-file-system --recursive --dir --verbose --no-preserve-root --help \
                --version",
        maybe: "--interactive --preserve-root",
        ..CHANGES
    };
    let options = act.judge_options(&RM, words, 1);
    let is_deep = options.has(&["r", "R", "--recursive"]);
    act.files(if is_deep { FileHow::Delete } else { FileHow::Write }, &options.operands);
    let is_forced = options.has(&["f", "--force"]);
    let operands = || options.operands.iter().map(|at| words[*at].clone());
    for spelled in [(is_deep && is_forced, "-rf"), (is_deep && is_forced, "-fr"), (is_deep, "-r"), (is_forced, "-f")] {
        if let (true, option) = spelled {
            act.deed.also.push([words[0].clone(), Word::known(option)].into_iter().chain(operands()).collect());
        }
    }
}

/// Links that lead out of the folder make what is written through them land there.
fn ln(act: &mut Act, words: &[Word]) {
    const LN: Table = Table {
        flags: "-bdfFiLnPrsTvhw --directory --force --interactive --logical --no-dereference --physical \
                --relative --symbolic --no-target-directory --verbose --help --version",
        maybe: "--backup",
        values: "-S --suffix",
        writes: "-t --target-directory",
        ..CHANGES
    };
    let options = act.judge_options(&LN, words, 1);
    let target_folder = options.value(&["t", "--target-directory"]).cloned();
    let operands = &options.operands;
    let sources = operands.len().saturating_sub(usize::from(target_folder.is_none() && operands.len() > 1));
    let link = target_folder.or_else(|| operands.get(sources).map(|at| words[*at].clone()));
    let is_symbolic = options.has(&["s", "--symbolic"]) && !options.has(&["r", "--relative"]);
    for at in &operands[..sources] {
        let source = &words[*at];
        let folder = match &link {
            Some(link) if is_symbolic => link.text.rsplit_once('/').map_or("", |(folder, _)| folder),
            _ => "",
        };
        let is_relative = !source.text.starts_with('/') && !source.tilde && source.kind == WordKind::Known;
        let seen = if is_relative && !folder.is_empty() {
            Word::known(&if folder.starts_with('/') {
                join(folder, &source.text)
            } else {
                format!("{folder}/{}", source.text)
            })
        } else {
            source.clone()
        };
        if !act.place.holds(&seen) {
            act.sharp(*at, format!("the link leads to `{}`, outside of the folder", source.text));
        }
        act.file(FileHow::Read, &seen);
    }
    match link {
        Some(link) => act.file(FileHow::Write, &link),
        None => act.file(FileHow::Write, &Word::known(".")),
    }
}

fn owners(act: &mut Act, words: &[Word]) {
    const OWNERS: Table = Table {
        flags: "-cfvRhHLPnbd --changes --silent --quiet --verbose --recursive --no-dereference \
                --dereference --preserve-root --no-preserve-root --help --version",
        values: "-mxM --modify --remove --from",
        reads: "--reference",
        ..CHANGES
    };
    // `-x`, `-rw` are modes to chmod.
    let is_mode = |word: &Word| {
        word.text.len() > 1
            && word.text[1..].bytes().all(|byte| b"rwxXst,=+-ugo".contains(&byte))
            && word.text.starts_with('-')
    };
    let mut kept = words.to_vec();
    if let Some(mode) = kept.iter_mut().skip(1).find(|word| is_mode(word)) {
        mode.text = "u".to_string() + &mode.text;
    }
    let options = act.judge_options(&OWNERS, &kept, 1);
    let own_mode = !options.has(&["--reference", "m", "x", "M"]);
    act.files(FileHow::Write, options.operands.get(usize::from(own_mode)..).unwrap_or_default());
}

fn dd(act: &mut Act, words: &[Word]) {
    act.deed.reach = Reach::Changes;
    for (at, word) in words.iter().enumerate().skip(1) {
        let Some((key, value)) = word.text.split_once('=') else {
            if !matches!(&word.text[..], "--help" | "--version") {
                act.sharp(at, format!("`{}` is not an operand that is known here", word.text));
            }
            continue;
        };
        let tilde = false;
        let value = Word { text: value.into(), tilde, ..word.clone() };
        match key {
            "if" => act.file(FileHow::Read, &value),
            "of" => act.file(FileHow::Write, &value),
            "bs" | "ibs" | "obs" | "cbs" | "count" | "skip" | "seek" | "iseek" | "oseek" | "conv" | "iflag"
            | "oflag" | "status" => {}
            _ => act.sharp(at, format!("`{key}=` is not an operand that is known here")),
        }
    }
}

fn is_remote(word: &Word) -> bool {
    word.text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

fn copies(act: &mut Act, words: &[Word], options: &Options, last: FileHow) {
    act.deed.net |= options.operands.iter().any(|at| is_remote(&words[*at]));
    for (index, at) in options.operands.iter().enumerate() {
        let is_last = index + 1 == options.operands.len() && index > 0;
        if !is_remote(&words[*at]) {
            act.file(if is_last { last } else { FileHow::Read }, &words[*at]);
        } else if is_last {
            act.sharp(*at, format!("it sends files to `{}`", words[*at].text));
        }
    }
}

fn rsync(act: &mut Act, words: &[Word]) {
    const RSYNC: Table = Table {
        flags: "-vqcarRbudlLkKHpEAXogtOJSnWxyCzhPi0468mUN --verbose --quiet --checksum --archive \
                --recursive --relative --update --inplace --append --dirs --links --copy-links \
                --copy-unsafe-links --safe-links --hard-links --perms --executability --acls --xattrs \
                --owner --group --times --omit-dir-times --sparse --dry-run --whole-file --one-file-system \
                --existing --ignore-existing --partial --prune-empty-dirs --numeric-ids --ignore-times \
                --size-only --fuzzy --compress --stats --human-readable --progress --itemize-changes \
                --list-only --mkpath --no-motd --backup --version --help --delete --delete-before \
                --delete-during --delete-delay --delete-after --delete-excluded --force --8-bit-output",
        maybe: "--no-perms --info --debug --outbuf",
        values: "-fB --filter --exclude --include --max-size --min-size --bwlimit --timeout --contimeout \
                --chmod --chown --suffix --block-size --compress-level --modify-window --max-delete --port \
                --out-format --iconv --checksum-choice",
        reads: "--exclude-from --include-from --files-from --password-file --compare-dest --copy-dest \
                --link-dest",
        writes: "-T --temp-dir --backup-dir --partial-dir",
        edits: "--log-file --write-batch --only-write-batch",
        dares: "-s --remove-source-files --daemon --server --munge-links --copy-devices --write-devices \
                --copy-as",
        loads: "-M --remote-option --config --read-batch --address --sockopts",
        runs: "-e --rsh --rsync-path --early-input",
        ..CHANGES
    };
    let options = act.judge_options(&RSYNC, words, 1);
    let deletes = options.taken.iter().any(|taken| taken.name.starts_with("--delete"));
    copies(act, words, &options, if deletes { FileHow::Delete } else { FileHow::Write });
}

fn scp(act: &mut Act, words: &[Word]) {
    const SCP: Table = Table {
        flags: "-346ABCOpqRrTv",
        values: "-clPX",
        reads: "-i",
        loads: "-FJD",
        runs: "-oS",
        net: true,
        ..CHANGES
    };
    let options = act.judge_options(&SCP, words, 1);
    copies(act, words, &options, FileHow::Write);
}

//! Programs that pack and unpack files.

use super::act::Act;
use super::options::{CHANGES, Class, Operands, Options, Style, Table};
use crate::deed::{FileHow, Reach};
use crate::shell::Word;

/// The packers of single files come first.
const TABLES: [Table; 6] = [
    Table {
        names: "gzip,gunzip,bzip2,bunzip2,xz,unxz,lzma,zstd,unzstd,lz4,pigz,compress,uncompress,brotli",
        operands: Operands::Write,
        flags: "-cdfhklLnNqrRtvVz123456789aeDm --stdout --to-stdout --decompress --uncompress --force \
                --keep --list --no-name --name --quiet --recursive --test --verbose --fast --best \
                --compress --extreme --rm --help --version --rsyncable --synchronous --single-stream \
                --ultra --no-progress --no-check --check",
        maybe: "-T --threads --long --adapt",
        values: "-SMCF --suffix --memlimit --memory --format",
        edits: "-o --output --output-dir-flat --output-dir-mirror",
        loads: "--files --files0 --filelist --patch-from",
        ..CHANGES
    },
    Table {
        names: "unzip,zipinfo",
        operands: Operands::Read,
        flags: "-abcCDfFjKlLnopqStTuvVWXzhZ012345",
        values: "-xPOI",
        writes: "-d",
        dares: "-:",
        ..CHANGES
    },
    Table {
        names: "zip",
        operands: Operands::Write,
        flags: "-rjqv9876543210duflyXDkoAJegSzcF --recurse-paths --quiet --verbose --symlinks --junk-paths \
                --no-dir-entries --exclude --include --update --freshen",
        values: "-xisPnt --suffixes",
        edits: "-O --output-file --out --log-file-path",
        writes: "-b --temp-path",
        dares: "-mT@ --move --test",
        runs: "--unzip-command -TT",
        ..CHANGES
    },
    Table {
        names: "ar",
        operands: Operands::Write,
        flags: "-dmpqrstxacuvoSTDUPN --version --help",
        loads: "--plugin",
        values: "--target",
        edits: "--output",
        ..CHANGES
    },
    Table {
        names: "cpio",
        operands: Operands::Write,
        flags: "-iotdumvVpkLlBabcnrsS --extract --create --list --pass-through --make-directories \
                --unconditional --quiet --verbose --preserve-modification-time --no-absolute-filenames \
                --null -0 --dereference --link --numeric-uid-gid",
        values: "-HCMRE --format --owner",
        reads: "-I",
        writes: "-FOD --file --directory",
        runs: "--rsh-command --rmt-command",
        ..CHANGES
    },
    Table {
        names: "7z,7za,7zz,7zr,unrar,rar",
        operands: Operands::Write,
        style: Style::Dash,
        flags: "-y -r -bd -aoa -aos -aou -mx -mx9 -mx=9 -tzip -t7z",
        ..CHANGES
    },
];

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    let words = act.deed.argv.clone();
    if matches!(name, "tar" | "gtar" | "bsdtar") {
        tar(act, &words);
        return true;
    }
    let Some(table) = TABLES.iter().find(|table| table.is_named(name)) else { return false };
    let options = act.judge(table, &words, 1);
    after_table(act, name, &options);
    true
}

fn after_table(act: &mut Act, name: &str, options: &Options) {
    let only_prints = match name {
        "unzip" => options.has(&["l", "p", "c", "t", "v", "Z", "z"]),
        "zipinfo" => true,
        "unrar" | "7z" | "7za" | "7zz" | "7zr" | "rar" => {
            if !matches!(act.text(1), "l" | "t") {
                act.file(FileHow::Write, &Word::known("."));
            }
            act.deed.files.retain(|file| !matches!(file.path.text.len(), 1 if file.path.text != "."));
            false
        }
        name => {
            TABLES[0].is_named(name) && options.has(&["c", "--stdout", "--to-stdout", "t", "--test", "l", "--list"])
        }
    };
    if only_prints && act.deed.sharp.is_empty() {
        for file in act.deed.files.iter_mut().filter(|file| file.how == FileHow::Write) {
            file.how = FileHow::Read;
        }
        act.deed.reach = Reach::Looks;
    } else if matches!(name, "unzip" | "cpio") && !options.taken.iter().any(|taken| taken.class >= Class::Write) {
        act.file(FileHow::Write, &Word::known("."));
    }
}

const TAR: Table = Table {
    flags: "-xctruAdvzjJZapkmOSlhwWoUBRiqns --extract --get --create --list --append --update \
                --catenate --concatenate --diff --compare --verbose --gzip --gunzip --ungzip --bzip2 --xz \
                --lzma --lzip --lzop --zstd --compress --auto-compress --preserve-permissions \
                --same-permissions --keep-old-files --keep-newer-files --skip-old-files --overwrite \
                --no-overwrite-dir --touch --to-stdout --sparse --dereference --hard-dereference --verify \
                --no-same-owner --same-owner --no-same-permissions --numeric-owner --totals --wildcards \
                --no-wildcards --anchored --no-anchored --ignore-case --no-recursion --recursion \
                --force-local --no-acls --no-xattrs --no-selinux --xattrs --acls --ignore-zeros \
                --ignore-failed-read --exclude-vcs --exclude-vcs-ignores --exclude-backups --exclude-caches \
                --exclude-caches-all --show-transformed-names --unlink-first --one-file-system \
                --interactive --confirmation --no-auto-compress --seek --full-time --block-number --utc \
                --null --help --version --check-links --delay-directory-restore",
    maybe: "--one-top-level --checkpoint --occurrence --warning",
    values: "-bHNVfC --file --directory --format --strip-components --exclude --mtime --owner --group \
                --mode --sort --label --blocking-factor --newer --newer-mtime --after-date --exclude-tag \
                --quoting-style --owner-map --group-map --clamp-mtime --record-size --pax-option --level \
                --cd",
    reads: "-TX --files-from --exclude-from",
    writes: "-g --listed-incremental",
    edits: "--index-file --volno-file",
    dares: "-PM --absolute-names --multi-volume --remove-files --recursive-unlink --absolute-paths \
                --delete",
    loads: "--transform --xform --starting-file -K",
    runs: "-IF --use-compress-program --checkpoint-action --to-command --info-script \
                --new-volume-script --rsh-command --rmt-command",
    ..CHANGES
};

fn tar(act: &mut Act, words: &[Word]) {
    let (spread, places) = spread_tar(words);
    let argv = std::mem::replace(&mut act.deed.argv, spread.clone());
    let options = act.judge_options(&TAR, &spread, 1);
    let archive = options.value(&["f", "--file"]).cloned();
    let is_folder = |name: &str| matches!(name, "C" | "--directory" | "--cd");
    let mut folders: Vec<Word> =
        options.taken.iter().filter(|taken| is_folder(taken.name)).filter_map(|taken| taken.value.clone()).collect();
    if folders.is_empty() {
        folders.push(Word::known("."));
    }
    let lists = options.has(&["t", "--list", "d", "--diff", "--compare"]);
    let extracts = options.has(&["x", "--extract", "--get"]);
    let how = if lists || extracts { FileHow::Read } else { FileHow::Write };
    if let Some(archive) = &archive {
        let is_remote = archive.text.split_once(':').is_some_and(|(host, _)| !host.contains('/') && !host.is_empty());
        if is_remote && !options.has(&["--force-local"]) {
            act.doubt(format!("`{}` is on another machine", archive.text));
        }
        act.file(how, archive);
    }
    if extracts && !options.has(&["O", "--to-stdout"]) {
        for folder in &folders {
            act.file(FileHow::Write, folder);
        }
    } else if !lists && !extracts {
        act.files(FileHow::Read, &options.operands);
    }
    if let Some(folder) = options.value(&["--one-top-level"]) {
        act.file(FileHow::Write, folder);
    }
    if lists && act.deed.sharp.is_empty() && act.deed.files.iter().all(|file| file.how == FileHow::Read) {
        act.deed.reach = Reach::Looks;
    }
    act.deed.argv = argv;
    for sharp in &mut act.deed.sharp {
        sharp.at = places[sharp.at];
    }
}

/// The old spelling `tar xfC a.tar folder`, whose values follow in the letters' order, as `-x -f a.tar -C folder`.
fn spread_tar(words: &[Word]) -> (Vec<Word>, Vec<usize>) {
    let is_old = words.get(1).is_some_and(|word| word.value().is_some_and(|text| !text.starts_with('-')));
    if !is_old {
        return (words.to_vec(), (0..words.len()).collect());
    }
    let (mut spread, mut places, mut next) = (vec![words[0].clone()], vec![0], 2);
    for letter in words[1].text.chars() {
        spread.push(Word::known(&format!("-{letter}")));
        places.push(1);
        if "bHNVfCTXgIFKL".contains(letter) && next < words.len() {
            spread.push(words[next].clone());
            places.push(next);
            next += 1;
        }
    }
    for (at, word) in words.iter().enumerate().skip(next) {
        spread.push(word.clone());
        places.push(at);
    }
    (spread, places)
}

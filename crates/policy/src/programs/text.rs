//! Programs that read, filter and compare text.

use super::act::Act;
use super::options::{LOOKS, Operands, Options, STRICT, Style, Table};
use crate::deed::{FileHow, Reach};
use crate::shell::Word;

/// They have no option that writes or runs anything.
const READERS: Table = Table { operands: Operands::Read, ..LOOKS };

const TABLES: [Table; 23] = [
    Table {
        names: "cat,tac,rev,wc,comm,expand,unexpand,md5sum,sha1sum,sha224sum,sha256sum,sha384sum,sha512sum,\
                cksum,sum,b2sum,b3sum,tsort,diffstat,colrm,look,base64,base32,basenc,zcat,bzcat,xzcat,\
                zstdcat,gzcat",
        ..READERS
    },
    Table { names: "head,tail", values: "-nc --lines --bytes --pid --sleep-interval", ..READERS },
    Table { names: "cut", values: "-dfbc --delimiter --fields --bytes --characters --output-delimiter", ..READERS },
    Table { names: "paste,fold,fmt", values: "-dwgp --delimiters --width", ..READERS },
    Table { names: "join", values: "-12jtaoev", ..READERS },
    Table { names: "cmp", values: "-in --ignore-initial --bytes", ..READERS },
    Table {
        names: "column",
        values: "-cosNHRTEOWr --output-width --output-separator --separator --table-columns",
        ..READERS
    },
    Table {
        names: "nl,pr",
        values: "-bdfhilnsvw --body-numbering --number-format --number-separator --number-width",
        ..READERS
    },
    Table { names: "od", values: "-AjNtS --address-radix --skip-bytes --read-bytes --format", ..READERS },
    Table { names: "hexdump,hd", values: "-ensL", reads: "-f", ..READERS },
    Table { names: "strings", values: "-ntes --bytes --radix --encoding --output-separator", ..READERS },
    Table { names: "tr,seq,yes,factor,numfmt", ..LOOKS },
    Table {
        names: "grep,egrep,fgrep,zgrep,rgrep",
        operands: Operands::PatternThenRead,
        flags: "-EFGPiyvwxcLlqsbHhnTUzaIrRoZ --extended-regexp --fixed-strings --basic-regexp --perl-regexp \
                --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count \
                --files-without-match --files-with-matches --only-matching --quiet --silent --no-messages \
                --byte-offset --with-filename --no-filename --line-number --initial-tab --null --text \
                --recursive --dereference-recursive --line-buffered --unix-byte-offsets --binary \
                --null-data --version --help",
        maybe: "--color --colour",
        values: "-eABCmdD --regexp --after-context --before-context --context --max-count --label \
                --binary-files --directories --devices --exclude --exclude-dir --include --group-separator",
        reads: "-f --file --exclude-from",
        ..LOOKS
    },
    Table {
        names: "rg",
        operands: Operands::PatternThenRead,
        flags: "-iSsvwxclnNHIhoFPUuaLpqz.0bV --ignore-case --smart-case --case-sensitive --invert-match \
                --word-regexp --line-regexp --count --count-matches --files-with-matches \
                --files-without-match --files --line-number --no-line-number --with-filename --no-filename \
                --only-matching --fixed-strings --pcre2 --multiline --multiline-dotall --unrestricted \
                --text --hidden --follow --pretty --quiet --no-ignore --no-ignore-vcs --no-ignore-parent \
                --no-ignore-dot --no-ignore-global --no-ignore-files --heading --no-heading --json --stats \
                --vimgrep --null --trim --column --no-messages --no-config --block-buffered --line-buffered \
                --crlf --debug --trace --byte-offset --max-columns-preview --one-file-system --passthru \
                --type-list --version --help --no-hidden --no-follow --no-pre --search-zip --binary \
                --null-data --glob-case-insensitive --include-zero --no-unicode --auto-hybrid-regex \
                --no-require-git --sort-files",
        values: "-eABCmgtTrjEMd --regexp --after-context --before-context --context --max-count --glob \
                --iglob --type --type-not --type-add --type-clear --replace --threads --encoding \
                --max-columns --max-depth --max-filesize --sort --sortr --color --colors \
                --context-separator --engine --dfa-size-limit --regex-size-limit --path-separator \
                --pre-glob --field-match-separator --field-context-separator --hyperlink-format --maxdepth",
        reads: "-f --file --ignore-file",
        runs: "--pre --hostname-bin",
        ..STRICT
    },
    Table {
        names: "ag,ack",
        operands: Operands::PatternThenRead,
        flags: "-iSsvwclLnHhoFQURruafgz --ignore-case --smart-case --case-sensitive --invert-match \
                --word-regexp --count --files-with-matches --files-without-matches --nonumbers --numbers \
                --literal --hidden --follow --all-text --all-types --nocolor --color --nogroup --group \
                --noheading --heading --column --stats --vimgrep --print0 --only-matching \
                --skip-vcs-ignores --unrestricted --silent --version --help",
        values: "-ABCmGp --after --before --context --max-count --file-search-regex --ignore --ignore-dir \
                --depth --type --workers",
        reads: "--path-to-ignore",
        runs: "--pager",
        loads: "--ackrc --create-ackrc",
        ..STRICT
    },
    Table {
        names: "diff,sdiff,diff3,colordiff",
        operands: Operands::Read,
        flags: "-qsyeniaEbwBZtTlrNpucdHfW --brief --normal --report-identical-files --side-by-side \
                --left-column --ed --suppress-common-lines --show-c-function --recursive --no-dereference \
                --new-file --ignore-case --unidirectional-new-file --ignore-file-name-case \
                --ignore-tab-expansion --ignore-trailing-space --ignore-space-change --ignore-all-space \
                --ignore-blank-lines --text --strip-trailing-cr --expand-tabs --initial-tab \
                --suppress-blank-empty --minimal --speed-large-files --rcs --version --help --context \
                --unified --paginate",
        maybe: "--color",
        values: "-CUWFxSI --width --label --show-function-line --exclude --starting-file \
                --ignore-matching-lines --tabsize --palette --horizon-lines --line-format --ifdef \
                --old-line-format --new-line-format --unchanged-line-format --old-group-format \
                --new-group-format",
        reads: "-X --exclude-from --from-file --to-file",
        edits: "-o --output",
        runs: "--diff-program",
        ..STRICT
    },
    Table {
        names: "sort",
        operands: Operands::Read,
        flags: "-bdfgiMhnRrVcCmsuz --ignore-leading-blanks --dictionary-order --ignore-case \
                --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort \
                --numeric-sort --random-sort --reverse --version-sort --merge --stable --unique \
                --zero-terminated --debug --version --help",
        maybe: "--check",
        values: "-ktS --key --field-separator --buffer-size --parallel --batch-size --sort",
        reads: "--files0-from --random-source",
        edits: "-o --output",
        loads: "-T --temporary-directory",
        runs: "--compress-program",
        ..STRICT
    },
    Table {
        names: "xxd",
        operands: Operands::Read,
        flags: "-a -b -C -d -e -E -i -p -r -u -v -ps -plain -postscript -bits -autoskip -include -revert \
                -uppercase -version",
        values: "-c -cols -g -groupsize -l -len -n -name -o -offset -s -seek -R",
        style: Style::Dash,
        ..STRICT
    },
    Table {
        names: "less,more,most,bat,batcat,zless,zmore",
        operands: Operands::Read,
        flags: "-aABcCdeEfFgGiIJKLmMnNqQrRsSuUVwWXp -l --line-numbers --plain --number --show-all \
                --quit-if-one-screen --chop-long-lines --no-init --RAW-CONTROL-CHARS --raw-control-chars \
                --ignore-case --version --help --decorations",
        values: "-bhjxyz --language --line-range --style --theme --color --wrap --tabs --paging \
                --highlight-line",
        edits: "-oO --log-file --LOG-FILE",
        loads: "-kptTDP --lesskey-file --lesskey-src --tag --tag-file --pattern --lesskey-content \
                --map-syntax",
        runs: "--pager",
        ..STRICT
    },
    Table {
        names: "tree",
        operands: Operands::Read,
        flags: "-adfilxqNQpugshDFrtcUnACSXJviz --dirsfirst --filesfirst --noreport --prune --du --si \
                --gitignore --inodes --device --nolinks --matchdirs --ignore-case --metafirst --fromfile \
                --version --help --info --hintro -R",
        values: "-LPIHT --filelimit --charset --timefmt --sort --gitfile --infofile",
        edits: "-o",
        ..STRICT
    },
    Table {
        names: "xmllint",
        loads: "--path --load-trace --shell",
        edits: "--output -o",
        operands: Operands::Read,
        flags: "--noout --format --html --xmlout --valid --recover --noblanks --nonet --huge --version",
        values: "--xpath --schema --encode",
        ..STRICT
    },
    Table {
        names: "iconv",
        operands: Operands::Read,
        values: "-ft --from-code --to-code",
        flags: "-cls --list",
        edits: "-o --output",
        ..STRICT
    },
    Table {
        names: "shuf",
        operands: Operands::Read,
        values: "-ni --head-count --input-range",
        flags: "-erz --echo --repeat",
        reads: "--random-source",
        edits: "-o --output",
        ..STRICT
    },
];

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    let words = act.deed.argv.clone();
    match name {
        "uniq" => uniq(act, &words),
        "tee" | "sponge" => tee(act, &words),
        "split" | "csplit" => split(act, &words),
        _ => {
            let Some(table) = TABLES.iter().find(|table| table.is_named(name)) else { return false };
            let options = act.judge(table, &words, 1);
            match name {
                "xxd" => xxd(act, &words, &options),
                "less" | "more" | "most" | "bat" | "batcat" | "zless" | "zmore" => pager(act, &words),
                "tree" => {
                    for taken in options.taken.iter().filter(|taken| matches!(taken.name, "R" | "o")) {
                        act.sharp(taken.at, "with `-R` or `-o` it writes files");
                    }
                }
                "grep" | "egrep" | "fgrep" | "rgrep" | "rg" | "ag" | "ack" => searches_here(act, name, &options),
                _ => {}
            }
        }
    }
    true
}

/// Without a file, a search through folders begins where it stands; `rg` and its kin pass hidden files over unless told.
fn searches_here(act: &mut Act, name: &str, options: &Options) {
    let sweeps = match name {
        "rgrep" => true,
        "rg" | "ag" | "ack" => options.has(&[".", "u", "a", "--hidden", "--unrestricted", "--no-ignore"]),
        _ => options.has(&["r", "R", "--recursive", "--dereference-recursive"]),
    };
    let given = options.has(&["e", "f", "--regexp", "--file", "--files"]);
    if sweeps && options.operands.len() <= usize::from(!given) {
        act.file(FileHow::Read, &Word::known("."));
    }
}

fn uniq(act: &mut Act, words: &[Word]) {
    const UNIQ: Table = Table {
        flags: "-cdDiuz --count --repeated --ignore-case --unique --zero-terminated --version --help",
        maybe: "--all-repeated --group",
        values: "-fsw --skip-fields --skip-chars --check-chars",
        ..STRICT
    };
    let options = act.judge_options(&UNIQ, words, 1);
    for (index, at) in options.operands.iter().enumerate() {
        act.file(if index == 0 { FileHow::Read } else { FileHow::Edit }, &words[*at]);
    }
}

fn tee(act: &mut Act, words: &[Word]) {
    const TEE: Table = Table {
        reach: Reach::Changes,
        operands: Operands::Write,
        flags: "-aip --append --ignore-interrupts --version --help",
        maybe: "--output-error",
        ..STRICT
    };
    act.judge(&TEE, words, 1);
}

fn split(act: &mut Act, words: &[Word]) {
    const SPLIT: Table = Table {
        reach: Reach::Changes,
        flags: "-dxeuksqz --verbose --elide-empty-files --numeric-suffixes --hex-suffixes --unbuffered \
                --keep-files --quiet --silent --suppress-matched",
        values: "-abClnt --suffix-length --bytes --line-bytes --lines --number --separator --digits \
                --additional-suffix --suffix-format",
        writes: "-f --prefix",
        runs: "--filter",
        ..STRICT
    };
    let options = act.judge_options(&SPLIT, words, 1);
    let mut operands = options.operands.iter();
    if let Some(at) = operands.next() {
        act.file(FileHow::Read, &words[*at]);
    }
    let prefix = operands.next().filter(|_| act.text(0).ends_with("/split") || act.text(0) == "split");
    act.file(FileHow::Write, &prefix.map_or(Word::known("xaa"), |at| words[*at].clone()));
}

fn xxd(act: &mut Act, words: &[Word], options: &Options) {
    if let Some(at) = options.operands.get(1) {
        act.file(FileHow::Edit, &words[*at]);
    }
}

/// What a pager is told to do first may be a command.
fn pager(act: &mut Act, words: &[Word]) {
    for (at, word) in words.iter().enumerate().skip(1) {
        if word.text.starts_with('+') {
            act.sharp(at, format!("`{}` is a command of the pager, which may run others", word.text));
        }
    }
}

//! The options of git itself and of its subcommands that only look.

use super::options::{LOOKS, STRICT, Style, Table};

pub(super) const GLOBAL: Table = Table {
    style: Style::First,
    flags: "-P --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs \
                --icase-pathspecs --no-replace-objects --no-lazy-fetch --no-advice -v --version -h --help \
                --html-path --man-path --info-path --bare",
    maybe: "--exec-path",
    values: "-C",
    dares: "-p --paginate",
    loads: "-c --config-env --git-dir --work-tree --namespace --super-prefix --attr-source --list-cmds",
    ..STRICT
};

/// What all commands that show differences have in common.
const DIFF: Table = Table {
    flags: "-puswWzRabrtcmqh --patch --no-patch --raw --patch-with-raw --indent-heuristic --minimal \
                --patience --histogram --numstat --shortstat --compact-summary --summary --patch-with-stat \
                --name-only --name-status --no-color --check --full-index --binary --pickaxe-all \
                --pickaxe-regex --text --ignore-cr-at-eol --ignore-space-at-eol --ignore-space-change \
                --ignore-all-space --ignore-blank-lines --function-context --exit-code --quiet \
                --no-ext-diff --no-textconv --no-prefix --default-prefix --no-renames --find-copies-harder \
                --cached --staged --merge-base --base --ours --theirs --cc --combined-all-paths \
                --no-relative --irreversible-delete --no-index --remerge-diff --cumulative --rename-empty \
                --ita-invisible-in-index --ita-visible-in-index --stdin --root --always --no-commit-id \
                --pretty --patch-with-log",
    maybe: "-UMCBDX --stat --color --color-moved --color-words --word-diff --submodule \
                --ignore-submodules --dirstat --dirstat-by-file --abbrev --find-renames --find-copies \
                --break-rewrites --relative --ws-error-highlight --unified",
    values: "-SGlI --stat-width --stat-name-width --stat-count --stat-graph-width --diff-algorithm \
                --anchored --word-diff-regex --diff-filter --find-object --inter-hunk-context --rotate-to \
                --skip-to --src-prefix --dst-prefix --line-prefix --output-indicator-new \
                --output-indicator-old --output-indicator-context --color-moved-ws --diff-merges \
                --ignore-matching-lines",
    reads: "-O",
    edits: "--output",
    dares: "--ext-diff --textconv",
    ..STRICT
};

/// What all commands that walk the history have in common.
pub(super) const LOG: Table = Table {
    flags: "-giEFP --follow --no-decorate --clear-decorations --source --mailmap --use-mailmap \
                --no-mailmap --log-size --all --oneline --graph --no-graph --merges --no-merges \
                --first-parent --reverse --walk-reflogs --boundary --cherry --cherry-mark --cherry-pick \
                --left-right --left-only --right-only --date-order --author-date-order --topo-order \
                --relative-date --parents --children --abbrev-commit --no-abbrev-commit --no-notes \
                --full-history --dense --sparse --simplify-merges --simplify-by-decoration --show-pulls \
                --not --bisect --ignore-missing --no-abbrev --no-min-parents --regexp-ignore-case \
                --extended-regexp --fixed-strings --perl-regexp --basic-regexp --invert-grep --all-match \
                --remove-empty --count --no-expand-tabs --no-walk --show-linear-break \
                --exclude-first-parent-only --no-max-parents --summary --numbered --email --committer-group \
                --objects --objects-edge --unpacked --timestamp --header --left --right",
    maybe: "--branches --tags --remotes --decorate --pretty --format --notes --show-notes --expand-tabs \
                --ancestry-path --glob --since-as-filter --no-walk --indexed-objects",
    values: "-nL --max-count --skip --since --after --until --before --author --committer --grep \
                --grep-reflog --min-parents --max-parents --exclude --exclude-hidden --date --decorate-refs \
                --decorate-refs-exclude --encoding --max-age --min-age",
    also: Some(&DIFF),
    ..STRICT
};

/// Subcommands that only look.
pub(super) const LOOKING: [Table; 18] = [
    Table { names: "log,show,whatchanged,shortlog,rev-list,reflog,reflog show,reflog list,reflog exists", ..LOG },
    Table {
        names: "diff,diff-tree,diff-index,diff-files,range-diff,stash show,stash list",
        also: Some(&LOG),
        ..STRICT
    },
    Table {
        names: "status",
        flags: "-sbvz --short --branch --show-stash --long --verbose --null --ahead-behind --renames \
                --no-renames --no-column",
        maybe: "-u --porcelain --untracked-files --ignore-submodules --ignored --column --find-renames",
        ..STRICT
    },
    Table {
        names: "blame,annotate",
        flags: "-bltcpefnswkh --root --show-stats --porcelain --line-porcelain --incremental --show-name \
                --show-number --show-email --score-debug --color-lines --color-by-age --minimal \
                --first-parent --progress",
        maybe: "-MC --abbrev",
        values: "-LS --date --encoding --ignore-rev --reverse",
        reads: "--contents --ignore-revs-file",
        ..STRICT
    },
    Table {
        names: "ls-files,ls-tree",
        flags: "-cdmoisuktvfzrldhnt --cached --deleted --modified --others --ignored --stage --unmerged \
                --killed --directory --no-empty-directory --full-name --recurse-submodules --debug \
                --deduplicate --eol --sparse --long --name-only --name-status --object-only --full-tree \
                --exclude-standard --error-unmatch --resolve-undo",
        maybe: "--abbrev",
        values: "-x --exclude --format --with-tree",
        reads: "-X --exclude-from --exclude-per-directory",
        ..STRICT
    },
    Table { names: "rev-parse", ..LOOKS },
    Table {
        names: "describe,name-rev,merge-base,show-ref,for-each-ref,show-branch,cherry,count-objects,\
                check-ignore,check-attr,check-ref-format,check-mailmap,verify-pack,patch-id,diff-pairs,\
                merge-tree,get-tar-commit-id,version,stripspace",
        flags: "-advqrntzvsHIl --all --tags --contains --long --debug --exact-match --always --first-parent \
                --name-only --stdin --octopus --independent --is-ancestor --fork-point --heads --hash \
                --verify --quiet --dereference --ignore-case --omit-empty --verbose --human-readable \
                --no-index --cached --null --build-options --current --list --more --topo-order --branch \
                --normalize --no-contains --merged --no-merged --refs --undefined --stable --unstable \
                --branches --strip-comments --write-tree --name-only --messages --shell --perl --python \
                --tcl",
        maybe: "--abbrev --dirty --broken --merged --no-merged --color --exclude-existing --remotes",
        values: "--candidates --match --exclude --count --sort --format --points-at --contains",
        ..STRICT
    },
    Table {
        names: "cat-file",
        flags: "-etpsz --buffer --batch-all-objects --unordered --follow-symlinks --allow-unknown-type \
                --mailmap",
        maybe: "--batch --batch-check --batch-command",
        values: "--path --filter",
        dares: "--textconv --filters",
        ..STRICT
    },
    Table {
        names: "grep",
        flags: "-iIwvhHEGPFnlLzocpWqra --cached --untracked --no-index --no-exclude-standard \
                --exclude-standard --recurse-submodules --invert-match --ignore-case --word-regexp --text \
                --recursive --no-recursive --extended-regexp --basic-regexp --perl-regexp --fixed-strings \
                --line-number --column --files-with-matches --name-only --files-without-match --null \
                --only-matching --count --break --heading --show-function --function-context --and --or \
                --not --all-match --quiet --full-name --no-color",
        maybe: "--color",
        values: "-eABCm --max-depth --context --after-context --before-context --threads --max-count \
                --parent-basename",
        reads: "-f",
        dares: "--textconv --ext-grep",
        runs: "-O --open-files-in-pager",
        ..STRICT
    },
    Table { names: "remote get-url", flags: "--all --push", ..STRICT },
    Table { names: "worktree list", flags: "-vz --porcelain --verbose", values: "--expire", ..STRICT },
    Table { names: "submodule status,submodule summary", flags: "-q --quiet --recursive --cached", ..STRICT },
    Table { names: "notes list,notes show,notes get-ref", ..STRICT },
    Table { names: "bisect log", ..STRICT },
    Table {
        names: "fsck",
        flags: "-v --full --strict --verbose --unreachable --dangling --no-dangling --root --tags --cache \
                --no-reflogs --connectivity-only --no-progress --progress",
        ..STRICT
    },
    Table {
        names: "sparse-checkout list,lfs ls-files,lfs status,bundle verify,bundle list-heads,\
                maintenance is-needed,rerere status,rerere diff",
        ..STRICT
    },
    Table { names: "var", ..STRICT },
    Table {
        names: "ls-remote",
        flags: "-thbq --heads --tags --branches --refs --quiet --get-url --exit-code --symref",
        values: "--sort",
        runs: "--upload-pack --exec",
        loads: "-o --server-option",
        net: true,
        ..STRICT
    },
];

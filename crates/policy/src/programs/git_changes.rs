//! Subcommands of git that change something, with their options, and those that are a way to run something else.

use super::git_tables::LOG;
use super::options::{CHANGES, Operands, STRICT, Table};

/// Subcommands that change the repository or its files.
pub(super) const CHANGING: [Table; 27] = [
    Table {
        names: "add,stage",
        flags: "-nvfiepuAN --dry-run --verbose --force --interactive --patch --edit --update --all --no-all \
                --ignore-removal --intent-to-add --refresh --ignore-errors --ignore-missing --renormalize \
                --sparse --no-warn-embedded-repo --pathspec-file-nul",
        values: "--chmod",
        reads: "--pathspec-from-file",
        ..CHANGES
    },
    Table {
        names: "commit",
        flags: "-apqvseonzi --all --patch --quiet --verbose --signoff --no-signoff --edit --no-edit --amend \
                --no-verify -n --allow-empty --allow-empty-message --reset-author --short --branch \
                --porcelain --long --null --dry-run --include --only --status --no-status --no-post-rewrite \
                --no-gpg-sign --pathspec-file-nul",
        maybe: "-u --untracked-files",
        values: "-mCc --message --reuse-message --reedit-message --fixup --squash --author --date --cleanup \
                --trailer",
        reads: "-Ft --file --template --pathspec-from-file",
        dares: "-S --gpg-sign",
        ..CHANGES
    },
    Table {
        names: "checkout,switch,restore",
        flags: "-qfltmpdWS --quiet --progress --no-progress --force --ours --theirs --track --no-track \
                --guess --no-guess --detach --merge --patch --ignore-skip-worktree-bits --overwrite-ignore \
                --ignore-other-worktrees --overlay --no-overlay --worktree --staged --discard-changes \
                --ignore-unmerged --pathspec-file-nul --recurse-submodules",
        values: "-bBcCUs --create --force-create --orphan --conflict --source",
        reads: "--pathspec-from-file",
        ..CHANGES
    },
    Table {
        names: "reset",
        flags: "-qpNz --quiet --mixed --soft --hard --merge --keep --patch --intent-to-add --refresh \
                --no-refresh --pathspec-file-nul",
        maybe: "--recurse-submodules",
        reads: "--pathspec-from-file",
        ..CHANGES
    },
    Table {
        names: "rm,mv",
        flags: "-fnrqkv --force --dry-run --quiet --cached --ignore-unmatch --sparse --verbose \
                --pathspec-file-nul",
        reads: "--pathspec-from-file",
        ..CHANGES
    },
    Table {
        names: "clean",
        flags: "-dfinqxX --dry-run --force --quiet --interactive",
        values: "-e --exclude",
        ..CHANGES
    },
    Table {
        names: "branch",
        flags: "-dDmMcCfrailvqt --delete --move --copy --force --remotes --all --ignore-case --list \
                --verbose --quiet --show-current --create-reflog --no-track --unset-upstream --no-color \
                --no-column --omit-empty",
        maybe: "--track --color --column --abbrev --merged --no-merged",
        values: "-u --set-upstream-to --contains --no-contains --points-at --sort --format",
        ..CHANGES
    },
    Table {
        names: "tag",
        flags: "-adflvni --annotate --delete --force --list --no-sign --ignore-case --create-reflog \
                --omit-empty --no-column",
        maybe: "--color --column --merged --no-merged --contains --no-contains",
        values: "-m --message --cleanup --sort --format --points-at --trailer",
        reads: "-F --file",
        dares: "-suv --sign --local-user --verify --edit -e",
        ..CHANGES
    },
    Table {
        names: "merge,cherry-pick,revert",
        flags: "-enxqv --commit --no-commit --edit --no-edit --ff --no-ff --ff-only --squash --no-squash \
                --stat --no-stat --quiet --verbose --progress --abort --continue --quit --skip --signoff \
                --no-signoff --allow-unrelated-histories --allow-empty --allow-empty-message \
                --keep-redundant-commits --no-verify --verify --autostash --no-autostash --no-gpg-sign \
                --rerere-autoupdate",
        maybe: "--log",
        values: "-mX --message --mainline --strategy-option --cleanup --into-name --empty",
        reads: "-F --file",
        dares: "-S --gpg-sign --verify-signatures",
        loads: "-s --strategy",
        ..CHANGES
    },
    Table {
        names: "rebase",
        flags: "-qvfknm --quiet --verbose --stat --no-stat --no-verify --verify --no-ff --force-rebase \
                --keep-base --abort --continue --skip --quit --show-current-patch --autostash \
                --no-autostash --autosquash --no-autosquash --update-refs --rebase-merges \
                --no-rebase-merges --root --fork-point --no-fork-point --committer-date-is-author-date \
                --reset-author-date --ignore-date --ignore-whitespace --signoff --reapply-cherry-picks \
                --no-keep-empty --keep-empty --merge --apply --rerere-autoupdate --no-gpg-sign",
        values: "-CX --onto --strategy-option --whitespace --empty",
        dares: "-iS --interactive --edit-todo --gpg-sign",
        loads: "-s --strategy",
        runs: "-x --exec",
        ..CHANGES
    },
    Table {
        names: "stash,stash push,stash save,stash pop,stash apply,stash drop,stash clear,stash branch,\
                stash create,stash store",
        flags: "-kpqunaS --keep-index --no-keep-index --patch --quiet --include-untracked --all --staged \
                --index --pathspec-file-nul",
        values: "-m --message",
        reads: "--pathspec-from-file",
        ..CHANGES
    },
    Table {
        names: "fetch,pull",
        flags: "-apPqvfktnrum46 --all --append --atomic --prune --prune-tags --quiet --verbose --force \
                --keep --tags --no-tags --dry-run --progress --no-progress --unshallow --update-shallow \
                --multiple --set-upstream --ipv4 --ipv6 --rebase --no-rebase --ff --ff-only --no-ff \
                --autostash --no-autostash --commit --no-commit --edit --no-edit --squash --stat --no-stat \
                --no-verify --allow-unrelated-histories --refetch --write-fetch-head --no-write-fetch-head \
                --update-head-ok --porcelain --no-recurse-submodules",
        maybe: "--recurse-submodules --rebase --log",
        values: "-jX --jobs --depth --deepen --shallow-since --shallow-exclude --refmap --filter \
                --negotiation-tip --strategy-option --cleanup",
        dares: "-S --gpg-sign --verify-signatures",
        loads: "-so --server-option --strategy",
        runs: "--upload-pack",
        net: true,
        ..CHANGES
    },
    Table {
        names: "push",
        flags: "-nqvufd46 --all --branches --prune --mirror --dry-run --porcelain --delete --tags \
                --follow-tags --atomic --no-atomic --force --no-force --force-if-includes \
                --no-force-if-includes --set-upstream --thin --no-thin --quiet --verbose --progress \
                --no-progress --verify --no-verify --ipv4 --ipv6 --no-signed --no-recurse-submodules",
        maybe: "--force-with-lease --signed --recurse-submodules",
        loads: "-o --push-option",
        values: "--repo",
        runs: "--receive-pack --exec",
        net: true,
        ..CHANGES
    },
    Table {
        names: "clone",
        flags: "-lnqvs46 --local --no-local --no-hardlinks --quiet --verbose --progress --no-checkout \
                --bare --mirror --no-tags --tags --single-branch --no-single-branch --shallow-submodules \
                --no-shallow-submodules --sparse --also-filter-submodules --reject-shallow --ipv4 --ipv6 \
                --dissociate",
        values: "-objx --origin --branch --depth --shallow-since --shallow-exclude --jobs --filter \
                --ref-format",
        dares: "--recurse-submodules --recursive --remote-submodules --shared",
        loads: "-c --config --template --server-option --bundle-uri",
        runs: "-u --upload-pack",
        writes: "--separate-git-dir",
        reads: "--reference --reference-if-able",
        net: true,
        ..CHANGES
    },
    Table {
        names: "init",
        flags: "-q --quiet --bare",
        maybe: "--shared",
        values: "-b --initial-branch --object-format --ref-format",
        loads: "--template",
        writes: "--separate-git-dir",
        operands: Operands::Write,
        ..CHANGES
    },
    Table {
        names: "gc,prune,pack-refs,repack,prune-packed,update-index,read-tree,write-tree,commit-tree,\
                update-ref,symbolic-ref,pack-objects,index-pack,mktree,mktag,unpack-objects,reflog expire,\
                reflog delete,rerere,rerere clear,rerere forget,commit-graph,multi-pack-index,\
                checkout-index,replace",
        loads: "--prefix --edit",
        ..Table { open: true, ..CHANGES }
    },
    Table {
        names: "apply",
        flags: "-R3zpNv --stat --numstat --summary --check --index --cached --3way --reverse --reject \
                --intent-to-add --unidiff-zero --apply --no-add --allow-empty --ignore-space-change \
                --ignore-whitespace --recount --inaccurate-eof --verbose --quiet --allow-overlap \
                --allow-binary-replacement --binary",
        values: "-pC --whitespace --exclude --include",
        edits: "--build-fake-ancestor",
        dares: "--unsafe-paths",
        loads: "--directory",
        operands: Operands::Read,
        ..CHANGES
    },
    Table {
        names: "am",
        flags: "-skuqc3in --signoff --keep --keep-non-patch --utf8 --quiet --scissors --3way --continue \
                --resolved --skip --abort --quit --no-verify --show-current-patch \
                --committer-date-is-author-date --ignore-date",
        values: "--whitespace --exclude --include --patch-format",
        dares: "-S --gpg-sign --interactive",
        loads: "--directory",
        operands: Operands::Read,
        ..CHANGES
    },
    Table {
        names: "format-patch",
        flags: "-kns --numbered --no-numbered --stdout --cover-letter --signoff --thread --attach --inline \
                --keep-subject",
        maybe: "--base",
        values: "-v --subject-prefix --start-number --suffix --reroll-count --to --cc --in-reply-to --from \
                --signature",
        edits: "-o --output-directory",
        also: Some(&LOG),
        ..CHANGES
    },
    Table {
        names: "archive",
        flags: "-lv0123456789 --list --verbose --worktree-attributes",
        values: "--format --prefix --add-virtual-file --mtime",
        reads: "--add-file",
        edits: "-o --output",
        loads: "--remote",
        runs: "--exec",
        ..STRICT
    },
    Table { names: "remote", flags: "-v --verbose", ..STRICT },
    Table {
        names: "remote show,remote prune,remote update,remote remove,remote rm,remote rename,\
                remote set-head,remote set-branches",
        flags: "-nadp --dry-run --auto --delete --prune --add --progress --no-progress",
        net: true,
        ..CHANGES
    },
    Table {
        names: "worktree add,worktree remove,worktree move,worktree prune,worktree lock,worktree unlock,\
                worktree repair",
        flags: "-fdqnv --force --detach --checkout --no-checkout --lock --orphan --quiet --track --no-track \
                --guess-remote --no-guess-remote --dry-run --verbose",
        values: "-bB --reason --expire",
        ..CHANGES
    },
    Table {
        names: "notes,notes add,notes append,notes copy,notes remove,notes prune,notes merge",
        flags: "-fnv --force --allow-empty --ignore-missing --stdin --quiet --verbose",
        values: "-mCcs --message --ref --reuse-message --strategy",
        reads: "-F --file",
        ..CHANGES
    },
    Table {
        names: "hash-object",
        flags: "-w --stdin --stdin-paths --no-filters --literally",
        values: "-t --path",
        operands: Operands::Read,
        ..CHANGES
    },
    Table {
        names: "submodule init,submodule sync,submodule deinit",
        flags: "-fq --force --all --recursive --quiet",
        ..CHANGES
    },
    Table {
        names: "bisect,bisect start,bisect good,bisect bad,bisect new,bisect old,bisect skip,bisect reset,\
                bisect terms,bisect next",
        flags: "--no-checkout --first-parent --term-good --term-bad --term-old --term-new",
        values: "--term",
        ..CHANGES
    },
];

/// Subcommands that are a way to run or set something else; each with what it does.
pub(super) const SHARP: [(&str, &str); 25] = [
    ("bisect run", "it runs another command"),
    ("bisect visualize", "it starts a viewer"),
    ("citool", "it starts a program of its own"),
    ("config", "it sets what git does and runs later"),
    ("credential", "it hands out or stores passwords"),
    ("credential-cache", "it hands out or stores passwords"),
    ("credential-store", "it hands out or stores passwords"),
    ("daemon", "it serves the repository"),
    ("difftool", "it runs another program"),
    ("fast-export", "it may write files"),
    ("fast-import", "it rewrites the repository"),
    ("filter-branch", "it runs other commands"),
    ("for-each-repo", "it runs other commands"),
    ("gui", "it starts a program of its own"),
    ("help", "it starts a viewer"),
    ("hook", "it runs hooks"),
    ("instaweb", "it serves the repository"),
    ("maintenance", "it may set up tasks that run later"),
    ("mergetool", "it runs another program"),
    ("remote add", "it adds an address that is fetched from later"),
    ("remote set-url", "it changes an address that is fetched from later"),
    ("send-email", "it sends mail, by another program"),
    ("submodule add", "it fetches what is to be run later"),
    ("submodule foreach", "it runs another command"),
    ("submodule update", "it may fetch, and run what the configuration says"),
];

//! Programs that show or change what runs on the machine.

use super::act::Act;
use super::options::{ANYTHING, CHANGES, LOOKS, Operands, STRICT, Style, Table};
use crate::deed::{FileHow, Reach};
use crate::shell::Word;

const TABLES: [Table; 24] = [
    Table {
        names: "uname,whoami,id,groups,uptime,arch,nproc,free,vmstat,iostat,mpstat,lscpu,lsusb,lspci,lsmod,\
                which,whereis,whatis,apropos,sleep,expr,cal,ncal,printenv,w,who,users,last,logname,pgrep,\
                pidof,ss,hostid,locale,getconf,tput,sw_vers,lsb_release,dpkg-query,tokei,cloc,scc,figlet,\
                factor,pstree,usleep,clear,reset,systemd-detect-virt,nvidia-smi,sensors,lshw,acpi,nm,size,\
                readelf,objdump,addr2line,c++filt",
        ..LOOKS
    },
    Table { names: "ps,netstat,lsof", ..LOOKS },
    Table {
        names: "date",
        flags: "-uRIjn --utc --universal --rfc-email --debug --help --version --resolution",
        maybe: "--iso-8601 --rfc-3339",
        values: "-dvf --date",
        reads: "-r --reference --file",
        dares: "-s --set",
        ..STRICT
    },
    Table {
        names: "hostname,dnsdomainname",
        flags: "-aAdfiIsyvV --fqdn --short --ip-address --all-ip-addresses --domain --long",
        loads: "-Fb --file",
        ..STRICT
    },
    Table {
        names: "top,htop,btop,atop",
        flags: "-bcHiSsehOlM1E --batch --tree",
        values: "-dnopuUwF --delay --user --sort-key --filter --pid",
        ..STRICT
    },
    Table {
        names: "kill,killall,pkill,skill",
        flags: "-lLeIgqrsvwVinxfoLtc --list --table --exact --ignore-case --interactive --quiet --verbose \
                --wait --full --newest --oldest --count --help",
        values: "-suUGPgto --signal --user --parent --older-than --younger-than",
        ..Table { open: true, ..CHANGES }
    },
    Table {
        names: "dmesg",
        flags: "-TtHxkuwLePd --ctime --human --decode --kernel --userspace --follow --color --nopager",
        values: "-lfs --level --facility --since --until",
        dares: "-CcDEn --clear --read-clear --console-off --console-on",
        ..STRICT
    },
    Table {
        names: "journalctl",
        flags: "-aefklmqrxbN --all --pager-end --follow --dmesg --full --no-full --quiet --reverse \
                --catalog --no-pager --list-boots --disk-usage --utc --no-hostname --no-tail --user \
                --system --header --merge",
        maybe: "-bno --boot --lines --output",
        values: "-uptSUgMDc --unit --user-unit --priority --since --until --grep --identifier --facility \
                --output-fields --cursor --field",
        dares: "--vacuum-size --vacuum-time --vacuum-files --rotate --flush --setup-keys --sync",
        reads: "--file --directory --root",
        edits: "--cursor-file",
        ..STRICT
    },
    Table { names: "ip,ifconfig,route,arp,iptables,nft,ufw,brctl,iw,nmcli,networksetup,tc,ethtool", ..ANYTHING },
    Table {
        names: "umount,mount,losetup,swapon,swapoff,mkfs,fdisk,parted,mkswap,fsck,cryptsetup,lvm,mdadm,\
                wipefs,sgdisk,modprobe,insmod,rmmod,sysctl,reboot,shutdown,halt,poweroff,init,telinit,\
                useradd,userdel,usermod,passwd,chpasswd,groupadd,visudo,chsh,chfn,update-alternatives,\
                ldconfig,hwclock,timedatectl,hostnamectl,localectl,loginctl,launchctl,defaults,crontab,atq,\
                atrm",
        ..ANYTHING
    },
    Table {
        names: "man",
        flags: "-afkwhKit --all --whatis --apropos --where --path --global-apropos --help --version",
        values: "-sSmeLpM --sections --locale --extension",
        loads: "-CHTXZER --config-file --html --gxditview --recode --encoding",
        runs: "-P --pager --preprocessor",
        ..STRICT
    },
    Table { names: "info", flags: "--help --version", edits: "-o --output", values: "-nd --node", ..STRICT },
    Table { names: "ldd,otool", ..ANYTHING },
    Table { names: "systemctl,service,rc-service,supervisorctl,pm2", ..ANYTHING },
    Table {
        names: "apt,apt-get,aptitude,dnf,yum,zypper,pacman,apk,snap,flatpak,brew,port,nix,nix-shell,nix-env,\
                guix,emerge,xbps-install,pkg,choco,scoop,winget",
        loads: "-oc --option --config-file --config --root",
        ..ANYTHING
    },
    Table {
        names: "dpkg,rpm",
        flags: "-lLsSpWCV --list --listfiles --status --search --show --get-selections --print-architecture \
                --print-avail --audit --verify --version --help -q -a -i",
        ..Table { reach: Reach::Anything, ..STRICT }
    },
    Table {
        names: "apt-cache,dpkg-query",
        flags: "-qnifa --quiet --names-only --full --installed -W -l -L -s -S",
        values: "-f --showformat",
        loads: "-oc --option --config-file",
        ..STRICT
    },
    Table { names: "xdotool,xclip,xsel,wl-copy,wl-paste,pbcopy,pbpaste,notify-send,say,espeak", ..ANYTHING },
    Table { names: "logger,wall,write,mesg", ..ANYTHING },
    Table { names: "lsns,lslocks,lsipc,lslogins", ..LOOKS },
    Table {
        names: "inotifywait,fswatch",
        flags: "-mrqe --monitor --recursive --quiet",
        values: "-et --event --timeout --exclude --include --format",
        edits: "-o --outfile",
        dares: "-d --daemon",
        ..STRICT
    },
    Table { names: "md5,shasum,sha1,sha256", operands: Operands::Read, values: "-a --algorithm", ..LOOKS },
    Table { names: "eject,chvt,openvt,loadkeys,setfont,stty,setterm,xrandr,xset,amixer,pactl", ..ANYTHING },
    Table {
        names: "git-lfs,git-crypt,pre-commit,lefthook,husky,direnv,asdf,mise,rtx,nvm,fnm,volta,pyenv,rbenv,\
                sdk,rustup,conda,mamba,micromamba,pixi,devbox",
        style: Style::Gnu,
        ..ANYTHING
    },
];

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    let words = act.deed.argv.clone();
    let Some(table) = TABLES.iter().find(|table| table.is_named(name)) else { return false };
    let options = act.judge(table, &words, 1);
    match name {
        // `date 010203` sets the clock, `hostname x` the name.
        "date" | "hostname" => {
            for at in &options.operands {
                if !words[*at].text.starts_with('+') {
                    act.sharp(*at, format!("`{}` would set it", words[*at].text));
                }
            }
        }
        "ip" | "ifconfig" | "route" | "arp" => {
            let changes = [
                "add", "del", "delete", "set", "change", "replace", "flush", "append", "up", "down", "exec", "netns",
                "-batch", "-b", "-force", "-d",
            ];
            let is_exec = words.iter().any(|word| changes.contains(&&word.text[..]) || word.value().is_none());
            if name == "ip" && !is_exec || words.len() == 1 {
                act.deed.reach = Reach::Looks;
            } else if let Some(at) =
                words.iter().position(|word| matches!(&word.text[..], "netns" | "-b" | "-batch" | "vrf"))
            {
                act.sharp(at, "it may run other commands");
            }
        }
        "mount" | "crontab" | "sysctl" if words.len() == 1 => act.deed.reach = Reach::Looks,
        "crontab" if words[1..].iter().all(|word| word.text == "-l") => act.deed.reach = Reach::Looks,
        "crontab" => act.sharp(1, "what it sets runs later"),
        "kill" => {
            for at in (1..words.len()).filter(|at| words[*at].text == "-1" && *at > 1 || words[*at].text == "1") {
                act.sharp(at, format!("`{}` is every process, or the first", words[at].text));
            }
        }
        "systemctl" | "service" => units(act, &words),
        "info" => pager(act, &words),
        "ss" => {
            let closes = |word: &Word| word.text.starts_with("-K") || word.text.starts_with("--kill");
            if let Some(at) = words.iter().position(closes) {
                act.sharp(at, "`-K` closes connections of others");
            }
        }
        "objdump" | "nm" | "readelf" | "size" => act.files(FileHow::Read, &options.operands),
        _ => {}
    }
    true
}

fn units(act: &mut Act, words: &[Word]) {
    let sub = words.iter().skip(1).find(|word| !word.text.starts_with('-')).map_or("", |word| &word.text);
    let looks = [
        "status",
        "is-active",
        "is-enabled",
        "is-failed",
        "list-units",
        "list-unit-files",
        "list-timers",
        "list-sockets",
        "list-jobs",
        "show",
        "cat",
        "list-dependencies",
        "get-default",
        "is-system-running",
    ];
    let is_far = words.iter().any(|word| {
        word.text.starts_with("-H")
            || word.text.starts_with("--host")
            || word.text.starts_with("-M")
            || word.text.starts_with("--root")
    });
    if (looks.contains(&sub) || sub.is_empty()) && !is_far {
        act.deed.reach = Reach::Looks;
    } else if is_far {
        act.sharp(1, "it is about another machine");
    } else if matches!(sub, "link" | "edit" | "enable" | "set-environment" | "import-environment") {
        act.sharp(1, format!("`{sub}` settles what runs later"));
    }
}

fn pager(act: &mut Act, words: &[Word]) {
    if let Some(at) = words.iter().position(|word| word.text.starts_with('+')) {
        act.sharp(at, "it is a command of the pager, which may run others");
    }
}

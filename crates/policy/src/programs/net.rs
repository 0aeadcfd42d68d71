//! Programs that reach the network.

use super::act::Act;
use super::options::{ANYTHING, Options, STRICT, Style, Table};
use crate::deed::{FileHow, Reach};
use crate::shell::{Input, Word};

const NET: Table = Table { net: true, ..STRICT };

const CURL: Table = Table {
    flags: "-sSLfivIgGkNOJRZ#01234678jlqBMV --silent --show-error --location --fail --fail-with-body \
                --include --verbose --head --globoff --get --no-buffer --remote-time --parallel \
                --progress-bar --http1.0 --http1.1 --http2 --http2-prior-knowledge --http3 --http0.9 --ipv4 \
                --ipv6 --tlsv1 --tlsv1.2 --tlsv1.3 --compressed --compressed-ssh --junk-session-cookies \
                --list-only --manual --version --help --remote-name --remote-header-name --remote-name-all \
                --create-dirs --no-progress-meter --path-as-is --raw --tr-encoding --tcp-nodelay \
                --tcp-fastopen --retry-connrefused --retry-all-errors --styled-output --fail-early \
                --parallel-immediate --ssl-reqd --no-keepalive --ca-native --suppress-connect-headers \
                --append --use-ascii --basic --digest --no-sessionid --no-alpn --xattr --skip-existing \
                --clobber",
    values: "-HAXmreuYyzC --header --user-agent --request --max-time --connect-timeout --range --referer \
                --user --retry --retry-delay --retry-max-time --max-redirs --limit-rate --speed-limit \
                --speed-time --time-cond --continue-at --max-filesize --url --interface --local-port \
                --ciphers --tls-max --keepalive-time --parallel-max --rate --expect100-timeout \
                --happy-eyeballs-timeout-ms --url-query --oauth2-bearer --tls13-ciphers \
                --proto --proto-redir --dns-servers --dns-interface --request-target --write-out -w \
                --cacert --capath --crlfile --service-name --variable",
    maybe: "-h",
    edits: "-oDc --output --output-dir --dump-header --cookie-jar --trace --trace-ascii --stderr \
                --libcurl --etag-save --hsts --alt-svc",
    loads: "-KTFdbExtQPU --proto-default --config --upload-file --form --form-string --data --data-raw --data-ascii \
                --data-binary --data-urlencode --json --cookie --cert --key --proxy --preproxy --socks4 \
                --socks4a --socks5 --socks5-hostname --unix-socket --abstract-unix-socket --resolve \
                --connect-to --doh-url --engine --etag-compare --netrc-file --proxy-user --quote --ftp-port \
                --telnet-option --mail-from --mail-rcpt --mail-auth --haproxy-clientip --proxy-header \
                --pubkey --krb --delegation --egd-file --random-file --proxy-cert --proxy-key \
                --ipfs-gateway --pass",
    dares: "--insecure --netrc --netrc-optional --location-trusted --next --proxytunnel --negotiate \
                --ntlm --anyauth --ssl-no-revoke --form-escape --disable-epsv --remove-on-error -:npa",
    ..NET
};

const WGET: Table = Table {
    reach: Reach::Changes,
    flags: "-qvbcNSrlpkKmHLEdFnhV46x --quiet --verbose --no-verbose --continue --timestamping \
                --server-response --spider --recursive --page-requisites --convert-links --backup-converted \
                --mirror --span-hosts --relative --adjust-extension --no-parent --no-clobber \
                --no-directories --force-directories --no-host-directories --show-progress --no-hsts \
                --inet4-only --inet6-only --https-only --content-disposition --trust-server-names \
                --no-cache --no-cookies --delete-after --debug --version --help --random-wait \
                --no-dns-cache --retry-connrefused --no-http-keep-alive --no-if-modified-since --no-glob \
                --compression",
    maybe: "--progress --restrict-file-names",
    values: "-tTwQAXIRDUl --tries --timeout --wait --waitretry --quota --accept --reject --domains \
                --exclude-domains --user-agent --header --referer --level --user --limit-rate --dns-timeout \
                --connect-timeout --read-timeout --max-redirect --cut-dirs --accept-regex --reject-regex \
                --method --include-directories --exclude-directories --default-page --report-speed \
                --secure-protocol --bind-address --follow-tags --ignore-tags --prefer-family",
    reads: "--ca-certificate --ca-directory",
    writes: "-P --directory-prefix",
    edits: "-Ooa --output-document --output-file --append-output --save-cookies --warc-file --warc-cdx --hsts-file \
                --save-headers --rejected-log",
    loads: "-ieB --input-file --execute --config --post-data --post-file --body-data --body-file \
                --load-cookies --password --http-password --certificate --private-key --base --warc-header \
                --proxy-user --proxy-password --ftp-user --ftp-password",
    runs: "--use-askpass",
    dares: "--no-check-certificate --no-config --ask-password --input-metalink --metalink-over-http \
                --preferred-location",
    ..NET
};

const SSH: Table = Table {
    names: "ssh,slogin,autossh",
    reach: Reach::Anything,
    style: Style::First,
    flags: "-46aCfGgkMNnqsTtVvXxyAY",
    values: "-bcemlpQB",
    loads: "-EFiIJSOW",
    runs: "-oDLRwP",
    ..NET
};

/// Those that only ask others; what is not listed is not granted by a wildcard.
const TABLES: [Table; 16] = [
    Table { names: "tcpdump,tshark", net: true, edits: "-w", loads: "-zXFKLr", ..ANYTHING },
    Table {
        names: "nmap",
        net: true,
        style: Style::Dash,
        edits: "-oN -oX -oG -oA -oS",
        loads: "-script -script-args -iL -datadir -servicedb -versiondb -resume -interactive",
        ..ANYTHING
    },
    Table {
        names: "aria2c,axel,yt-dlp,youtube-dl",
        net: true,
        writes: "-odP --output --dir --paths",
        loads: "-ia --conf-path --config-location --config-locations --input-file --batch-file --netrc-cmd --cookies \
                --cookies-from-browser --plugin-dirs --postprocessor-args --downloader \
                --external-downloader --save-session",
        runs: "--exec --exec-before-download --on-download-complete --on-download-error --on-download-start \
               --on-bt-download-complete --use-postprocessor",
        ..ANYTHING
    },
    Table { names: "ping,ping6", flags: "-46aAbBdDfhLnOqrRUvV", values: "-cfiIlmMpPQsStTwWGgZk", ..NET },
    Table { names: "dig,delv", flags: "-46muvhri", values: "-bcpqtxy", reads: "-fk", ..NET },
    Table {
        names: "host,nslookup,drill,kdig",
        flags: "-aACdilnrsTvVw46",
        values: "-cNRtWmp",
        ..Table { open: true, ..NET }
    },
    Table { names: "whois,traceroute,tracepath,mtr,resolvectl,getent,arping", ..Table { open: true, ..NET } },
    Table {
        names: "nc,ncat,netcat,nc.openbsd,nc.traditional",
        flags: "-46CdFhkklNnrStUuvZzDb",
        values: "-IiMmOPpqsTVWw",
        loads: "-xX --proxy --ssl-key",
        runs: "-ec --exec --sh-exec --lua-exec",
        edits: "-o --output --hex-dump",
        dares: "-l --listen --broker --chat",
        ..NET
    },
    Table {
        names: "httpie,http,https,xh,xhs",
        flags: "-vhbISjfFdcq46 --verbose --headers --body --json --form --follow --ignore-stdin \
                --check-status --download --continue --quiet --print-status --stream --offline --all --help \
                --version --pretty --meta",
        values: "-ps --print --style --timeout --max-redirects --auth-type --format-options --unsorted \
                --sorted",
        edits: "-o --output",
        loads: "-aA --auth --session --session-read-only --cert --cert-key --proxy --raw --bearer",
        dares: "--multipart --verify --debug --traceback",
        ..NET
    },
    Table { names: "gh", net: true, loads: "--hostname", ..ANYTHING },
    Table {
        names: "aws,gcloud,az,doctl,heroku,fly,flyctl,vercel,netlify,wrangler,s3cmd,rclone,gsutil,mc",
        net: true,
        loads: "--endpoint-url --profile --cli-input-json",
        ..ANYTHING
    },
    Table {
        names: "telnet,ftp,lftp,tftp,sftp,mosh,rlogin,rsh,socat,openssl,sshfs,mail,mailx,sendmail,msmtp,\
                swaks,wireshark,ngrok,cloudflared,chisel,bore,lt,localtunnel,ssh-copy-id,sshpass,w3m,lynx,\
                links,elinks,websocat,wscat,grpcurl,mitmproxy,iperf,iperf3,ab,wrk,hey,k6,vegeta,sqlmap,\
                hydra,croc,wormhole,magic-wormhole,transfer,rustscan,zmap,masscan,pwncat,evil-winrm,\
                smbclient,ldapsearch,rpcclient,nbtscan,snmpwalk",
        net: true,
        ..ANYTHING
    },
    Table {
        names: "gpg,gpg2",
        edits: "-o --output --logger-file --status-file --attribute-file",
        loads: "--exec-path --photo-viewer --agent-program --dirmngr-program --pinentry-program --homedir --options \
                --load-extension --keyserver-options",
        ..ANYTHING
    },
    Table { names: "ssh-keygen,ssh-add,age,sops,pass,op,vault,keytool,certbot,security,secret-tool", ..ANYTHING },
    Table { names: "ssh-keyscan", flags: "-46cDHv", values: "-pTtO", reads: "-f", ..NET },
    Table { names: "mutt,irssi,weechat,mosquitto_pub,mosquitto_sub,nats,kcat,kafkacat", net: true, ..ANYTHING },
];

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    let words = act.deed.argv.clone();
    match name {
        "curl" => curl(act, &words),
        "wget" => wget(act, &words),
        name if SSH.is_named(name) => ssh(act, &words),
        "sftp" | "ftp" | "lftp" | "telnet" | "socat" | "openssl" | "mosh" | "sshfs" => dangerous(act, &words, name),
        _ => {
            let Some(table) = TABLES.iter().find(|table| table.is_named(name)) else { return false };
            let options = act.judge(table, &words, 1);
            match name {
                "nc" | "ncat" | "netcat" => act.deed.reach = Reach::Anything,
                "gh" => forge(act, &words, &options),
                "http" | "https" | "httpie" | "xh" | "xhs" => items(act, &words, &options),
                _ => {}
            }
        }
    }
    true
}

fn curl(act: &mut Act, words: &[Word]) {
    let options = act.judge_options(&CURL, words, 1);
    for taken in &options.taken {
        let Some(value) = &taken.value else { continue };
        let text = &value.text[..];
        match taken.name {
            "X" | "--request" if !matches!(text, "GET" | "HEAD" | "OPTIONS") => {
                act.sharp(taken.at, format!("`{text}` changes what is on the other side"));
            }
            "H" | "--header" | "w" | "--write-out" if text.starts_with('@') => {
                act.sharp(taken.at, format!("`{text}` sends what a file holds"));
            }
            "--url-query" if text.contains('@') => {
                act.sharp(taken.at, format!("`{text}` may send what a file holds"));
            }
            "w" | "--write-out" if text.contains("%output{") => act.sharp(taken.at, "it writes a file"),
            "--variable" => act.sharp(taken.at, "`--variable` may hold what a file holds"),
            "--url" | "--url-query" if is_odd_address(text) => {
                act.sharp(taken.at, format!("`{text}` is not a plain web address"))
            }
            "K" | "--config" | "T" | "--upload-file" | "E" | "--cert" | "--key" => act.file(FileHow::Read, value),
            "d" | "--data" | "--data-binary" | "--data-ascii" | "--json" | "F" | "--form" | "--data-urlencode" => {
                if let Some((_, file)) = text.split_once('@').filter(|(_, file)| *file != "-") {
                    let file = file.split(';').next().unwrap_or(file);
                    act.file(FileHow::Read, &Word { text: file.into(), tilde: false, ..value.clone() });
                }
            }
            _ => {}
        }
    }
    if options.has(&["O", "J", "--remote-name", "--remote-name-all", "--remote-header-name"]) {
        let folder = options.value(&["--output-dir"]).cloned().unwrap_or_else(|| Word::known("."));
        act.file(FileHow::Edit, &folder);
    }
    // `-k` is among the short flags, as a developer's servers need it, but only for this machine.
    let is_local = |at: &usize| ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| words[*at].text.contains(host));
    if let Some(taken) = options.taken.iter().find(|taken| taken.name == "k")
        && !options.operands.iter().all(is_local)
    {
        act.sharp(taken.at, "`-k` trusts any server");
    }
    for at in &options.operands {
        if is_odd_address(&words[*at].text) {
            act.sharp(*at, format!("`{}` is not a plain web address", words[*at].text));
        }
    }
}

/// `file://`, `scp://`, `gopher://` and the like.
fn is_odd_address(text: &str) -> bool {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    let is_web = matches!(&scheme[..], "http" | "https" | "ws" | "wss");
    let known = [
        "file", "ftp", "ftps", "scp", "sftp", "smb", "smbs", "gopher", "gophers", "dict", "ldap", "ldaps", "telnet",
        "tftp", "imap", "imaps", "pop3", "pop3s", "smtp", "smtps", "rtsp", "rtmp", "mqtt", "ipfs",
    ];
    !is_web && (known.contains(&&scheme[..]) || text.contains("://"))
        || text.contains(['{', '[']) && text.to_ascii_lowercase().contains("file")
}

fn wget(act: &mut Act, words: &[Word]) {
    let options = act.judge_options(&WGET, words, 1);
    for taken in &options.taken {
        if let (true, Some(value)) = (matches!(taken.name, "--method"), &taken.value)
            && !matches!(&value.text[..], "GET" | "HEAD" | "OPTIONS")
        {
            act.sharp(taken.at, format!("`{}` changes what is on the other side", value.text));
        }
        if matches!(taken.name, "i" | "--input-file" | "--post-file" | "--body-file")
            && let Some(value) = &taken.value
        {
            act.file(FileHow::Read, value);
        }
    }
    if !options.has(&["O", "P", "--output-document", "--directory-prefix", "--spider"]) {
        // The server may choose the name.
        act.file(FileHow::Edit, &Word::known("."));
    }
    for at in &options.operands {
        if is_odd_address(&words[*at].text) {
            act.sharp(*at, format!("`{}` is not a plain web address", words[*at].text));
        }
    }
}

/// What it runs there is another machine's; options may run commands here.
fn ssh(act: &mut Act, words: &[Word]) {
    let options = act.judge_options(&SSH, words, 1);
    if options.operands.is_empty() && options.has(&["V", "Q"]) {
        act.deed.reach = Reach::Looks;
        return;
    }
    if options.operands.len() > 1 || !matches!(act.input, Input::Inherited) {
        act.doubt("it runs a command on another machine");
    }
}

/// They have so many ways to run others that only a rule in full grants them.
fn dangerous(act: &mut Act, words: &[Word], name: &str) {
    act.deed.net = true;
    if words.len() == 1 {
        return act.doubt(format!("`{name}` does what it is told later"));
    }
    let looks =
        name == "openssl" && matches!(act.text(1), "version" | "x509" | "dgst" | "rand" | "verify" | "asn1parse");
    for (at, word) in words.iter().enumerate().skip(1) {
        let is_harmless = looks
            && !matches!(
                &word.text[..],
                "-engine" | "-provider" | "-provider-path" | "-config" | "-out" | "-writerand"
            );
        if !is_harmless {
            act.sharp(at, format!("`{name}` may write files or run others by `{}`", word.text));
        }
    }
}

/// What it settles for later, hands out, or sends by its plain interface.
fn forge(act: &mut Act, words: &[Word], options: &Options) {
    let mut operands = options.operands.iter().copied();
    let (Some(first), second) = (operands.next(), operands.next()) else { return };
    let sub = second.map_or("", |at| &words[at].text[..]);
    let looks = matches!(sub, "status" | "list" | "ls" | "view" | "diff" | "checks" | "search");
    match &words[first].text[..] {
        "alias" | "extension" | "extensions" | "ext" | "auth" | "secret" | "variable" | "config" | "ssh-key"
        | "gpg-key"
            if !looks =>
        {
            act.sharp(first, "it settles what runs later, or hands out what opens doors");
        }
        "api" => {
            let changes = |word: &&Word| {
                ["-X", "--method", "-f", "-F", "--field", "--raw-field", "--input"]
                    .iter()
                    .any(|name| word.text.starts_with(name))
            };
            if let Some(word) = words.iter().find(changes) {
                let at = words.iter().position(|own| own == word).unwrap_or(first);
                act.sharp(at, format!("`{}` changes what is on the other side", word.text));
            }
        }
        _ if looks && act.deed.sharp.is_empty() => act.deed.reach = Reach::Looks,
        _ => {}
    }
}

/// `name@file` and `name=@file` send files; `name=value` changes what is there.
fn items(act: &mut Act, words: &[Word], options: &Options) {
    for at in &options.operands {
        let text = &words[*at].text;
        let is_method = matches!(&text[..], "POST" | "PUT" | "PATCH" | "DELETE");
        let is_item = *at > 1 && text.contains(['=', '@']) && !text.contains("==") && !text.contains("://");
        if is_method || is_item {
            act.sharp(*at, format!("`{text}` sends or changes what is on the other side"));
        }
    }
}

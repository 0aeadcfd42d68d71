//! What a component is not granted it cannot do, though it tries; and what it is granted works.

mod common;
use common::*;
use serde_json::json;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use windlass_kernel::{Access, OnCrash};
use windlass_tools::Tool;

const NOTHING: &str = "";

fn with_files() -> Stage {
    let stage = Stage::new();
    stage.write("work/in/a.txt", "inside");
    stage.write("work/other/b.txt", "beside");
    stage.write("out.txt", "outside");
    stage
}

#[tokio::test]
async fn s3_34_files_are_read_in_granted_folders_and_nowhere_else() {
    let stage = with_files();
    let outside = stage.path("out.txt").display().to_string();
    let granted = dirs(&["in read"]);
    assert_eq!(stage.attempt(&granted, "read", "in/a.txt").await, "inside");
    assert_eq!(stage.attempt(&granted, "list", "in").await, "a.txt");
    assert_eq!(stage.attempt(&dirs(&[". read"]), "read", "other/b.txt").await, "beside");
    for path in ["other/b.txt", "in/../other/b.txt", "in/../../out.txt", &outside, "/etc/passwd", "/proc/self/environ"]
    {
        let said = stage.attempt(&granted, "read", path).await;
        assert!(said.starts_with("error: probe: "), "{path}: {said}");
    }
    let said = stage.attempt(NOTHING, "read", "in/a.txt").await;
    assert!(said.starts_with("error: probe: in/a.txt: "), "{said}");
}

#[tokio::test]
async fn s3_34_links_lead_nowhere_outside() {
    let stage = with_files();
    symlink(stage.path("out.txt"), stage.path("work/in/absolute")).unwrap();
    symlink("../../out.txt", stage.path("work/in/relative")).unwrap();
    symlink("../..", stage.path("work/in/up")).unwrap();
    symlink("a.txt", stage.path("work/in/good")).unwrap();
    let granted = dirs(&["in write"]);
    assert_eq!(fs::read_to_string(stage.path("work/in/up/out.txt")).unwrap(), "outside", "the links lead there");
    for path in ["in/absolute", "in/relative", "in/up/out.txt"] {
        for what in ["read", "write"] {
            let said = stage.attempt(&granted, what, path).await;
            assert!(said.starts_with("error: probe: "), "{what} {path}: {said}");
        }
    }
    assert_eq!(fs::read_to_string(stage.path("out.txt")).unwrap(), "outside");
    assert_eq!(stage.attempt(&granted, "read", "in/good").await, "inside");

    symlink(stage.dir.path(), stage.path("work/trap")).unwrap();
    let said = stage.attempt(&dirs(&["trap read"]), "read", "trap/out.txt").await;
    assert!(said.contains("it works in trap of the workspace, which can't be opened"), "{said}");
}

#[tokio::test]
async fn s3_34_writing_takes_a_grant_to_write() {
    let stage = with_files();
    for what in ["write", "remove"] {
        let said = stage.attempt(&dirs(&["in read"]), what, "in/a.txt").await;
        assert!(said.starts_with("error: probe: in/a.txt: "), "{said}");
    }
    let said = stage.attempt(&dirs(&["in read"]), "write", "in/new.txt").await;
    assert!(said.starts_with("error: probe: in/new.txt: "), "{said}");
    assert_eq!(fs::read_to_string(stage.path("work/in/a.txt")).unwrap(), "inside");
    assert!(!stage.path("work/in/new.txt").exists());

    let granted = dirs(&["in write", "other read"]);
    assert_eq!(stage.attempt(&granted, "write", "in/new.txt").await, "written");
    assert_eq!(fs::read_to_string(stage.path("work/in/new.txt")).unwrap(), "written");
    let said = stage.attempt(&granted, "write", "other/b.txt").await;
    assert!(said.starts_with("error: probe: other/b.txt: "), "{said}");
    assert_eq!(stage.attempt(&granted, "remove", "in/a.txt").await, "removed");
}

#[tokio::test]
async fn s3_34_variables_and_the_date_are_told_by_grant() {
    let stage = Stage::new();
    assert_eq!(stage.attempt(NOTHING, "env", "").await, "done; it printed nothing");
    assert_eq!(stage.attempt("[capabilities]\nenv = [\"LANG\", \"NONE\"]", "env", "").await, "LANG=C");
    assert_eq!(stage.attempt(NOTHING, "arguments", "").await, "probe");
    assert_eq!(stage.attempt(NOTHING, "year", "").await, "1970");
    let year: u32 = stage.attempt("[capabilities]\nclock = true", "year", "").await.parse().unwrap();
    assert!(year > 2_000);
    assert_eq!(stage.attempt(NOTHING, "sleep", "2").await, "true", "time that passes is measured without");
}

#[tokio::test]
async fn s3_34_there_is_no_network() {
    let stage = Stage::new();
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = tcp.local_addr().unwrap();
    assert!(std::net::TcpStream::connect(address).is_ok(), "it could be reached");
    tcp.accept().unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    for (what, on) in [
        ("connect", address.to_string()),
        ("send", udp.local_addr().unwrap().to_string()),
        ("resolve", "localhost:80".into()),
    ] {
        let said = stage.attempt("[capabilities]\nenv = [\"LANG\"]\nclock = true", what, &on).await;
        assert!(said.starts_with("error: probe: "), "{what}: {said}");
    }
    assert!(tcp.accept().is_err() && udp.recv(&mut [0]).is_err(), "nothing arrived");
}

#[tokio::test]
async fn what_a_call_would_touch_is_what_is_granted() {
    let stage = with_files();
    let plan = |grants: &str| {
        let plan = stage.tool(grants).plan(&json!({}), &stage.workspace());
        let paths: Vec<String> =
            plan.paths.iter().map(|path| path.replace(&stage.dir.path().display().to_string(), "TMP")).collect();
        (plan.access, plan.on_crash, paths, plan.tags)
    };
    assert_eq!(plan(NOTHING), (Access::Read, OnCrash::Repeat, Vec::new(), Vec::new()));
    let read = (Access::Read, OnCrash::Repeat, vec!["TMP/work".to_owned()], vec!["fs.read".to_owned()]);
    assert_eq!(plan(&dirs(&[". read"])), read);
    symlink(stage.path("work/in"), stage.path("work/link")).unwrap();
    let (access, on_crash, paths, tags) = plan(&dirs(&["./link write"]));
    assert_eq!((access, on_crash), (Access::Write, OnCrash::Unknown));
    assert_eq!(
        (paths, tags),
        (vec!["TMP/work/link".into(), "TMP/work/in".into()], vec!["fs.read".into(), "fs.write".into()])
    );
}

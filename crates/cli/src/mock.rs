//! `windlass mock`: the scripted model server, alone.

use crate::args::Stage;
use crate::exit::{Code, Ended, Failure};
use crate::signals::Signals;
use crate::terminal::print;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use windlass_mock::{Options, Script, Server};

pub async fn serve(stage: Stage) -> Ended {
    let shown = stage.script.display();
    let text = std::fs::read_to_string(&stage.script)
        .map_err(|error| Failure::usage(format!("--script {shown}: it can't be read: {error}")))?;
    let script = Script::parse(&text).map_err(|error| Failure::usage(format!("--script {shown}: {error}")))?;
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, stage.port));
    let options = Options { addr, script, log: stage.log, dump: stage.dump, keep: 0 };
    let mut signals = Signals::listen()?;
    let server = Server::start(options).map_err(|error| Failure::usage(error.to_string()))?;
    print(&format!("{}\n", server.base_url()));
    let (tell, told) = tokio::sync::oneshot::channel();
    if stage.until_stdin_closes {
        std::thread::spawn(move || {
            let _ = io::copy(&mut io::stdin().lock().take(u64::MAX), &mut io::sink());
            let _ = tell.send(());
        });
        tokio::select! {
            _ = signals.next() => {}
            _ = told => {}
        }
    } else {
        signals.next().await;
    }
    server.stop();
    Ok(Code::Done)
}

//! Telemetry: what a collector hears of a run, and what is said where none can be reached.

mod common;
use common::*;

#[cfg(feature = "otel")]
mod sent {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};
    use std::thread;

    /// What a collector on loopback was sent: heads and bodies, one after the other.
    struct Collector {
        address: String,
        heard: Arc<Mutex<Vec<u8>>>,
    }

    impl Collector {
        fn start() -> Collector {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
            let address = format!("http://{}", listener.local_addr().expect("it has an address"));
            let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
            let kept = heard.clone();
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let kept = kept.clone();
                    thread::spawn(move || serve(BufReader::new(stream), &kept));
                }
            });
            Collector { address, heard }
        }

        /// Protobuf holds texts as they are.
        fn has(&self, text: &str) -> bool {
            self.heard.lock().expect("nobody broke it").windows(text.len()).any(|at| at == text.as_bytes())
        }
    }

    fn serve(mut reader: BufReader<TcpStream>, kept: &Mutex<Vec<u8>>) -> Option<()> {
        loop {
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let from = head.len();
                reader.read_line(&mut head).ok().filter(|read| *read > 0)?;
                let line = head[from..].to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().ok()?;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            kept.lock().ok()?.extend([head.into_bytes(), body].concat());
            reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
        }
    }

    #[test]
    fn a_run_is_told_before_the_program_ends() {
        let (stage, collector) = (Stage::new(READER), Collector::start());
        stage.write("notes.txt", "The secret is plum.\n");
        let told = stage.run(&[
            "-p",
            "What is the secret?",
            "--config",
            &format!("otel.endpoint={:?}", collector.address),
            "--config",
            "otel.headers=[\"x-key=one\"]",
        ]);
        assert_eq!(told.code(0).out, "The secret is plum.\n");
        for sent in ["POST /v1/traces", "POST /v1/metrics", "x-key: one", "invoke_agent main", "execute_tool read"] {
            assert!(collector.has(sent), "{sent}");
        }
        assert!(collector.has("gen_ai.client.inference.duration") && collector.has(&stage.newest()));
        assert!(!collector.has("plum"), "content was sent, and nobody asked for it");
    }

    #[test]
    fn the_usual_variables_will_do() {
        let (stage, collector) = (Stage::new(HELLO), Collector::start());
        let mut command = stage.command(&["-p", "hi", "--config", "otel.capture_content=true"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address).env("OTEL_SERVICE_NAME", "harbour");
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20YWJj");
        told(command.output().expect("the binary runs")).code(0);
        for sent in ["harbour", "authorization: Basic YWJj", "Hello from the model."] {
            assert!(collector.has(sent), "{sent}");
        }
    }

    #[test]
    fn a_collector_that_is_not_there_is_told_of_and_changes_nothing() {
        let stage = Stage::new(HELLO);
        let told = stage.run(&["-p", "hi", "--config", "otel.endpoint=\"http://127.0.0.1:1\""]).code(0);
        assert_eq!(told.out, "Hello from the model.\n");
        told.err_has("windlass: telemetry: 2 spans did not reach the collector: ");
    }

    #[test]
    fn a_wrong_address_is_refused_where_it_was_written_for_windlass() {
        let stage = Stage::new(HELLO);
        let wrong = stage.run(&["-p", "hi", "--config", "otel.endpoint=\"collector:4318\""]).code(2);
        wrong.err_has("otel.endpoint (--config): telemetry can't go to `collector:4318`");
        let mut command = stage.command(&["-p", "hi"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317").env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
        let other = told(command.output().expect("the binary runs")).code(0);
        other.err_has("no telemetry is sent: OTEL_EXPORTER_OTLP_PROTOCOL says grpc");
    }
}

#[cfg(not(feature = "otel"))]
mod absent {
    use super::*;

    #[test]
    fn a_build_without_telemetry_says_so() {
        let stage = Stage::new(HELLO);
        let told = stage.run(&["-p", "hi", "--config", "otel.endpoint=\"http://127.0.0.1:4318\""]).code(2);
        told.err_has("was built without telemetry: build it with `--features otel`");
        let mut command = stage.command(&["-p", "hi"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        let told = common::told(command.output().expect("the binary runs")).code(0);
        assert_eq!(told.out, "Hello from the model.\n");
        told.err_has("OTEL_EXPORTER_OTLP_ENDPOINT: no telemetry is sent: nothing can be sent to http://127.0.0.1:4318");
    }
}

#[test]
fn a_header_without_a_value_is_refused_with_its_place() {
    let stage = Stage::new(HELLO);
    let headers = stage.run(&["config", "--config", "otel.headers=[\"x-key\"]"]).code(2);
    headers.err_has("--config: the header `x-key` has no value: write it as name=value");
    let shown = stage.run(&["config", "--config", "otel.headers=[\"x-key=secret\"]"]).code(0);
    assert!(shown.out.contains("otel.headers += \"x-key=…\"") && !shown.out.contains("secret"), "{}", shown.out);
}

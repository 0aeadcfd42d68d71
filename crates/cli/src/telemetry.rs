//! Telemetry: where it is to go, by configuration and the usual variables; and the exporter, where this build has one.

use crate::config::Config;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::terminal;
use exporter::Exporter;
use windlass::AgentBuilder;

const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// May hold keys, and so is not for child processes.
pub const HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const PROTOCOL_VARIABLE: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const SERVICE_VARIABLE: &str = "OTEL_SERVICE_NAME";
const RESOURCE_VARIABLE: &str = "OTEL_RESOURCE_ATTRIBUTES";
const DISABLED_VARIABLE: &str = "OTEL_SDK_DISABLED";
/// The one protocol that is spoken.
const PROTOCOL: &str = "http/protobuf";

/// Where telemetry is to go; nowhere, if nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Wish(Option<Target>);

#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "otel"), expect(dead_code, reason = "what it holds is for an exporter"))]
pub struct Target {
    endpoint: String,
    /// The file, the flag or the variable that says so.
    source: String,
    /// A variable may be meant for other programs: what is wrong with it is told, and keeps nobody from working.
    from_variable: bool,
    headers: Vec<(String, String)>,
    service_name: String,
    resource: Vec<(String, String)>,
    capture_content: bool,
    proxy: Option<String>,
    /// What the environment asks for, if it is not what is spoken.
    other_protocol: Option<String>,
}

impl Wish {
    pub fn read(config: &Config, environment: &Environment) -> Result<Wish, Failure> {
        let own = own_headers(config)?;
        let variable = |name: &str| environment.variable(name).map(str::to_owned);
        let written = config.get("otel.endpoint").and_then(|entry| Some((entry.value.as_text()?, &entry.source)));
        let (endpoint, source, from_variable) = match (written, variable(ENDPOINT_VARIABLE)) {
            (Some((endpoint, source)), _) => (endpoint.to_owned(), format!("otel.endpoint ({source})"), false),
            (None, Some(endpoint)) => (endpoint, ENDPOINT_VARIABLE.to_owned(), true),
            (None, None) => return Ok(Wish(None)),
        };
        let disabled = variable(DISABLED_VARIABLE).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if endpoint.is_empty() || disabled {
            return Ok(Wish(None));
        }
        let pairs = |name: &str| variable(name).map(|list| pairs(&list)).unwrap_or_default();
        let capture = config.get("otel.capture_content").and_then(|entry| entry.value.as_truth());
        let protocol = variable(PROTOCOL_VARIABLE).filter(|protocol| from_variable && protocol != PROTOCOL);
        Ok(Wish(Some(Target {
            // The later wins where both name the same.
            headers: pairs(HEADERS_VARIABLE).into_iter().chain(own).collect(),
            service_name: variable(SERVICE_VARIABLE).unwrap_or_else(|| "windlass".into()),
            resource: pairs(RESOURCE_VARIABLE),
            capture_content: capture.unwrap_or_default(),
            proxy: environment.proxy_for(&endpoint).map(str::to_owned),
            other_protocol: protocol,
            endpoint,
            source,
            from_variable,
        })))
    }
}

/// The headers of the configuration.
fn own_headers(config: &Config) -> Result<Vec<(String, String)>, Failure> {
    let headers = config.texts("otel.headers").into_iter();
    headers
        .map(|(header, source)| match header.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => {
                Err(Failure::usage(format!("{source}: the header `{header}` has no value: write it as name=value")))
            }
        })
        .collect()
}

/// `name=value,name=value`, as the variables have it: values may be percent-encoded. What is no pair is passed over, as
/// OpenTelemetry's specification has it.
fn pairs(list: &str) -> Vec<(String, String)> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.trim().to_owned(), decoded(value.trim())));
    pairs.filter(|(name, _)| !name.is_empty()).collect()
}

fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned())
}

/// What follows the sessions of a desk; when it is dropped, what waits is sent.
pub struct Telemetry(Option<Exporter>);

impl Telemetry {
    pub fn start(wish: &Wish) -> Result<Telemetry, Failure> {
        let Some(target) = &wish.0 else { return Ok(Telemetry(None)) };
        match begin(target) {
            Ok(exporter) => Ok(Telemetry(Some(exporter))),
            Err(why) if target.from_variable => {
                terminal::tell(&format!("windlass: {}: no telemetry is sent: {why}", target.source));
                Ok(Telemetry(None))
            }
            Err(why) => Err(Failure::usage(format!("{}: {why}", target.source))),
        }
    }

    /// Lets it follow the sessions of an agent.
    pub fn watch(&self, builder: AgentBuilder) -> AgentBuilder {
        match &self.0 {
            Some(exporter) => exporter.watch(builder),
            None => builder,
        }
    }
}

fn begin(target: &Target) -> Result<Exporter, String> {
    match &target.other_protocol {
        Some(other) => {
            Err(format!("{PROTOCOL_VARIABLE} says {other}, and {PROTOCOL} alone is spoken: set otel.endpoint"))
        }
        None => Exporter::start(target),
    }
}

#[cfg(feature = "otel")]
mod exporter {
    use super::{AgentBuilder, Target};
    use crate::terminal;
    use crate::words::count;
    use std::sync::Arc;
    use std::time::Duration;
    use windlass_otel::{Options, Telemetry};

    /// How long the end of the program waits for a collector.
    const SEND_WITHIN: Duration = Duration::from_secs(3);

    pub struct Exporter(Arc<Telemetry>);

    impl Exporter {
        pub fn start(target: &Target) -> Result<Exporter, String> {
            let options = Options {
                endpoint: target.endpoint.clone(),
                headers: target.headers.clone(),
                service_name: target.service_name.clone(),
                resource: target.resource.clone(),
                capture_content: target.capture_content,
                proxy: target.proxy.clone(),
                ..Options::default()
            };
            Telemetry::start(options).map(|telemetry| Exporter(Arc::new(telemetry))).map_err(|error| error.to_string())
        }

        pub fn watch(&self, builder: AgentBuilder) -> AgentBuilder {
            let telemetry = self.0.clone();
            builder.observer(move |record| telemetry.observe(record))
        }
    }

    impl Drop for Exporter {
        fn drop(&mut self) {
            let delivery = self.0.shutdown(SEND_WITHIN);
            if delivery.lost() == 0 {
                return;
            }
            let lost = count(delivery.lost(), "span");
            let why = delivery.error.unwrap_or_else(|| "there was no room, or no time".into());
            let told = format!("windlass: telemetry: {lost} did not reach the collector: {why}");
            terminal::tell(&terminal::harmless(&told));
        }
    }
}

#[cfg(not(feature = "otel"))]
mod exporter {
    use super::{AgentBuilder, Target};
    use crate::mask;

    /// There is none in this build.
    pub enum Exporter {}

    impl Exporter {
        pub fn start(target: &Target) -> Result<Exporter, String> {
            Err(format!(
                "nothing can be sent to {}, for this program was built without telemetry: build it with \
                 `--features otel`, or take the address away",
                mask::address(&target.endpoint)
            ))
        }

        pub fn watch(&self, _: AgentBuilder) -> AgentBuilder {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_as_the_variables_have_them() {
        let read = pairs("authorization=Basic%20YWJj,, x = 1 ,nothing,a=b=c,p=100%,=v");
        let read: Vec<(&str, &str)> = read.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(read, [("authorization", "Basic YWJj"), ("x", "1"), ("a", "b=c"), ("p", "100%")]);
    }
}

//! The variables that OpenTelemetry has for the export of traces: they say what the configuration leaves open.

use std::collections::BTreeMap;

use figment::value::Value;

use super::fault::{ConfigFault, ValueOrigin};
use super::layers::ConfigLayer;

/// The layer of these variables, directly above the built-in values.
pub(super) fn layer(env: &BTreeMap<String, String>, warnings: &mut Vec<ConfigFault>) -> ConfigLayer {
    let mut layer = ConfigLayer::new("OpenTelemetry", ValueOrigin::Variable("OTEL_*".to_owned()));
    let read = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let first = |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, read(name)?)));
    let mut set = |key: &str, name: &str, value: String| {
        let path = ["telemetry", "otlp", key].map(str::to_owned);
        layer.set(&path, Value::from(value), ValueOrigin::Variable(name.to_owned()));
    };
    if let Some(name) = read("OTEL_SERVICE_NAME") {
        set("service_name", "OTEL_SERVICE_NAME", name.to_owned());
    }
    // The name of the variable and not its value, which may be a secret.
    if let Some((name, _)) = first(["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]) {
        set("headers_env", name, name.to_owned());
    }
    let is_off = read("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || read("OTEL_TRACES_EXPORTER").is_some_and(|value| value != "otlp");
    let endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
    let Some((name, url)) = first(endpoints).filter(|_| !is_off) else { return layer };
    let protocol = first(["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]);
    if let Some((variable, protocol)) = protocol.filter(|(_, protocol)| *protocol != "http/protobuf") {
        warnings.push(ConfigFault {
            code: "config.unused",
            origin: ValueOrigin::Variable(name.to_owned()),
            key: "telemetry.otlp.endpoint".to_owned(),
            value: None,
            message: format!(
                "{name} is not used: {variable} = {protocol}, and traces are sent as http/protobuf"
            ),
            remedy: "set telemetry.otlp.endpoint to a receiver of OTLP over HTTP".to_owned(),
        });
        return layer;
    }
    // The general one is a base, the other the whole URL.
    let is_whole = name == endpoints[0];
    let whole = if is_whole { url.to_owned() } else { format!("{}/v1/traces", url.trim_end_matches('/')) };
    set("endpoint", name, whole);
    layer
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigFlags, OtlpConfig};

    fn otlp(env: &[(&str, &str)]) -> OtlpConfig {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(None, env, ConfigFlags::default()).unwrap().config.telemetry.otlp
    }

    #[test]
    fn variables_of_opentelemetry_say_what_the_configuration_leaves_open() {
        assert_eq!(otlp(&[]), OtlpConfig::default());
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otel.example.com/in/");
        let whole = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost:4318/mine");
        let own = ("PROSCENIUM__TELEMETRY__OTLP__ENDPOINT", "http://127.0.0.1:1");
        let name = ("OTEL_SERVICE_NAME", "chat");
        let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hunter2");
        let read = otlp(&[base, name, headers]);
        assert_eq!(read.endpoint, "https://otel.example.com/in/v1/traces");
        assert_eq!((read.service_name.as_str(), read.headers_env.as_str()), ("chat", headers.0));
        assert_eq!(otlp(&[base, whole]).endpoint, whole.1);
        assert_eq!(otlp(&[base, whole, own]).endpoint, own.1);
        for off in [
            ("OTEL_SDK_DISABLED", "TRUE"),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ] {
            assert_eq!(otlp(&[base, off]).endpoint, "", "{off:?}");
        }
    }
}

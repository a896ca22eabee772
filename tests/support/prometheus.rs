//! A real Prometheus, `prometheus` and `promtool` of Debian's package, on a free loopback port.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use reqwest::Url;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// Upper bound for Prometheus on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The folder `config`.
fn config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config")
}

/// Whether both programs are installed. In CI they must be; elsewhere a test without them reports it.
pub fn is_installed() -> bool {
    let there = ["prometheus", "promtool"]
        .iter()
        .all(|program| Command::new(program).arg("--version").output().is_ok_and(|ran| ran.status.success()));
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(there || !ci, "CI needs `prometheus` and `promtool` on the path: apt-get install prometheus");
    if !there {
        #[expect(clippy::print_stderr, reason = "a skipped test reports it")]
        {
            eprintln!("skipped: `prometheus` and `promtool` are not installed (apt-get install prometheus)");
        }
    }
    there
}

/// Runs `promtool`, which must succeed, and returns its output.
pub fn promtool(arguments: &[&str]) -> String {
    let ran = Command::new("promtool").args(arguments).current_dir(config()).output().unwrap();
    let output = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "promtool {}: {output}", arguments.join(" "));
    output
}

/// A running Prometheus. It is killed when this is dropped.
pub struct Prometheus {
    child: Child,
    address: String,
    output: Arc<Mutex<String>>,
    client: reqwest::Client,
    _dir: TempDir,
}

impl Prometheus {
    /// Scrapes `target` twice per second, otherwise as configured in `config/prometheus.yml`.
    pub fn scraping(target: &str) -> Self {
        let shipped = config();
        let mut config = std::fs::read_to_string(shipped.join("prometheus.yml")).unwrap();
        for (text, by) in [
            ("\"127.0.0.1:8080\"]", format!("\"{target}\"]")),
            ("scrape_interval: 15s", "scrape_interval: 500ms".to_owned()),
            ("scrape_timeout: 10s", "scrape_timeout: 500ms".to_owned()),
            ("evaluation_interval: 15s", "evaluation_interval: 500ms".to_owned()),
        ] {
            assert_eq!(config.matches(text).count(), 1, "{text}");
            config = config.replace(text, &by);
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("prometheus.yml"), config).unwrap();
        std::fs::copy(shipped.join("alerts.yml"), dir.path().join("alerts.yml")).unwrap();
        let mut child = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg("--web.listen-address=127.0.0.1:0")
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, receiver) = mpsc::sync_channel(1);
        let output = Arc::new(Mutex::new(String::new()));
        let (lines, log) = (BufReader::new(child.stderr.take().unwrap()).lines(), output.clone());
        // It ends with the process.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if line.contains("\"Listening on\"")
                    && let Some((_, address)) = line.rsplit_once("address=")
                {
                    let _ = sender.try_send(address.to_owned());
                }
                log.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        // Dropping it from here on kills the process.
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut prometheus = Self { child, address: String::new(), output, client, _dir: dir };
        match receiver.recv_timeout(PATIENCE) {
            Ok(address) => prometheus.address = address,
            Err(error) => panic!("Prometheus does not listen ({error}):\n{}", prometheus.output()),
        }
        prometheus
    }

    fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    /// `data` of the reply of its API.
    pub async fn api(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, String> {
        let url = format!("http://{}/api/v1/{path}", self.address);
        let url = Url::parse_with_params(&url, parameters).unwrap();
        let reply = self.client.get(url).timeout(PATIENCE).send().await.map_err(|error| error.to_string())?;
        let mut body: Value = reply.json().await.map_err(|error| error.to_string())?;
        if body["status"] == "success" { Ok(body["data"].take()) } else { Err(body["error"].to_string()) }
    }

    /// The current values of the series of an expression.
    pub async fn now(&self, expr: &str) -> Vec<f64> {
        let data = self.api("query", &[("query", expr)]).await.unwrap_or_default();
        let series = data["result"].as_array().cloned().unwrap_or_default();
        series.iter().map(|series| number(&series["value"][1])).collect()
    }

    /// Every value of the series of an expression in the last minute.
    pub async fn lately(&self, expr: &str) -> Result<Vec<f64>, String> {
        let end = jiff::Timestamp::now().as_second();
        let (from, to) = ((end - 60).to_string(), (end + 1).to_string());
        let parameters = [("query", expr), ("start", &from), ("end", &to), ("step", "0.25")];
        let data = self.api("query_range", &parameters).await?;
        let series = data["result"].as_array().cloned().unwrap_or_default();
        let values = series.iter().filter_map(|series| series["values"].as_array()).flatten();
        Ok(values.map(|value| number(&value[1])).collect())
    }

    /// Waits until an expression has a matching value.
    pub async fn until(&self, expr: &str, fits: impl Fn(f64) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let values = self.now(expr).await;
            if values.iter().any(|value| fits(*value)) {
                return;
            }
            assert!(Instant::now() < end, "{expr} is still {values:?}:\n{}", self.output());
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number(value: &Value) -> f64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

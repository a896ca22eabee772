//! A real nginx with the shipped configuration, as Debian's package has it, on free loopback ports.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The name that the shipped configuration serves.
pub const HOST: &str = "assistant.example.com";

/// Whether `nginx` and `openssl` are installed. In CI they must be; elsewhere a test without them reports it.
pub fn is_installed() -> bool {
    let runs = |program: &str, flag: &str| {
        Command::new(program).arg(flag).output().is_ok_and(|ran| ran.status.success())
    };
    let there = runs("nginx", "-v") && runs("openssl", "version");
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(there || !ci, "CI needs `nginx` and `openssl` on the path: apt-get install nginx openssl");
    if !there {
        #[expect(clippy::print_stderr, reason = "a skipped test reports it")]
        {
            eprintln!("skipped: `nginx` and `openssl` are not installed (apt-get install nginx openssl)");
        }
    }
    there
}

/// A running nginx. It is killed when this is dropped.
pub struct Nginx {
    child: Child,
    dir: TempDir,
    /// Where it takes requests with TLS.
    pub https: SocketAddr,
    /// Where it takes them without.
    pub http: SocketAddr,
}

impl Nginx {
    /// In front of `server`, configured by `config/nginx.conf`.
    pub async fn before(server: SocketAddr) -> Self {
        let dir = tempfile::tempdir().unwrap();
        certificate(dir.path());
        // A port that was free can be taken before nginx listens: then others are tried.
        for _ in 0..20 {
            let [https, http] = free_ports();
            configure(dir.path(), server, https, http);
            let mut child = start(dir.path());
            if listens(&mut child, https).await {
                return Self { child, dir, https, http };
            }
        }
        panic!("nginx does not start: {}", std::fs::read_to_string(dir.path().join("error.log")).unwrap());
    }

    /// A client that trusts its certificate alone, and finds it under its name.
    pub fn client(&self) -> reqwest::Client {
        let pem = std::fs::read(self.dir.path().join("cert.pem")).unwrap();
        reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([reqwest::Certificate::from_pem(&pem).unwrap()])
            .redirect(reqwest::redirect::Policy::none())
            .resolve(HOST, self.https)
            .build()
            .unwrap()
    }

    /// An address behind TLS.
    pub fn url(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.https.port())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_ports() -> [SocketAddr; 2] {
    [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap()).map(|port| port.local_addr().unwrap())
}

fn certificate(dir: &Path) {
    let name = format!("DNS:{HOST}");
    let ran = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-keyout", "key.pem", "-out", "cert.pem", "-subj", &format!("/CN={HOST}")])
        .args(["-addext", &format!("subjectAltName={name}"), "-addext", "basicConstraints=critical,CA:FALSE"])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Writes the shipped configuration, with the addresses and files of the test.
fn configure(dir: &Path, server: SocketAddr, https: SocketAddr, http: SocketAddr) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/nginx.conf");
    let mut config = std::fs::read_to_string(shipped).unwrap();
    let path = |name: &str| dir.join(name).display().to_string();
    for (text, by) in [
        ("server 127.0.0.1:8080;", format!("server {server};")),
        ("listen 80;", format!("listen {http};")),
        ("listen 80 default_server;", format!("listen {http} default_server;")),
        ("listen 443 ssl http2;", format!("listen {https} ssl http2;")),
        ("listen 443 ssl default_server;", format!("listen {https} ssl default_server;")),
        // Not every machine has IPv6.
        ("    listen [::]:80;\n", String::new()),
        ("    listen [::]:80 default_server;\n", String::new()),
        ("    listen [::]:443 ssl http2;\n", String::new()),
        ("    listen [::]:443 ssl default_server;\n", String::new()),
        (&format!("/etc/ssl/certs/{HOST}.pem"), path("cert.pem")),
        (&format!("/etc/ssl/private/{HOST}.key"), path("key.pem")),
    ] {
        assert_eq!(config.matches(text).count(), 1, "{text}");
        config = config.replace(text, &by);
    }
    std::fs::write(dir.join("proscenium.conf"), config).unwrap();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {};\n", path(name)))
        .concat();
    let whole = format!(
        "daemon off;\nmaster_process off;\npid {};\nerror_log {};\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}include {};\n}}\n",
        path("nginx.pid"),
        path("error.log"),
        path("proscenium.conf"),
    );
    std::fs::write(dir.join("nginx.conf"), whole).unwrap();
}

fn start(dir: &Path) -> Child {
    Command::new("nginx")
        .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
        .arg(dir)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until it listens; false if it ended before.
async fn listens(child: &mut Child, at: SocketAddr) -> bool {
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if tokio::net::TcpStream::connect(at).await.is_ok() {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

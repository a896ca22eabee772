//! A real PostgreSQL of Debian's package, on a Unix socket in a folder of its own. It is never run as root: the server
//! refuses that.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

/// The account that the server runs as where the tests run as root.
const ACCOUNT: &str = "nobody";

/// The superuser of the databases.
const OWNER: &str = "owner";

/// A running server. It is stopped when this is dropped, and also when the thread that started it ends in any other way.
#[derive(Debug)]
pub struct PostgresServer {
    child: Child,
    dir: TempDir,
}

/// The folder of `initdb` and `postgres`: `PG_BIN`, or the newest version that Debian has installed.
fn programs() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> = installed.map(|version| version.path().join("bin")).collect();
    versions.sort();
    let given = std::env::var_os("PG_BIN").map(PathBuf::from);
    given.into_iter().chain(versions.into_iter().rev()).find(|folder| {
        let version = Command::new(folder.join("postgres")).arg("--version").output();
        version.is_ok_and(|ran| ran.status.success()) && folder.join("initdb").exists()
    })
}

/// User and group of [`ACCOUNT`], if this process runs as root.
fn account() -> Option<(u32, u32)> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = accounts.lines().find(|line| line.starts_with(&format!("{ACCOUNT}:"))).unwrap();
    let fields: Vec<&str> = line.split(':').collect();
    Some((fields[2].parse().unwrap(), fields[3].parse().unwrap()))
}

fn command(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null()).env("LC_ALL", "C").env("TZ", "UTC");
    if let Some((user, group)) = account() {
        command.uid(user).gid(group);
    }
    command
}

impl PostgresServer {
    /// Starts a server with an empty database `postgres`. `None` where there is no PostgreSQL, which is reported; CI must
    /// have one.
    pub fn start(test: &str) -> Option<Self> {
        let Some(programs) = programs() else {
            let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(
                !ci,
                "CI needs PostgreSQL: apt-get install postgresql, or set PG_BIN to its folder of programs"
            );
            let mut report = std::io::stderr();
            let _ =
                writeln!(report, "skipped: {test}: PostgreSQL is not installed (apt-get install postgresql)");
            return None;
        };
        // The name of a socket is short; the folder for temporary files may be long.
        let dir = tempfile::Builder::new().prefix("proscenium-pg-").tempdir_in("/tmp").unwrap();
        if let Some((user, group)) = account() {
            chown(dir.path(), Some(user), Some(group)).unwrap();
        }
        let initialised = command(&programs.join("initdb"), dir.path())
            .args(["-D", "data", "-U", OWNER, "--auth=trust", "--locale=C", "-E", "UTF8", "--no-sync"])
            .output()
            .unwrap();
        assert!(initialised.status.success(), "initdb: {}", String::from_utf8_lossy(&initialised.stderr));
        // A signal when the thread that starts it ends, so that a killed test leaves no server.
        let mut server = match Command::new("setpriv").arg("--version").output() {
            Ok(_) => {
                let mut server = Command::new("setpriv");
                server.args(["--pdeathsig", "QUIT"]).current_dir(dir.path()).stdin(Stdio::null());
                if let Some((user, group)) = account() {
                    server.args([
                        "--clear-groups",
                        "--reuid",
                        &user.to_string(),
                        "--regid",
                        &group.to_string(),
                    ]);
                }
                server.arg(programs.join("postgres"));
                server
            }
            Err(_) => command(&programs.join("postgres"), dir.path()),
        };
        let mut child = server
            .env("LC_ALL", "C")
            .args(["-D", "data", "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=30"])
            .args(["-c", "log_statement=none", "-c", "shared_buffers=16MB", "-k"])
            .arg(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let mut lines = String::new();
        while log.read_line(&mut line).unwrap() > 0 && !line.contains("ready to accept connections") {
            lines.push_str(&std::mem::take(&mut line));
        }
        let server = Self { child, dir };
        assert!(line.contains("ready to accept connections"), "postgres: {lines}");
        // The rest of the log is read, so that the server never waits for room in the pipe.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Some(server)
    }

    /// The URL of `database` for `role`.
    pub fn url(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@localhost/{database}?host={}", self.dir.path().display())
    }

    /// A superuser's connection to `database`.
    pub async fn owner(&self, database: &str) -> PgConnection {
        PgConnection::connect(&self.url(OWNER, database)).await.unwrap()
    }

    /// Executes `script` in `database` as a superuser.
    pub async fn run(&self, database: &str, script: &str) {
        let mut connection = self.owner(database).await;
        sqlx::raw_sql(sqlx::AssertSqlSafe(script.to_owned())).execute(&mut connection).await.unwrap();
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let ended = Command::new("kill").args(["-QUIT", &self.child.id().to_string()]).status();
        if !ended.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

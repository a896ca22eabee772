//! The address file of the server that owns a data directory, by which the other commands find it.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use proscenium::run::TenantId;
use proscenium::scene::shipped_folder;

use super::failure::Failure;

/// The file's name in the data directory.
const FILE: &str = "server";

/// The contents of an address file: the server's address, and the parts of its configuration that a command
/// line may also name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRecord {
    /// Its address.
    pub url: String,
    /// The configuration file that it reads.
    pub config: Option<PathBuf>,
    /// The directory of its scenes beside the built-in ones.
    pub scenes: Option<PathBuf>,
    /// Its defaults; absent if its version does not write them.
    pub asked: Option<ServerDefaults>,
}

/// An address file. It is removed when this is dropped.
#[derive(Debug)]
pub struct AddressFile {
    path: PathBuf,
    /// The part that does not change while it serves.
    text: String,
}

/// The server's defaults for requests that say nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDefaults {
    /// The tenant of requests without a key.
    pub tenant: TenantId,
    /// A hash of each configured value that is not at its default, by key.
    pub values: BTreeMap<String, String>,
}

/// Writes the address of a server that is ready. The file of a killed server is replaced.
///
/// # Errors
/// `serve.address_file` if the file cannot be written.
#[cfg(test)]
pub fn leave(
    data_dir: &Path,
    addr: SocketAddr,
    config: Option<&Path>,
    scenes: Option<&Path>,
    asked: &ServerDefaults,
) -> Result<AddressFile, Failure> {
    let left = AddressFile::new(data_dir, addr, config, scenes);
    left.write(asked)?;
    Ok(left)
}

impl AddressFile {
    /// An address file that is not written yet.
    pub fn new(data_dir: &Path, addr: SocketAddr, config: Option<&Path>, scenes: Option<&Path>) -> Self {
        let mut text = format!("pid {}\nurl http://{}\n", std::process::id(), reached(addr));
        for (name, named) in [("config", config), ("scenes", scenes)] {
            // A path that is not one line of text is omitted; it then differs from every other.
            let named = named.map(whole).and_then(|named| named.to_str().map(str::to_owned));
            if let Some(named) = named.filter(|named| !named.contains(['\n', '\r'])) {
                text.push_str(&format!("{name} {named}\n"));
            }
        }
        Self { path: data_dir.join(FILE), text }
    }

    /// Writes the address and the server's current defaults.
    ///
    /// # Errors
    /// `store.full` if the disk is full, `serve.address_file` if the file cannot be written otherwise.
    pub fn write(&self, asked: &ServerDefaults) -> Result<(), Failure> {
        let mut text = format!("{}tenant {}\n", self.text, asked.tenant);
        for (key, hash) in &asked.values {
            text.push_str(&format!("value {key} {hash}\n"));
        }
        // Renamed into place, so that a reader sees all of it or nothing.
        let whole = self.path.with_extension("new");
        let written = write_private(&whole, &text).and_then(|()| std::fs::rename(&whole, &self.path));
        written.map_err(|error| {
            let what = format!("{}: the server's address cannot be written: {error}", self.path.display());
            match error.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    Failure::new("store.full", what)
                }
                _ => Failure::new("serve.address_file", what),
            }
        })
    }
}

/// The canonical or at least absolute form of a path; scenes inside the program are at no path.
pub fn whole(path: &Path) -> PathBuf {
    if shipped_folder(path).is_some() {
        return path.to_owned();
    }
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// Creates a file that only this user can access. An existing file or link in its place is removed; the target
/// of a link is not touched.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = std::fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())
}

/// The address for clients on this machine: loopback if the server listens on every interface.
fn reached(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, addr.port())
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // A file that remains is recognised as stale by its process id.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Finds the server that owns the data directory. `owned` is the store's error that says so.
///
/// # Errors
/// `owned` with a remedy if the owner is not a server.
pub fn find(data_dir: &Path, owned: Failure) -> Result<ServerRecord, Failure> {
    let field = |file: &str, name: &str| {
        let text = std::fs::read_to_string(data_dir.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    let owner = field("lock", "pid ");
    match (field(FILE, "pid "), field(FILE, "url ")) {
        // The file of another process is stale, and another program may listen there by now.
        (Some(pid), Some(url)) if owner.is_none_or(|owner| owner == pid) => {
            let named = |name| field(FILE, name).map(PathBuf::from);
            let tenant = field(FILE, "tenant ").and_then(|tenant| TenantId::new(&tenant).ok());
            let text = std::fs::read_to_string(data_dir.join(FILE)).unwrap_or_default();
            let values = text.lines().filter_map(|line| line.strip_prefix("value ")?.rsplit_once(' '));
            let values = values.map(|(key, hash)| (key.to_owned(), hash.to_owned())).collect();
            let asked = tenant.map(|tenant| ServerDefaults { tenant, values });
            Ok(ServerRecord { url, config: named("config "), scenes: named("scenes "), asked })
        }
        _ => Err(owned.help(
            "its owner is not a server that is ready: stop it, or try again when `proscenium serve` has printed its address",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tenant: &str) -> ServerDefaults {
        let values = [("approval.plans".to_owned(), "0123".to_owned())].into();
        ServerDefaults { tenant: TenantId::new(tenant).unwrap(), values }
    }

    fn owned() -> Failure {
        Failure::new("store.in_use", "in use by process 1")
    }

    #[test]
    fn a_server_is_found_while_it_serves() {
        let dir = tempfile::tempdir().unwrap();
        let lock = |pid: u32| std::fs::write(dir.path().join("lock"), format!("pid {pid}\n")).unwrap();
        lock(std::process::id());
        let left = leave(dir.path(), "0.0.0.0:8080".parse().unwrap(), None, None, &asked("local")).unwrap();
        let plain = ServerRecord {
            url: "http://127.0.0.1:8080".to_owned(),
            config: None,
            scenes: None,
            asked: Some(asked("local")),
        };
        assert_eq!(find(dir.path(), owned()).unwrap(), plain);
        drop(left);
        let scenes = dir.path().join("the scenes");
        std::fs::create_dir(&scenes).unwrap();
        let roundabout = scenes.join("..").join("the scenes");
        let addr = "127.0.0.1:1".parse().unwrap();
        let left = leave(dir.path(), addr, None, Some(&roundabout), &asked("local")).unwrap();
        assert_eq!(find(dir.path(), owned()).unwrap().scenes, Some(whole(&scenes)));
        left.write(&asked("acme")).unwrap();
        assert_eq!(find(dir.path(), owned()).unwrap().asked, Some(asked("acme")));
        drop(left);
        let failure = find(dir.path(), owned()).unwrap_err();
        assert_eq!(failure.code, "store.in_use");
        assert!(failure.remedy.unwrap().contains("not a server"));
    }

    #[test]
    fn address_file_of_a_killed_server_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let left = leave(dir.path(), "127.0.0.1:1".parse().unwrap(), None, None, &asked("local")).unwrap();
        std::fs::write(dir.path().join("lock"), "pid 1\nsince 2026-01-01T00:00:00Z\n").unwrap();
        assert_eq!(find(dir.path(), owned()).unwrap_err().code, "store.in_use");
        drop(left);
    }

    #[test]
    fn an_address_of_every_interface_is_reached_by_loopback() {
        for (given, expected) in
            [("[::]:1", "[::1]:1"), ("0.0.0.0:2", "127.0.0.1:2"), ("192.0.2.1:3", "192.0.2.1:3")]
        {
            assert_eq!(reached(given.parse().unwrap()), expected.parse().unwrap());
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_address_is_this_users_only_and_no_link_is_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let other = dir.path().join("other");
        std::fs::write(&other, "keep this").unwrap();
        symlink(&other, dir.path().join("server.new")).unwrap();
        let asked = ServerDefaults { tenant: TenantId::new("t").unwrap(), values: BTreeMap::new() };
        let _left = leave(dir.path(), "127.0.0.1:80".parse().unwrap(), None, None, &asked).unwrap();
        let file = dir.path().join(FILE);
        assert_eq!(std::fs::symlink_metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "keep this");
    }
}

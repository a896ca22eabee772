//! Where the server is that owns a data directory: it leaves its address there, and the other commands
//! find it.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::failure::Failure;

/// The file's name in the data directory.
const FILE: &str = "server";

/// An address that was left. It is taken back when this is dropped.
#[derive(Debug)]
pub struct Left {
    path: PathBuf,
}

/// Leaves the address of a server that is ready. What a killed server left is replaced.
///
/// # Errors
/// `serve.address_file` where the file cannot be written.
pub fn leave(data_dir: &Path, addr: SocketAddr) -> Result<Left, Failure> {
    let path = data_dir.join(FILE);
    let text = format!("pid {}\nurl http://{}\n", std::process::id(), reached(addr));
    // A reader sees all of it or nothing.
    let whole = data_dir.join(format!("{FILE}.new"));
    let written = write(&whole, &text).and_then(|()| std::fs::rename(&whole, &path));
    written.map_err(|error| {
        let what = format!("{}: the server's address cannot be written: {error}", path.display());
        Failure::new("serve.address_file", what)
    })?;
    Ok(Left { path })
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    file.write_all(text.as_bytes())
}

/// An address for clients on this machine: one that means "every interface" is reached by loopback.
fn reached(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, addr.port())
}

impl Drop for Left {
    fn drop(&mut self) {
        // One that stays is found to be stale by its process.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The address of the server that owns the data directory: the one that its owner left. `owned` is how the
/// store said that it is owned.
///
/// # Errors
/// `owned` with what to do where the owner is no server.
pub fn find(data_dir: &Path, owned: Failure) -> Result<String, Failure> {
    let field = |file: &str, name: &str| {
        let text = std::fs::read_to_string(data_dir.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    let owner = field("lock", "pid ");
    match (field(FILE, "pid "), field(FILE, "url ")) {
        // What another process left is stale, and somebody else may listen there by now.
        (Some(pid), Some(url)) if owner.is_none_or(|owner| owner == pid) => Ok(url),
        _ => Err(owned.help(
            "what owns it is no server that is ready: end it, or try again when `proscenium serve` has said its address",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned() -> Failure {
        Failure::new("store.in_use", "in use by process 1")
    }

    #[test]
    fn a_server_is_found_while_it_serves() {
        let dir = tempfile::tempdir().unwrap();
        let lock = |pid: u32| std::fs::write(dir.path().join("lock"), format!("pid {pid}\n")).unwrap();
        lock(std::process::id());
        let left = leave(dir.path(), "0.0.0.0:8080".parse().unwrap()).unwrap();
        assert_eq!(find(dir.path(), owned()).unwrap(), "http://127.0.0.1:8080");
        drop(left);
        let failure = find(dir.path(), owned()).unwrap_err();
        assert_eq!(failure.code, "store.in_use");
        assert!(failure.remedy.unwrap().contains("no server"));
    }

    #[test]
    fn what_a_killed_server_left_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let left = leave(dir.path(), "127.0.0.1:1".parse().unwrap()).unwrap();
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
}

//! The wire tests written in Python, `tests/python`: the official OpenAI client with its defaults, and a
//! fuzzer that reads the document at /api/openapi.json. It takes longest of all tests, and tests begin in the order of their
//! names: under a late one, all others would have ended, and one processor would wait.

use std::path::Path;
use std::process::Command;

/// The exit status of `tests/python/run` when the Python packages cannot be installed.
const NO_ENVIRONMENT: i32 = 75;

#[test]
fn official_client_and_fuzzer_pass() {
    let has_python = Command::new("python3").arg("--version").output().is_ok_and(|ran| ran.status.success());
    if !has_python {
        // Visible with `cargo test -- --nocapture`, and if the test fails.
        eprintln!("skipped: python3 is not installed; the official client and schemathesis were not run");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ran = Command::new("python3")
        .arg(root.join("tests/python/run"))
        .env("PROSCENIUM", env!("CARGO_BIN_EXE_proscenium"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // In CI it runs or fails; elsewhere the network may be missing.
    if ran.status.code() == Some(NO_ENVIRONMENT) && std::env::var_os("CI").is_none() {
        eprintln!("skipped: {}", text(&ran.stderr));
        return;
    }
    assert!(ran.status.success(), "{}\n{}", text(&ran.stdout), text(&ran.stderr));
}

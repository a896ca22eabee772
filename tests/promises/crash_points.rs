//! The shipped program cannot be killed through an environment variable; only the test program can.

use super::process::{CRASHING, SHIPPED, Workspace};

const ASK: [&str; 2] = ["chat", "Che tempo fa a Milano?"];

/// All variables of the crash points.
const VARIABLES: [&str; 5] =
    ["CRASH_POINT_AT", "CRASH_POINT_SKIP", "CRASH_POINT_WORDS", "CRASH_POINT_PANICS", "CRASH_MOST_EVENTS"];

/// Whether a program has these bytes. Unoptimised, a search of our own through hundreds of megabytes takes a minute.
fn holds(program: &str, text: &str) -> bool {
    let status = std::process::Command::new("grep").args(["-aqF", text, program]).status().unwrap();
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
    status.success()
}

#[test]
fn shipped_program_ignores_crash_point_variables() {
    for variable in VARIABLES {
        assert!(!holds(SHIPPED, variable), "{variable}");
        assert!(holds(&CRASHING, variable), "{variable}");
    }
}

#[test]
fn shipped_program_survives_where_the_test_program_is_killed() {
    let places = ["before:run_queued", "after:run_queued", "before:answered", "after:run_completed"];
    for place in places {
        let env = [("CRASH_POINT_AT", place.to_owned()), ("CRASH_MOST_EVENTS", "3".to_owned())];
        let ran = Workspace::new().spawn_program(SHIPPED, &ASK, &env).end();
        assert_eq!(ran.status, 0, "{place}: {ran:#?}");
    }
    let killed = Workspace::new().spawn_with(&ASK, &[("CRASH_POINT_AT", places[1].to_owned())]).end();
    assert_eq!(killed.status, -1, "{killed:#?}");
}

#[test]
fn user_builds_exclude_the_crash_point_program() {
    let manifest: toml::Table = include_str!("../../Cargo.toml").parse().unwrap();
    let default = manifest["features"]["default"].as_array().unwrap();
    assert!(!default.contains(&toml::Value::from("crash-points")));
    // Nobody installs an example.
    let examples = manifest["example"].as_array().unwrap();
    assert!(examples.iter().any(|example| example["name"].as_str() == Some("proscenium-crashing")));
    let programs = manifest["bin"].as_array().unwrap();
    assert!(programs.iter().all(|bin| bin["name"].as_str() == Some("proscenium")));
}

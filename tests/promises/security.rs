//! SECURITY.md names existing files and tests.

use std::path::Path;

#[test]
fn every_file_and_test_of_the_threat_model_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let mut tests = 0;
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let held = row.rsplit('|').nth(1).unwrap_or_default();
        // Each link, followed by the tests of that file.
        for part in held.split("](").skip(1) {
            let (file, rest) = part.split_once(')').unwrap();
            let text =
                std::fs::read_to_string(root.join(file)).unwrap_or_else(|_| panic!("no {file}: {row}"));
            let rest = rest.split_once('[').map_or(rest, |(tests, _)| tests);
            for test in rest.split('`').skip(1).step_by(2).filter(|_| file.ends_with(".rs")) {
                assert!(text.contains(&format!("fn {test}(")), "no {test} in {file}");
                tests += 1;
            }
        }
        let rules = row.split('`').skip(1).step_by(2);
        for rule in rules.filter(|text| text.contains('/') && !text.starts_with('.') && !text.contains(' ')) {
            assert!(root.join("src").join(rule).exists(), "no src/{rule}");
        }
    }
    assert!(tests >= 25, "{tests}");
}

//! A report as JUnit XML, which build servers show.

use std::fmt::Write;

use super::report::{EvalReport, RequestReport};

/// The report: a test suite for each file, a test case for each request. A request fails unless all its executions were
/// right; one that has no label that is judged is skipped, and one that was left out is an error.
pub fn junit(report: &EvalReport) -> String {
    let mut files: Vec<(String, Vec<&RequestReport>)> = Vec::new();
    for request in &report.requests {
        let file = request.file.display().to_string();
        match files.iter_mut().find(|(name, _)| *name == file) {
            Some((_, requests)) => requests.push(request),
            None => files.push((file, vec![request])),
        }
    }
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.push_str(&format!(
        "<testsuites name=\"proscenium eval\"{}>\n",
        totals(&report.requests.iter().collect::<Vec<_>>())
    ));
    for (file, requests) in files {
        xml.push_str(&format!("  <testsuite name=\"{}\"{}>\n", escaped(&file), totals(&requests)));
        requests.into_iter().for_each(|request| case(&mut xml, &file, request));
        xml.push_str("  </testsuite>\n");
    }
    if let Some(why) = &report.ended_early {
        xml.push_str(&format!(
            "  <testsuite name=\"evaluation\" tests=\"1\" errors=\"1\" failures=\"0\" skipped=\"0\" time=\"0.000\">\n    \
             <testcase name=\"execution\" classname=\"evaluation\" time=\"0.000\">\n      <error message=\"{}\"/>\n    \
             </testcase>\n  </testsuite>\n",
            escaped(why)
        ));
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn totals(requests: &[&RequestReport]) -> String {
    let errors = requests.iter().filter(|request| request.is_left_out()).count();
    let skipped = requests.iter().filter(|request| !request.judged && !request.is_left_out()).count();
    let failures = requests.iter().filter(|request| request.first_wrong().is_some()).count();
    let seconds: f64 = requests.iter().map(|request| seconds(request)).sum();
    let tests = requests.len();
    format!(
        " tests=\"{tests}\" errors=\"{errors}\" failures=\"{failures}\" skipped=\"{skipped}\" time=\"{seconds:.3}\""
    )
}

fn seconds(request: &RequestReport) -> f64 {
    request.repetitions.iter().map(|repetition| repetition.ms).sum::<f64>() / 1000.0
}

fn case(xml: &mut String, file: &str, request: &RequestReport) {
    let id = escaped(&request.id);
    // Readers group test cases by it.
    let class = escaped(if request.class.is_empty() { file } else { &request.class });
    let time = seconds(request);
    let head = format!(
        "    <testcase name=\"{id}\" classname=\"{class}\" file=\"{}\" line=\"{}\" time=\"{time:.3}\"",
        escaped(file),
        request.line
    );
    let Some(repetition) = request.first_wrong() else {
        let body = match (request.is_left_out(), request.judged) {
            (true, _) => {
                ">\n      <error message=\"not executed: it was stopped, or no more may be spent\"/>\n    </testcase>\n"
            }
            (false, false) => ">\n      <skipped/>\n    </testcase>\n",
            (false, true) => "/>\n",
        };
        xml.push_str(&head);
        xml.push_str(body);
        return;
    };
    let kinds: Vec<String> = repetition.faults.iter().map(|fault| fault.kind.to_string()).collect();
    let mut text = format!("say: {}\nanswer: {}\n", request.say, repetition.answer);
    for call in &repetition.calls {
        // Writing into a text does not fail.
        let _ = writeln!(text, "call: {call}");
    }
    for fault in &repetition.faults {
        let _ = writeln!(text, "{}: {}", fault.kind, fault.detail);
    }
    let message = format!(
        "{} of {} right; {}",
        request.right_repetitions(),
        request.repetitions.len(),
        kinds.join(", ")
    );
    xml.push_str(&format!(
        "{head}>\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
        kinds.first().map_or("", String::as_str),
        escaped(&message),
        escaped(&text)
    ));
}

/// Text within XML. Characters that XML does not have are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::testing::example;

    #[test]
    fn requests_are_test_cases_and_text_is_escaped() {
        let mut report = example();
        report.requests[1].class.clear();
        report.requests[1].say = "Is 1 < 2 & \"3\" > 2?\u{1b}\u{ffff}".to_owned();
        let xml = junit(&report);
        let document = roxmltree::Document::parse(&xml).unwrap_or_else(|error| panic!("{error}\n{xml}"));
        let cases: Vec<_> = document.descendants().filter(|node| node.has_tag_name("testcase")).collect();
        let failed = |node: &roxmltree::Node| node.children().any(|child| child.has_tag_name("failure"));
        let names: Vec<(&str, bool)> =
            cases.iter().map(|node| (node.attribute("name").unwrap(), failed(node))).collect();
        assert_eq!(names, [("send", false), ("cost", true), ("late", false)]);
        let classes: Vec<_> = cases.iter().map(|node| node.attribute("classname")).collect();
        assert_eq!(classes[..2], [Some("request"), cases[1].attribute("file")], "no class: its file");
        assert_eq!(document.root_element().attribute("failures"), Some("1"));
        assert_eq!(document.root_element().attribute("errors"), Some("1"));
        let failure = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
        assert!(failure.text().unwrap().contains("say: Is 1 < 2 & \"3\" > 2?\n"), "{xml}");
    }
}

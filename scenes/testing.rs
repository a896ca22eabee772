//! What the tests of the shipped scenes share.

use serde_json::Value;

/// The sentence that a `scene.toml` makes of a tool's result; `day` leaves dates as they are.
pub fn said(scene: &str, language: &str, tool: &str, result: &Value) -> String {
    let scene: toml::Table = scene.parse().unwrap();
    let tools = scene["tools"].as_array().unwrap();
    let tool = tools.iter().find(|t| t["name"].as_str() == Some(tool)).unwrap();
    let mut environment = minijinja::Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::SemiStrict);
    environment.add_filter("day", |day: String| day);
    environment.render_str(tool["say"][language].as_str().unwrap(), result).unwrap()
}

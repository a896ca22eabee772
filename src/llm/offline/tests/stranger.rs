//! Scenes added later.

#[test]
fn probe() {
    let Ok(words) = std::env::var("PROBE") else { return };
    let world = super::support::World::all();
    let text = world.scenes.iter().map(|s| s.to_string()).collect::<Vec<_>>().join("\n");
    let index = crate::llm::offline::routing::Index::of(&text, || text.lines().map(|l| serde_json::from_str(l).unwrap()).collect());
    for words in words.split('|') {
        eprintln!("== {words}");
        for (name, score) in index.scores(words, jiff::civil::date(2026, 5, 4)) {
            eprintln!("   {name} {score:.3}");
        }
    }
}

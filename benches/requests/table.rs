//! Prints the tables in Markdown.

use proscenium::load::usage::ProcessUsage;

use super::load::Sample;
use super::measure::{MANY, OFFERED, SESSIONS};

/// One subject in one round.
pub struct Measured {
    /// The subject.
    pub name: String,
    /// Sessions at once.
    pub sessions: u32,
    /// Whether flows were offered at a rate.
    pub paced: bool,
    /// Its speed.
    pub sample: Sample,
    /// Its resource usage.
    pub usage: ProcessUsage,
    /// Milliseconds of processor time of the provider.
    pub provider_ms: f64,
}

/// Medians over all rounds.
struct Row {
    rate: f64,
    p50: f64,
    p99: f64,
    cpu_us: f64,
    provider_us: f64,
    peak_mib: f64,
}

fn row(all: &[Measured], name: &str, sessions: u32, paced: bool) -> Row {
    let of = |figure: fn(&Measured) -> f64| {
        let mut figures: Vec<f64> = all
            .iter()
            .filter(|m| m.name == name && m.sessions == sessions && m.paced == paced)
            .map(figure)
            .collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Row {
        rate: of(|m| m.sample.rate),
        p50: of(|m| m.sample.p50),
        p99: of(|m| m.sample.p99),
        cpu_us: of(|m| m.usage.cpu_ms * 1000.0 / m.sample.flows.max(1) as f64),
        provider_us: of(|m| m.provider_ms * 1000.0 / m.sample.flows.max(1) as f64),
        peak_mib: of(|m| m.usage.peak_mib),
    }
}

/// Prints the speed of every subject.
pub fn speed(all: &[Measured]) {
    println!(
        "\n| sessions | who | flows/s | of bare | p50 ms | p99 ms | added p50 | added p99 | CPU µs/flow | \
         provider's CPU | peak MiB |"
    );
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let loads = SESSIONS.map(|sessions| (sessions, false)).into_iter().chain([(MANY, true)]);
    for (sessions, paced) in loads {
        let bare = row(all, "bare", sessions, paced);
        let load = if paced { format!("{sessions}, {OFFERED}/s offered") } else { sessions.to_string() };
        for name in ["bare", "library", "server"] {
            let Row { rate, p50, p99, cpu_us, provider_us, peak_mib } = row(all, name, sessions, paced);
            println!(
                "| {load} | {name} | {rate:.0} | {:.2} | {p50:.1} | {p99:.1} | {:.1} | {:.1} | {cpu_us:.0} | \
                 {provider_us:.0} | {peak_mib:.0} |",
                rate / bare.rate,
                p50 - bare.p50,
                p99 - bare.p99,
            );
        }
    }
}

/// Prints the speed of flows whose calls the plan prepares.
pub fn prepared(all: &[Measured]) {
    println!(
        "\n| prepared, sessions | who | flows/s | p50 ms | p99 ms | CPU µs/flow | provider's CPU | peak MiB |"
    );
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for sessions in SESSIONS {
        for (name, who) in [("prepared", "library"), ("prepared server", "server")] {
            let Row { rate, p50, p99, cpu_us, provider_us, peak_mib } = row(all, name, sessions, false);
            println!(
                "| {sessions} | {who} | {rate:.0} | {p50:.1} | {p99:.1} | {cpu_us:.0} | {provider_us:.0} | {peak_mib:.0} |"
            );
        }
    }
}

/// Prints the cost of each part: the library with `MANY` sessions, less the library without that part.
pub fn parts(all: &[Measured]) {
    println!("\n| library, {MANY} sessions | flows/s | p50 ms | p99 ms | CPU µs/flow | CPU saved |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    let whole = row(all, "library", MANY, false);
    let mut names: Vec<&str> = Vec::new();
    for measured in all {
        if !names.contains(&measured.name.as_str()) {
            names.push(&measured.name);
        }
    }
    for name in names {
        let Row { rate, p50, p99, cpu_us, .. } = row(all, name, MANY, false);
        let what = match name {
            "library" => "everything on, two reads".to_owned(),
            "book" => "everything on, a read and a write".to_owned(),
            part => format!("without {part}"),
        };
        println!("| {what} | {rate:.0} | {p50:.1} | {p99:.1} | {cpu_us:.0} | {:.0} |", whole.cpu_us - cpu_us);
    }
}

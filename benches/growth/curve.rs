//! The points of each curve, and its table: what grows, and by how much compared with the first point.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::cost::{Cost, SCENES, Work};
use super::provider::Provider;
use super::{Failure, fill, worker};

/// All curves.
pub const CURVES: [&str; 6] = ["scenes", "steps", "conversations", "history", "journal", "turns"];

/// How much is measured.
pub struct Plan {
    /// The first two points of each curve, with few requests.
    pub quick: bool,
    /// How often each point is measured.
    pub rounds: usize,
    /// A further size of the journal, in events.
    pub events: Option<u32>,
    /// Measure this curve only.
    pub only: Option<String>,
}

/// A point of a curve.
struct Point {
    /// How many there are of what grows.
    at: u32,
    cost: Cost,
}

/// A column of a table that only one curve has.
type Column = (&'static str, fn(&Point) -> f64);

impl Plan {
    /// Measures and prints the tables.
    pub fn carry_out(&self) -> Result<(), Failure> {
        let provider = Provider::start()?;
        println!("CPU µs: processor time of a request; MiB: peak memory; ratio: to the first row");
        for curve in CURVES.iter().filter(|curve| self.only.as_deref().is_none_or(|only| only == **curve)) {
            match *curve {
                "scenes" => self.scenes(&provider.address)?,
                "steps" => self.steps(&provider.address)?,
                "conversations" => self.conversations(&provider.address)?,
                "history" => self.history(&provider.address)?,
                "journal" => self.journal(&provider.address)?,
                _ => self.turns(&provider.address)?,
            }
        }
        Ok(())
    }

    fn points<'a>(&self, all: &'a [u32]) -> &'a [u32] {
        if self.quick { &all[..2] } else { all }
    }

    fn requests(&self, max: u32) -> u32 {
        if self.quick { max.min(40) } else { max }
    }

    fn scenes(&self, provider: &str) -> Result<(), Failure> {
        let points = self.points(&[5, 50, 500]).iter().map(|&scenes| {
            let requests = self.requests(1_000);
            self.point(scenes, |data| work(provider, data, |work| Work { scenes, requests, ..work }))
        });
        let points: Vec<Point> = points.collect::<Result<_, _>>()?;
        print("scenes", &points, Some(("ms to start", |point| point.cost.start_ms)));
        Ok(())
    }

    fn steps(&self, provider: &str) -> Result<(), Failure> {
        let points = self.points(&[1, 5, 20, 50]).iter().map(|&steps| {
            let requests = self.requests((4_000 / steps).clamp(200, 1_000));
            self.point(steps, |data| work(provider, data, |work| Work { steps, requests, ..work }))
        });
        let points: Vec<Point> = points.collect::<Result<_, _>>()?;
        print("steps", &points, Some(("CPU µs a step", |point| point.cost.cpu_us / f64::from(point.at))));
        Ok(())
    }

    fn conversations(&self, provider: &str) -> Result<(), Failure> {
        let points = self.points(&[1, 100, 1_000, 10_000]).iter().map(|&awake| {
            let requests = self.requests(1_000);
            self.point(awake, |data| work(provider, data, |work| Work { awake, requests, ..work }))
        });
        let points: Vec<Point> = points.collect::<Result<_, _>>()?;
        // The memory of a few is less than what the allocator keeps or returns meanwhile.
        let kib = |point: &Point| if point.at < 1_000 { f64::NAN } else { kib_each(point, point.at) };
        print("conversations", &points, Some(("KiB each", kib)));
        Ok(())
    }

    /// What conversations take that have had so many turns.
    fn history(&self, provider: &str) -> Result<(), Failure> {
        const AWAKE: u32 = 500;
        let points = self.points(&[1, 10, 20, 40]).iter().map(|&awake_turns| {
            let requests = self.requests(200);
            self.point(awake_turns, |data| {
                work(provider, data, |work| Work { awake: AWAKE, awake_turns, requests, ..work })
            })
        });
        let points: Vec<Point> = points.collect::<Result<_, _>>()?;
        print("turns of each", &points, Some(("KiB each", |point| kib_each(point, AWAKE))));
        Ok(())
    }

    fn turns(&self, provider: &str) -> Result<(), Failure> {
        let points = self.points(&[1, 10, 100, 1_000]).iter().map(|&turn| {
            let requests = self.requests(1_000);
            self.point(turn, |data| work(provider, data, |work| Work { turns: turn - 1, requests, ..work }))
        });
        let points: Vec<Point> = points.collect::<Result<_, _>>()?;
        print("turn", &points, None);
        Ok(())
    }

    fn journal(&self, provider: &str) -> Result<(), Failure> {
        let run = fill::recorded(provider, directory()?.path())?;
        let mut sizes = self.points(&[1_000, 10_000, 100_000, 1_000_000]).to_vec();
        sizes.extend(self.events);
        let mut points = Vec::new();
        println!("\n| events | CPU µs an event appended | ratio | bytes an event |");
        println!("| ---: | ---: | ---: | ---: |");
        let mut first = f64::NAN;
        for events in sizes {
            eprintln!("events: {events}");
            let data = directory()?;
            let (cpu_us, bytes) = fill::fill(data.path(), events, &run)?;
            first = if first.is_nan() { cpu_us } else { first };
            println!("| {events} | {cpu_us:.1} | {:.2} | {bytes:.0} |", cpu_us / first);
            let requests = self.requests(1_000);
            let cost = worker::done(&work(provider, data.path(), |work| Work { requests, ..work }))?;
            points.push(Point { at: events, cost });
        }
        print("events", &points, Some(("ms to start", |point| point.cost.start_ms)));
        Ok(())
    }

    /// The medians over the rounds, each in a new data directory.
    fn point(&self, at: u32, work: impl Fn(&Path) -> Work) -> Result<Point, Failure> {
        let mut rounds: Vec<Cost> = Vec::new();
        for round in 0..self.rounds {
            let data = directory()?;
            let work = work(data.path());
            eprintln!("{work:?}: round {} of {}", round + 1, self.rounds);
            rounds.push(worker::done(&work)?);
        }
        let median = |figure: fn(&Cost) -> f64| {
            let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let cost = Cost {
            start_ms: median(|cost| cost.start_ms),
            cpu_us: median(|cost| cost.cpu_us),
            p50_ms: median(|cost| cost.p50_ms),
            before_mib: median(|cost| cost.before_mib),
            after_mib: median(|cost| cost.after_mib),
            peak_mib: median(|cost| cost.peak_mib),
        };
        Ok(Point { at, cost })
    }
}

/// A request with two steps in a process that has nothing else, but for what `change` says.
fn work(provider: &str, data: &Path, change: impl FnOnce(Work) -> Work) -> Work {
    let (provider, data) = (provider.to_owned(), data.to_owned());
    change(Work {
        provider,
        data,
        scenes: SCENES,
        steps: fill::STEPS,
        awake: 0,
        awake_turns: 1,
        turns: 0,
        requests: 0,
    })
}

/// What each of so many conversations in memory takes.
fn kib_each(point: &Point, conversations: u32) -> f64 {
    (point.cost.after_mib - point.cost.before_mib) * 1024.0 / f64::from(conversations)
}

/// A directory on the disk of the build, which temporary directories often are not.
fn directory() -> Result<TempDir, Failure> {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&place)?;
    Ok(tempfile::Builder::new().prefix("growth-").tempdir_in(place)?)
}

/// Prints a curve, at most 80 columns wide: each figure, and its ratio to that of the first point.
fn print(grows: &str, points: &[Point], more: Option<Column>) {
    let (own, line) = more.map_or_else(Default::default, |(name, _)| (format!(" {name} |"), " ---: |"));
    println!("\n| {grows} | CPU µs | ratio | p50 ms | ratio | MiB | ratio |{own}");
    println!("|{}{line}", " ---: |".repeat(7));
    let Some(first) = points.first() else { return };
    for point in points {
        let Cost { cpu_us, p50_ms, peak_mib, .. } = point.cost;
        let own = more.map_or_else(String::new, |(_, figure)| match figure(point) {
            unknown if unknown.is_nan() => " – |".to_owned(),
            figure => format!(" {figure:.0} |"),
        });
        println!(
            "| {} | {cpu_us:.0} | {:.2} | {p50_ms:.1} | {:.2} | {peak_mib:.0} | {:.2} |{own}",
            point.at,
            cpu_us / first.cost.cpu_us,
            p50_ms / first.cost.p50_ms,
            peak_mib / first.cost.peak_mib,
        );
    }
}

//! Appends that wait until they are on disk, compared with a plain file on the same disk that gets the same
//! bytes: synced for each append, and once for as many appends as there are writers.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proscenium::actors::journal::{Handle, Journal, JournalStats};
use proscenium::run::{Envelope, Event, RunId};
use proscenium::store::{DataDir, Options, Record, Store};
use uuid::Uuid;

use super::machine::{Recorded, directory, disk, median};
use super::{Failure, Plan};

/// Concurrent writers; each waits for every append.
const WRITERS: [u32; 3] = [1, 32, 256];

/// One round with a number of writers.
struct Round {
    writers: u32,
    /// Appends per second: of the journal, and of the file with one sync per append and one per group of
    /// writers.
    journal: f64,
    each: f64,
    together: f64,
    /// Appends per commit.
    batch: f64,
}

/// Measures and prints the table.
pub fn measure(plan: &Plan, recorded: &Recorded) -> Result<(), Failure> {
    let time = Duration::from_millis(plan.slice_ms);
    let lines: Vec<Vec<u8>> =
        recorded.events().iter().map(|event| serde_json::to_vec(&event.body)).collect::<Result<_, _>>()?;
    let mut all = Vec::new();
    for round in 0..plan.rounds {
        eprintln!("appends: round {} of {}", round + 1, plan.rounds);
        for writers in WRITERS {
            let (journal, stats) = journal(recorded, writers, time)?;
            let each = file(&lines, 1, time)?;
            let together = file(&lines, writers as usize, time)?;
            let batch = stats.events as f64 / stats.commits.max(1) as f64;
            all.push(Round { writers, journal, each, together, batch });
        }
    }
    let bytes = lines.iter().map(Vec::len).sum::<usize>() / lines.len();
    println!(
        "\n| writers | durable appends/s | in a commit | file, a sync each | of it | file, a sync for all | of it |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for writers in WRITERS {
        let of = |figure: fn(&Round) -> f64| {
            median(all.iter().filter(|round| round.writers == writers).map(figure).collect())
        };
        let (journal, each, together) = (of(|r| r.journal), of(|r| r.each), of(|r| r.together));
        println!(
            "| {writers} | {journal:.0} | {:.1} | {each:.0} | {:.2} | {together:.0} | {:.2} |",
            of(|r| r.batch),
            journal / each,
            journal / together
        );
    }
    println!("\nAn append is one event of a recorded run, {bytes} bytes of JSON on average.");
    Ok(())
}

/// Appends per second, with the journal's own statistics.
fn journal(recorded: &Recorded, writers: u32, time: Duration) -> Result<(f64, JournalStats), Failure> {
    let dir = directory(&disk())?;
    let events: Arc<[Envelope<Event>]> = recorded.events().into();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = actix::System::new().block_on(async {
        let store = Store::open(DataDir::open(dir.path())?).await?;
        let journal = Journal::start(store.clone(), &Options::default()).await?;
        let began = Instant::now();
        let end = began + time;
        let writers = (0..writers).map(|_| runtime.spawn(writer(journal.clone(), events.clone(), end)));
        let writers: Vec<_> = writers.collect();
        let mut appends = 0;
        for writer in writers {
            appends += writer.await??;
        }
        let took = began.elapsed().as_secs_f64();
        let stats = journal.stats();
        journal.stop().await?;
        store.close().await;
        Ok::<_, Failure>((appends as f64 / took, stats))
    });
    runtime.shutdown_background();
    done
}

/// Writes one run after the other, one event at a time.
async fn writer(journal: Handle, events: Arc<[Envelope<Event>]>, end: Instant) -> Result<u64, Failure> {
    let mut appends = 0;
    loop {
        let run = RunId(Uuid::now_v7());
        for event in events.iter() {
            if Instant::now() >= end {
                return Ok(appends);
            }
            let event = Envelope { run: Some(run), ..event.clone() };
            journal.append(vec![Record::Run(event.into())], true).await?;
            appends += 1;
        }
    }
}

/// Appends per second to a plain file that is synced after every `batch` appends.
fn file(lines: &[Vec<u8>], batch: usize, time: Duration) -> Result<f64, Failure> {
    let dir = directory(&disk())?;
    let mut file = File::create(dir.path().join("lines"))?;
    let mut lines = lines.iter().cycle();
    let mut appends = 0;
    let began = Instant::now();
    while began.elapsed() < time {
        let together: Vec<u8> = lines.by_ref().take(batch).flatten().copied().collect();
        file.write_all(&together)?;
        file.sync_data()?;
        appends += batch;
    }
    Ok(appends as f64 / began.elapsed().as_secs_f64())
}

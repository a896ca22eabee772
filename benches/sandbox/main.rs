//! Time and memory of programs in the sandbox. See `benches/README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints its measurements")]

#[path = "../shared/run.rs"]
mod run;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures::StreamExt;
use proscenium::program::{
    Interpreter, PastCall, PastOutcome, Program, ProgramCall, ProgramEntry, ProgramFunction, Stop,
};
use proscenium::sandbox::{Options, Pool, read_module};
use serde_json::json;

use run::{Failure, run};

/// A plan as a model writes it, without calls.
const PLAN: &str = "
prices = {'apple': 50, 'pear': 80, 'lamp': 4500, 'pen': 99}
order = [('apple', 3), ('pen', 20), ('lamp', 1)]
total = 0
for item, n in order:
    total += prices[item] * n
    print(f'{item:<10}{n:>5}{prices[item] * n / 100:>10.2f}')
STATUS = 'success'
answer_text = f'The order costs {total / 100:.2f} euros.'
answer_rows = [[item, n] for item, n in order]
";

/// A plan that makes 100 calls.
const CALLS: &str = "
total = 0
for n in range(100):
    total += shop.stock(item='pen', nth=n)['quantity']
STATUS = 'success'
answer_text = f'{total} in all.'
";

fn program(source: &str, pool: &Pool) -> Program {
    let stock = ProgramFunction {
        name: "shop.stock".to_owned(),
        parameters: vec!["item".to_owned(), "nth".to_owned()],
    };
    let limits = pool.limits();
    Program {
        source: source.to_owned(),
        functions: vec![stock],
        now_ms: 0,
        seed: 0,
        calls: Vec::new(),
        limits,
        entry: None,
    }
}

/// A tool in Python that reads a row.
const TOOL: &str = "
def total(item, pieces):
    row = tables.get('items', key=item)
    return {'item': item, 'total_cents': row['price_cents'] * pieces}
";

/// A call of the tool, in a run of its own.
fn tool_call(pool: &Pool, run: u64) -> Program {
    let parameters = vec!["table".to_owned(), "key".to_owned()];
    let arguments = [("item".to_owned(), json!("pen")), ("pieces".to_owned(), json!(3))];
    Program {
        functions: vec![ProgramFunction { name: "tables.get".to_owned(), parameters }],
        seed: run,
        entry: Some(ProgramEntry {
            function: "total".to_owned(),
            arguments: arguments.into_iter().collect(),
            context: json!({"user": "ada", "language": "en", "settings": {}}),
            utc_offset_s: 0,
        }),
        ..program(TOOL, pool)
    }
}

/// The time of a call of the tool: to its read of a row, and from its start to its end.
async fn timed_tool(pool: &Pool, run: u64) -> Result<Duration, Failure> {
    let mut call = tool_call(pool, run);
    let (first, stop) = timed(pool, &call).await?;
    let Stop::Call { call: read, .. } = stop else { return Err("the tool reads no row".into()) };
    let row = json!({"item": "pen", "quantity": 120, "price_cents": 99, "shelf": "A-17"});
    call.calls.push(PastCall { call: read, outcome: PastOutcome::Returned(row) });
    let (second, stop) = timed(pool, &call).await?;
    let Stop::Finished(_) = stop else { return Err("the tool does not end".into()) };
    Ok(first + second)
}

/// Calls of a tool in Python, each in a run of its own, and the reading of its file.
async fn measure_tools(options: &Options, rounds: usize) -> Result<(), Failure> {
    let (mut cold, mut warm, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds / 10 {
        cold.push(timed_tool(&Pool::new(options.clone()), round as u64).await?);
    }
    let pool = Pool::new(options.clone());
    for round in 0..rounds / 10 {
        pool.warm().await?;
        warm.push(timed_tool(&pool, round as u64).await?);
        let begun = Instant::now();
        read_module(options, TOOL)?.map_err(|problem| problem.message)?;
        read.push(begun.elapsed());
    }
    line("a tool in Python with one read of a row, cold", cold);
    line("a tool in Python with one read of a row, warm", warm);
    line("a file of tools is read, by a worker that is started for it", read);
    Ok(())
}

fn recorded(calls: usize) -> Vec<PastCall> {
    let call = |nth: usize| PastCall {
        call: ProgramCall {
            function: "shop.stock".to_owned(),
            arguments: [("item".to_owned(), json!("pen")), ("nth".to_owned(), json!(nth))]
                .into_iter()
                .collect(),
        },
        outcome: PastOutcome::Returned(
            json!({"item": "pen", "quantity": 120, "price_cents": 99, "shelf": "A-17"}),
        ),
    };
    (0..calls).map(call).collect()
}

async fn timed(pool: &Pool, program: &Program) -> Result<(Duration, Stop), Failure> {
    let begun = Instant::now();
    let stop = pool.execute(program).await?;
    if let Stop::Fault(fault) = stop {
        return Err(format!("{}: {}", fault.code, fault.message).into());
    }
    Ok((begun.elapsed(), stop))
}

fn line(what: &str, mut all: Vec<Duration>) {
    all.sort_unstable();
    let at = |share: usize| {
        let place = (all.len() * share / 100).min(all.len().saturating_sub(1));
        all.get(place).map_or(0.0, Duration::as_secs_f64) * 1e3
    };
    println!("| {what} | {} | {:.2} | {:.2} | {:.2} |", all.len(), at(0), at(50), at(95));
}

async fn repeated(what: &str, pool: &Pool, program: &Program, rounds: usize) -> Result<(), Failure> {
    let mut all = Vec::new();
    for _ in 0..rounds {
        all.push(timed(pool, program).await?.0);
    }
    line(what, all);
    Ok(())
}

/// The memory of each worker of this process, in kibibytes: what is its own, and what it shares with other processes.
fn memory() -> Vec<(u64, u64)> {
    let children = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children = children.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let ids: Vec<String> =
        children.flat_map(|ids| ids.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect();
    let figures = ids.iter().filter_map(|id| std::fs::read_to_string(format!("/proc/{id}/status")).ok());
    let of = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    figures.filter_map(|status| Some((of(&status, "RssAnon:")?, of(&status, "RssFile:")?))).collect()
}

async fn measure(rounds: usize) -> Result<(), Failure> {
    let options = Options { worker: Some(env!("CARGO_BIN_EXE_proscenium").into()), ..Options::default() };
    println!("| execution | rounds | least ms | p50 ms | p95 ms |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let mut cold = Vec::new();
    for _ in 0..rounds / 10 {
        let pool = Pool::new(options.clone());
        cold.push(timed(&pool, &program(PLAN, &pool)).await?.0);
    }
    line("cold: a worker is started for it", cold);
    let pool = Pool::new(options.clone());
    pool.warm().await?;
    repeated("warm: a worker is idle", &pool, &program(PLAN, &pool), rounds).await?;
    let calls = program(CALLS, &pool);
    repeated("warm, to the first call", &pool, &calls, rounds).await?;
    for known in [10, 50, 100] {
        let again = Program { calls: recorded(known), ..calls.clone() };
        repeated(&format!("again, with {known} recorded calls"), &pool, &again, rounds).await?;
    }
    measure_tools(&options, rounds).await?;
    let begun = Instant::now();
    let mut growing = calls.clone();
    for call in recorded(100) {
        timed(&pool, &growing).await?;
        growing.calls.push(call);
    }
    timed(&pool, &growing).await?;
    println!(
        "\nA plan of 100 calls, all 101 executions together: {:.0} ms",
        begun.elapsed().as_secs_f64() * 1e3
    );

    let plan = program(PLAN, &pool);
    let begun = Instant::now();
    let all = futures::stream::iter(0..rounds * 4).map(|_| timed(&pool, &plan)).buffer_unordered(8);
    let all: Vec<Result<(Duration, Stop), Failure>> = all.collect().await;
    let done = all.into_iter().collect::<Result<Vec<_>, _>>()?.len();
    println!(
        "Plans a second with {} workers: {:.0}",
        options.workers,
        done as f64 / begun.elapsed().as_secs_f64()
    );
    for (own, shared) in memory() {
        println!(
            "A worker after {} plans: {own} KiB of its own, {shared} KiB of the program file",
            rounds * 4 / 2
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    run(|quick| measure(if quick { 20 } else { 500 }))
}

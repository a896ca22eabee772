//! Programs of others are executed by worker processes that have nothing: whatever a program does, the host, its
//! neighbours and the clock are safe from it, and what a model writes runs.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use futures::StreamExt;
use proscenium::program::{Finished, Interpreter, PastCall, PastOutcome, Program, ProgramLimits, Stop};
use proscenium::sandbox::{Options, Pool, WORKER_COMMAND};
use serde_json::json;

use crate::support::eventually;
use crate::support::sandbox_programs::{
    self, HostileProgram, executed, kill_computing_worker, outcome, program, workers_with,
};

fn options() -> Options {
    let worker = Some(env!("CARGO_BIN_EXE_proscenium").into());
    Options { workers: 2, time_ms: 5_000, memory_mib: 128, wait_ms: 60_000, worker, ..Options::default() }
}

/// With little memory, so that programs that need more fail soon.
fn strict() -> Options {
    Options { memory_mib: 64, ..options() }
}

const ENDLESS: &str = "while True: pass";

/// The endless program, with little time. Others have as much as on an idle machine, however busy it is.
fn endless(pool: &Pool) -> Program {
    program(ENDLESS, ProgramLimits { time_ms: 150, ..pool.limits() })
}

async fn stop(pool: &Pool, source: &str) -> Stop {
    executed(pool, program(source, pool.limits())).await.0
}

fn printed(stop: &Stop) -> &str {
    match stop {
        Stop::Finished(Finished { printed, .. }) => printed,
        other => panic!("{other:?}"),
    }
}

fn code(stop: &Stop) -> &str {
    match stop {
        Stop::Fault(fault) => &fault.code,
        other => panic!("{other:?}"),
    }
}

/// What is wrong with the end of a hostile program, and with its neighbour's.
async fn hostile_faults(pool: &Pool, hostile: HostileProgram) -> Vec<String> {
    let short = ProgramLimits { time_ms: 50, memory_bytes: 64 * 1024 * 1024, ..pool.limits() };
    let mut program = hostile.program(short);
    let mut stop = pool.execute(&program).await.unwrap();
    if hostile.fault(&stop).is_some() && matches!(&stop, Stop::Fault(fault) if fault.code == "code.time") {
        // A busy machine: it gets the time that others have.
        program.limits = pool.limits();
        stop = pool.execute(&program).await.unwrap();
    }
    let mut faults: Vec<String> = hostile.fault(&stop).into_iter().collect();
    if hostile.same && Pool::new(options()).execute(&program).await.unwrap() != stop {
        faults.push(format!("`{}` differs when it is executed again", hostile.name));
    }
    // One that goes on: its worker was there before the hostile program, and is there after it.
    let neighbour =
        pool.execute(&sandbox_programs::program("shop.stock('pen')", pool.limits())).await.unwrap();
    if !matches!(&neighbour, Stop::Call { .. }) {
        faults.push(format!("after `{}` another program ends as {neighbour:?}", hostile.name));
    }
    faults
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_hostile_program_reaches_the_host_or_its_neighbours_or_outlives_its_deadline() {
    let corpus = sandbox_programs::hostile();
    assert!(corpus.len() >= 150);
    let pool = Pool::new(options());
    let faults =
        futures::stream::iter(corpus).map(|hostile| hostile_faults(&pool, hostile)).buffer_unordered(2);
    let faults: Vec<Vec<String>> = faults.collect().await;
    let faults = faults.concat();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for place in ["/tmp/sandbox-was-here", "/sandbox-was-here", "sandbox-was-here"] {
        assert!(!Path::new(place).exists(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_as_models_write_them_run_and_come_to_the_same_each_time() {
    let corpus = sandbox_programs::benign();
    assert!(corpus.len() >= 80);
    let pool = Pool::new(options());
    let faults = futures::stream::iter(corpus).map(|benign| {
        let pool = &pool;
        async move {
            let (stop, program) = executed(pool, program(&benign.source, pool.limits())).await;
            let mut faults = benign.faults(&stop, &program);
            // Its last execution had the worker of those before; this one has another.
            if pool.execute(&program).await.unwrap() != stop {
                faults.push(format!("`{}` differs when it is executed again", benign.name));
            }
            faults
        }
    });
    let faults: Vec<Vec<String>> = faults.buffer_unordered(2).collect().await;
    let faults = faults.concat();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn program_stops_at_each_call_with_its_line_and_continues_from_its_outcome() {
    let pool = Pool::new(options());
    let source = "a = 1\nb = shop.stock(\n    'pen')\ntry:\n    shop.sell('pear', 50)\nexcept ToolError as e:\n    print(e)\n";
    let mut program = program(source, pool.limits());
    for (function, line) in [("shop.stock", 2), ("shop.sell", 5)] {
        let Stop::Call { call, line: at } = pool.execute(&program).await.unwrap() else { panic!("no call") };
        assert_eq!((call.function.as_str(), at), (function, Some(line)));
        program.calls.push(PastCall { outcome: outcome(&call), call });
    }
    let end = pool.execute(&program).await.unwrap();
    assert_eq!(printed(&end), "only 3 left\n");
    program.calls[1].outcome = PastOutcome::Returned(json!({"left": 0}));
    assert_eq!(printed(&pool.execute(&program).await.unwrap()), "");
    program.calls.truncate(1);
    program.calls[0].outcome = PastOutcome::Raised("closed today".to_owned());
    let Stop::Fault(fault) = pool.execute(&program).await.unwrap() else { panic!("no fault") };
    assert_eq!((fault.code.as_str(), fault.line), ("code.error", Some(2)));
    assert!(fault.message.contains("closed today"), "{}", fault.message);
}

#[tokio::test]
async fn faults_say_what_is_wrong_and_where() {
    let pool = Pool::new(strict());
    let programs = [
        "x = 1\ny = (",
        "x = 1\n\nprint(y)",
        "\nshop.drop('pen')",
        "shop.stock('pen', 2)",
        "shop.stock(item={1, 2})",
        "x = 1\nopen('x')",
        "\nasync def f():\n    pass",
        "answer_rows = [float('inf')]",
        ENDLESS,
        "print('before')\nx = 'x' * 10 ** 10",
        "print('kept')\nraise ValueError('mine')",
    ];
    let mut told = Vec::new();
    for source in programs {
        let program = if source == ENDLESS { endless(&pool) } else { program(source, pool.limits()) };
        let Stop::Fault(fault) = executed(&pool, program).await.0 else { panic!("{source}") };
        let line = fault.line.map_or_else(|| "-".to_owned(), |line| line.to_string());
        told.push(format!("{} {line}: {} [{}]", fault.code, fault.message, fault.printed.trim()));
    }
    insta::assert_snapshot!(told.join("\n"), @r"
    code.syntax 2: SyntaxError: unexpected EOF while parsing []
    code.error 3: NameError: name 'y' is not defined []
    code.error 2: AttributeError: there is no function `shop.drop`; there are `shop.items`, `shop.stock`, `shop.sell`, `shop.set_price`, `shop.sales` []
    code.arguments 1: `shop.stock` gets 2 arguments; its parameters are (item) []
    code.arguments 1: the argument `item` of `shop.stock` has a value of type `set`: use numbers, text, lists and dictionaries []
    code.refused 2: `open` is not available to a program []
    code.refused 2: `async` is not available: call functions one after the other, without `await` []
    code.arguments -: `answer_rows` has the number `inf`, which is not finite []
    code.time -: the program takes too much time []
    code.memory 2: the program uses too much memory [before]
    code.error 2: ValueError: mine [kept]
    ");
}

#[tokio::test]
async fn executions_beyond_the_workers_wait_and_give_up() {
    let pool = Pool::new(Options { workers: 1, wait_ms: 0, ..strict() });
    let long = endless(&pool);
    let (first, second) = tokio::join!(pool.execute(&long), pool.execute(&long));
    let ended = [&first, &second].map(|end| match end {
        Ok(stop) => code(stop),
        Err(error) => error.code,
    });
    assert_eq!(BTreeSet::from(ended), BTreeSet::from(["code.time", "sandbox.busy"]));
    let patient = Pool::new(Options { workers: 1, wait_ms: 60_000, ..strict() });
    let short = program("STATUS = 1", patient.limits());
    let (first, second) = tokio::join!(patient.execute(&long), patient.execute(&short));
    assert_eq!(code(&first.unwrap()), "code.time");
    assert!(matches!(second.unwrap(), Stop::Finished(_)));
}

#[tokio::test]
async fn flood_of_one_tenant_lets_another_have_its_turn() {
    let pool = Pool::new(Options { workers: 1, ..options() });
    let program = program("STATUS = 1", pool.limits());
    let (pool, program) = (&pool, &program);
    let execute = |tenant: &'static str| async move {
        let executed = pool.execute_for(tenant, program).await.unwrap();
        assert!(matches!(executed.stop, Stop::Finished(_)) && executed.millis.unwrap() > 0);
        tenant
    };
    let tenants = std::iter::repeat_n("flood", 6).chain(["other"]);
    let mut ended: futures::stream::FuturesUnordered<_> = tenants.map(execute).collect();
    let mut order = Vec::new();
    while let Some(tenant) = ended.next().await {
        order.push(tenant);
    }
    // Behind the one that is executed, and the one whose turn it was.
    assert!(order[..3].contains(&"other"), "{order:?}");
}

#[tokio::test]
async fn execution_that_nobody_waits_for_ends_with_its_worker() {
    let pool = Pool::new(Options { workers: 1, time_ms: 60_000, ..options() });
    pool.warm().await.unwrap();
    let long = program("while True: pass", pool.limits());
    for n in 0..10 {
        tokio::select! {
            biased;
            ended = pool.execute(&long) => panic!("{ended:?}"),
            // Another future of the same task: the execution is dropped when it is under way.
            () = tokio::task::yield_now() => {}
        }
        let Stop::Finished(finished) = stop(&pool, &format!("STATUS = {n}")).await else { panic!("no end") };
        assert_eq!(finished.status, Some(json!(n)));
    }
}

#[tokio::test]
async fn worker_executes_one_program_only_and_is_killed_after_its_end() {
    let memory_mib = 77;
    let pool = Pool::new(Options { memory_mib, ..options() });
    let source = "for n in range(3):\n    shop.stock('pen')\nSTATUS = 'success'";
    for seed in 0..4 {
        let mut program = program(source, pool.limits());
        program.seed = seed;
        assert!(matches!(executed(&pool, program).await.0, Stop::Finished(_)));
    }
    eventually("workers end with their programs, but for a spare one", async || {
        workers_with(memory_mib).len() <= 1
    })
    .await;
    drop(pool);
    eventually("the workers of a pool end with it", async || workers_with(memory_mib).is_empty()).await;
}

#[tokio::test]
async fn worker_that_is_killed_in_the_middle_of_a_program_ends_that_program_and_no_other() {
    let memory_mib = 79;
    let pool = Pool::new(Options { memory_mib, time_ms: 60_000, ..options() });
    let mut neighbour = program("left = shop.stock('pen')['quantity']\nSTATUS = left", pool.limits());
    let Stop::Call { call, .. } = pool.execute(&neighbour).await.unwrap() else { panic!("no call") };
    let computing = program("while True: pass", pool.limits());
    let (ended, ()) = tokio::join!(pool.execute(&computing), kill_computing_worker(memory_mib));
    assert_eq!(code(&ended.unwrap()), "code.crashed");
    neighbour.calls.push(PastCall { outcome: outcome(&call), call });
    let Stop::Finished(end) = pool.execute(&neighbour).await.unwrap() else { panic!("no end") };
    assert_eq!(end.status, Some(json!(120)));
    assert!(matches!(stop(&pool, "STATUS = 1").await, Stop::Finished(_)));
}

/// What the question for a program says is missing.
#[tokio::test]
async fn what_models_are_told_is_missing_of_python_is_missing() {
    let pool = Pool::new(options());
    for source in [
        "x = [1, 2]\ndel x[0]",
        "x = '%d' % 1",
        "x = format(1.5, '.2f')",
        "x = {'a': 1} | {'b': 2}",
        "x = [1, 2, 3]\nx[0:2] = [5]",
        "match 1:\n    case 1:\n        pass",
        "def f():\n    yield 1\nf()",
        "class A:\n    pass\nclass B(A):\n    pass",
        "import random",
        "import time",
        "import decimal",
        "import statistics",
        "x = list(map(shop.stock, ['pen']))",
        "x = list(filter(shop.stock, ['pen']))",
        "x = sorted(['pen'], key=shop.stock)",
    ] {
        let end = stop(&pool, source).await;
        assert!(matches!(code(&end), "code.syntax" | "code.error"), "{source}: {end:?}");
    }
    let offered =
        "import math, re, json, datetime, collections, functools\nx = {**{'a': 1}, **{'b': 2}}\nx.pop('a')";
    assert!(matches!(stop(&pool, offered).await, Stop::Finished(_)));
}

/// Lines of `/proc/PID` of a worker that is confined.
#[cfg(target_os = "linux")]
#[test]
fn worker_has_no_environment_no_descriptors_and_a_filter() {
    use std::io::Read;

    let mut worker = Command::new(env!("CARGO_BIN_EXE_proscenium"))
        .args([WORKER_COMMAND, "64", "10"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The first byte comes when the worker is confined.
    let mut byte = [0];
    worker.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    let proc = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", worker.id())).unwrap();
    assert_eq!(proc("environ"), "");
    let status = proc("status");
    for line in ["Seccomp:\t2", "NoNewPrivs:\t1", "Threads:\t2"] {
        assert!(status.contains(line), "{line}\n{status}");
    }
    let limits = proc("limits");
    for resource in ["Max file size", "Max core file size", "Max processes"] {
        let line = limits.lines().find(|line| line.starts_with(resource)).unwrap();
        assert_eq!(
            line[resource.len()..].split_whitespace().take(2).collect::<Vec<_>>(),
            ["0", "0"],
            "{line}"
        );
    }
    // Its end of the pipes, where errors go, and the kernel's figures of its memory.
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", worker.id())).unwrap();
    let targets =
        descriptors.map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap().display().to_string());
    let own =
        |target: &String| target.starts_with("pipe:") || target == "/dev/null" || target.ends_with("/statm");
    let other: Vec<String> = targets.filter(|target| !own(target)).collect();
    assert_eq!(other, Vec::<String>::new());
    // The end of its input is its end.
    drop(worker.stdin.take());
    assert_eq!(worker.wait().unwrap().code(), Some(0));
}

/// What a worker does with bytes that are no program.
#[tokio::test]
async fn bytes_that_are_no_program_end_a_worker_and_nothing_else() {
    use std::io::Write;

    let frames: [&[u8]; 6] = [
        b"\x00",
        b"\x02\x00\x00\x00{}",
        b"\xff\xff\xff\xff",
        b"\x04\x00\x00\x00\xff\xfe\xfd\xfc",
        b"\x10\x00\x00\x00{\"source\": 1}    ",
        b"\x05\x00\x00\x00[[[[[",
    ];
    for frame in frames {
        let mut worker = Command::new(env!("CARGO_BIN_EXE_proscenium"))
            .args([WORKER_COMMAND, "64", "10"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = worker.stdin.take().unwrap();
        // It may have ended before all is written.
        let _ = input.write_all(frame);
        drop(input);
        let status = worker.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{frame:?}: {status}");
    }
    let pool = Arc::new(Pool::new(options()));
    assert!(matches!(stop(&pool, "STATUS = 1").await, Stop::Finished(_)));
}

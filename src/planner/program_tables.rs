//! Tables of scenes in programs: the results that a program gets of its calls about them, and the commit of its staged
//! changes.
//!
//! A call about a table is a read of the run, and its outcome has the rows as the store has them. What the program sees
//! follows from these and from the changes that it staged before: it is computed anew whenever the program is executed, so
//! nothing staged is kept, and no staged value is a result of a tool.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::approval::{ApprovableCall, call_approval, call_hash, definition};
use super::constraints::forbidden_call;
use super::grounding::amounts_of_money;
use super::program::step_in_scene;
use crate::program::{PastCall, PastOutcome, ProgramCall, ProgramFunction, ProgramResult};
use crate::run::{
    CodeWork, ConfirmPolicy, Effect, Fault, Outcome, Repeat, RequestedCall, RequiredApproval, RunState,
    STAGED_CONFLICT, StepState, call_key,
};
use crate::scene::{Catalogue, Scene};
use crate::staged::{
    COMMIT, HostValues, ReadBase, StagedError, StagedLimits, StoredRow, TableCall, WriteDiff, WriteSet,
};
use crate::tools::tables::moment;

/// The status of a program that changes something.
const CHANGED: &str = "success";

/// Maximum number of changed rows that the answer of a dry run lists.
const SHOWN_CHANGES: usize = 20;

/// Why a program is refused that changes data in two ways: only staged changes can be undone, by not committing them.
pub(super) const BOTH_KINDS: &str = "a program either stages changes of tables or calls functions that change something, not both, \
     unless the scenes allow it (`mixed_writes`)";

/// The staged changes of a program, and the results that it gets of its calls.
pub(super) struct StagedProgram<'a> {
    sets: BTreeMap<String, (&'a Scene, WriteSet)>,
    /// Its calls without commits, with their outcomes as the program gets them.
    pub(super) calls: Vec<PastCall>,
    /// The change by others during the execution of the program.
    pub(super) conflict: Option<StagedError>,
}

/// The scene and the function of a call about a table; `None` for any other call.
fn table_function<'a, 'n>(catalogue: &'a Catalogue, name: &'n str) -> Option<(&'a Scene, &'n str)> {
    let (scene, function) = name.split_once('.')?;
    let scene = catalogue.get(scene).filter(|scene| !scene.tables.is_empty())?;
    let is_one = function == COMMIT || TableCall::FUNCTIONS.contains(&function);
    (is_one && scene.tool(function).is_none()).then_some((&**scene, function))
}

/// Returns what the program of a step has staged; `None` while a call has no outcome.
pub(super) fn staged<'a>(
    state: &RunState,
    catalogue: &'a Catalogue,
    work: &CodeWork,
) -> Option<StagedProgram<'a>> {
    let mut staged = StagedProgram { sets: BTreeMap::new(), calls: Vec::new(), conflict: None };
    for past in state.past_calls(work)? {
        match table_function(catalogue, &past.call.function) {
            Some((_, COMMIT)) => {}
            Some((scene, function)) => {
                let name = scene.name.clone();
                let (_, set) =
                    staged.sets.entry(name).or_insert_with(|| (scene, write_set(state, work, scene)));
                let outcome = visible_result(set, function, &past);
                if let Err(error) = &outcome
                    && error.code == STAGED_CONFLICT
                {
                    staged.conflict.get_or_insert_with(|| error.clone());
                }
                let outcome = match (outcome, past.outcome) {
                    (Ok(Some(value)), _) => PastOutcome::Returned(value),
                    (Ok(None), raised) => raised,
                    (Err(error), _) => PastOutcome::Raised(error.message),
                };
                staged.calls.push(PastCall { call: past.call, outcome });
            }
            None => staged.calls.push(past),
        }
    }
    Some(staged)
}

fn write_set(state: &RunState, work: &CodeWork, scene: &Scene) -> WriteSet {
    // The seed differs between the programs of a run, and is the same whenever one is executed again.
    let seed = work.program.as_ref().map_or(0, |program| program.seed);
    let host = HostValues {
        id: format!("{seed:012x}"),
        now: state.started.as_ref().map(|started| moment(&started.now)).unwrap_or_default(),
        user: state.queued.as_ref().map(|queued| queued.user.clone()).unwrap_or_default(),
    };
    WriteSet::new(scene.tables.clone(), host, StagedLimits::default()).with_stated(stated_amounts(state))
}

/// The amounts of money that the user stated in the request and in the turns before it.
fn stated_amounts(state: &RunState) -> BTreeSet<i64> {
    let context = state.started.as_ref().map(|started| &started.context);
    let turns = context.into_iter().flat_map(|context| &context.turns).map(|turn| turn.request.as_str());
    let pending = context.and_then(|context| context.pending.as_ref()).map(|asked| asked.request.as_str());
    [state.request()].into_iter().chain(turns).chain(pending).flat_map(amounts_of_money).collect()
}

/// The result that a program gets of a call about a table. If the call itself failed, nothing is computed.
fn visible_result(set: &mut WriteSet, function: &str, past: &PastCall) -> Result<Option<Value>, StagedError> {
    let PastOutcome::Returned(result) = &past.outcome else { return Ok(None) };
    let call = TableCall::read(set.tables(), function, &past.call.arguments)?;
    let rows = result.get("rows").cloned().unwrap_or_default();
    let found = StoredRow::read_all(set.tables(), call.table(), &rows)?;
    set.perform(&call, found).map(Some)
}

/// The functions of the tables of these scenes, as programs call them.
pub(super) fn functions<'s>(
    state: &RunState,
    scenes: impl Iterator<Item = &'s Scene>,
) -> Vec<ProgramFunction> {
    let of_scene = |scene: &'s Scene| {
        let tools = offered(state, scene).into_iter();
        tools.map(move |function| ProgramFunction {
            name: format!("{}.{function}", scene.name),
            parameters: TableCall::parameters(function).iter().map(|name| (*name).to_owned()).collect(),
        })
    };
    scenes.flat_map(of_scene).collect()
}

/// The functions of a scene's tables that the request's constraints allow.
fn offered(state: &RunState, scene: &Scene) -> Vec<&'static str> {
    let is_offered = |name: &&'static str| {
        let tool = scene.program_tool(name).filter(|_| scene.tool(name).is_none());
        tool.is_some_and(|tool| forbidden_call(state, scene, tool).is_none())
    };
    let may_change =
        scene.program_tool(COMMIT).is_some_and(|tool| forbidden_call(state, scene, tool).is_none());
    let reads = |name: &&'static str| may_change || matches!(*name, "find" | "get");
    TableCall::FUNCTIONS.into_iter().filter(is_offered).filter(reads).collect()
}

/// Returns what the model is told about the tables of a scene, after the stub of its tools; empty without tables.
pub(super) fn stub(state: &RunState, scene: &Scene) -> String {
    if offered(state, scene).is_empty() {
        return String::new();
    }
    let mut out = format!("class {}:  # tables of its own\n", scene.name);
    for function in offered(state, scene) {
        let parameters: Vec<String> = TableCall::parameters(function)
            .iter()
            .map(|name| match *name {
                "where" => "where: dict = {}".to_owned(),
                "values" => "values: dict".to_owned(),
                "key" => "key: dict | str | int".to_owned(),
                name => format!("{name}: str"),
            })
            .collect();
        let result = match function {
            "find" => "list[dict]",
            "get" => "dict | None",
            _ => "dict",
        };
        out.push_str(&format!("    def {function}({}) -> {result}\n", parameters.join(", ")));
    }
    out.push_str(TABLES);
    out.push_str(if scene.mixed_writes { MIXED } else { NOT_MIXED });
    for table in &scene.tables.0 {
        let columns: Vec<String> = table.columns.iter().map(column).collect();
        out.push_str(&format!(
            "    # {} (key {}): {}. {}\n",
            table.name,
            table.key.join(", "),
            columns.join(", "),
            table.description
        ));
        for check in &table.checks {
            out.push_str(&format!("    #   always: {check}\n"));
        }
        if let Some(rule) = &table.records {
            out.push_str(&format!(
                "    #   each changed row of {} needs exactly one new row here, with {}\n",
                rule.table,
                rule.amounts
                    .iter()
                    .map(|(own, other)| format!("{own} = the change of {other}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
            for check in &rule.checks {
                out.push_str(&format!("    #   always: {check}\n"));
            }
            if rule.checks.iter().any(|check| check.contains("stated")) {
                out.push_str("    #   stated: the amounts of money that the user says, in hundredths\n");
            }
        }
    }
    out
}

const TABLES: &str = "    # Changes are staged: later reads see them, and they are made together when the program ends with STATUS = \"success\".
    # where: {\"column\": value}, {\"column\": [values]}, {\"column\": {\"gte\": low, \"lt\": high}} (gte, gt, lte, lt).
";

const NOT_MIXED: &str = "    # A program that stages changes calls no function that changes something, and the other way round.\n";

const MIXED: &str = "    # Functions that change something do it at once, and it stays done if the staged changes are not made: call them last.\n";

fn column(column: &crate::staged::ColumnDefinition) -> String {
    let kind = match column.kind {
        crate::staged::ColumnKind::Text => "str",
        crate::staged::ColumnKind::Integer => "int",
        crate::staged::ColumnKind::Decimal { .. } => "decimal as str",
        crate::staged::ColumnKind::Boolean => "bool",
        crate::staged::ColumnKind::Day => "day as str",
        crate::staged::ColumnKind::Time => "UTC time as str",
    };
    let optional = if column.optional { " | None" } else { "" };
    let values =
        if column.values.is_empty() { String::new() } else { format!(" of {}", column.values.join("/")) };
    let filled = if column.filled.is_some() { ", set by the server" } else { "" };
    format!("{}: {kind}{optional}{values}{filled}", column.name)
}

/// The call about a table at which a program stopped, as a read of the run; `None` for any other call.
///
/// # Errors
/// Why the program may not make it after its earlier calls.
pub(super) fn table_call(
    state: &RunState,
    catalogue: &Catalogue,
    work: &CodeWork,
    written: &ProgramCall,
) -> Result<Option<RequestedCall>, String> {
    let Some((scene, function)) = table_function(catalogue, &written.function) else { return Ok(None) };
    if !offered(state, scene).contains(&function) {
        return Ok(None);
    }
    let call = TableCall::read(&scene.tables, function, &written.arguments);
    let may_mix =
        || scene.mixed_writes && written_scenes(state, catalogue, work).all(|other| other.mixed_writes);
    if call.as_ref().is_ok_and(TableCall::stages) && has_written(state, work) && !may_mix() {
        return Err(BOTH_KINDS.to_owned());
    }
    let arguments = Value::Object(written.arguments.clone());
    let problem = call.err().map(|error| Fault::new(error.code, error.message));
    Ok(Some(requested(state, scene, function, arguments, problem)))
}

/// Returns whether the program has called a write of its own.
pub(super) fn has_written(state: &RunState, work: &CodeWork) -> bool {
    state.writes_of_program(work).next().is_some()
}

/// The scenes whose writes the program has called.
fn written_scenes<'a>(
    state: &'a RunState,
    catalogue: &'a Catalogue,
    work: &'a CodeWork,
) -> impl Iterator<Item = &'a Scene> {
    state.writes_of_program(work).filter_map(move |(_, call)| Some(&**catalogue.get(&call.scene)?))
}

/// Returns whether the program has staged changes, so that it may not call a write of `scene`.
pub(super) fn rules_out_write(catalogue: &Catalogue, work: &CodeWork, scene: Option<&Scene>) -> bool {
    let staged =
        work.program_calls.iter().filter_map(|made| table_function(catalogue, &made.written.function));
    let mut staged = staged.filter(|(_, function)| !matches!(*function, "find" | "get" | COMMIT));
    staged.any(|(staged, _)| !staged.mixed_writes || !scene.is_some_and(|scene| scene.mixed_writes))
}

fn requested(
    state: &RunState,
    scene: &Scene,
    tool: &str,
    arguments: Value,
    problem: Option<Fault>,
) -> RequestedCall {
    RequestedCall {
        scene: Some(scene.name.clone()),
        problem,
        volatile: true,
        ..RequestedCall::new(
            state.next_call(),
            tool,
            call_key(&scene.name, tool, &arguments, &[]),
            arguments,
            Effect::Read,
        )
    }
}

/// The consequence of the end of a program that fulfilled its contract.
pub(super) enum EndOfProgram {
    /// It has ended: nothing was staged, or everything is committed.
    Ended,
    /// It has ended, and its staged changes are shown and not made.
    WouldChange(WriteDiff),
    /// Its changes are to be committed.
    Commit(ProgramCall, Box<RequestedCall>),
    /// It has a fault, with its code.
    Fault(&'static str, String),
}

/// Returns what follows at the end of a program with this result.
pub(super) fn end_of_program(
    state: &RunState,
    catalogue: &Catalogue,
    (step, work): (&StepState, &CodeWork),
    result: &ProgramResult,
) -> EndOfProgram {
    let Some(staged) = staged(state, catalogue, work) else { return EndOfProgram::Ended };
    let done = state.done_by_program(work);
    if result.dry_run && !done.is_empty() {
        let what = format!("DRY_RUN is True, and something was changed before: {done}");
        return EndOfProgram::Fault("code.contract", what);
    }
    let mut changed = staged.sets.into_values().filter(|(_, set)| !set.diff().is_empty());
    let Some((scene, set)) = changed.next() else {
        return if result.dry_run {
            EndOfProgram::WouldChange(WriteDiff::default())
        } else {
            EndOfProgram::Ended
        };
    };
    if changed.next().is_some() {
        let what = "a program changes the tables of one scene only; nothing was changed";
        return EndOfProgram::Fault("code.contract", what.to_owned());
    }
    if result.status != CHANGED && !result.dry_run {
        let what = format!(
            "changes are staged, and STATUS is {:?}: end with STATUS = {CHANGED:?}, or stage nothing; nothing was changed",
            result.status
        );
        return EndOfProgram::Fault("code.contract", what);
    }
    if let Some(ended) = committed(state, work) {
        return ended;
    }
    let max = state.settings().max_calls as usize;
    if work.program_calls.len() >= max {
        return EndOfProgram::Fault("code.calls", format!("more than {max} calls"));
    }
    match set.finish() {
        Ok((_, diff)) if result.dry_run || is_unclear(state, (step, work), scene) => {
            EndOfProgram::WouldChange(diff)
        }
        Ok((base, diff)) => commit(state, (step, scene), (&set, &base, &diff), &done),
        Err(error) => EndOfProgram::Fault("code.contract", error.message),
    }
}

/// The result of the commit, if that is the program's last call.
fn committed(state: &RunState, work: &CodeWork) -> Option<EndOfProgram> {
    let last = work.program_calls.last().filter(|last| last.is_commit(state))?;
    // The outcome of an equal commit, if it shares one.
    Some(match state.outcome(last.call)? {
        Outcome::Ok { .. } => EndOfProgram::Ended,
        Outcome::Refused { error } | Outcome::Failed { error } | Outcome::Unknown { error } => {
            let code = if error.code == STAGED_CONFLICT { STAGED_CONFLICT } else { "staged.refused" };
            EndOfProgram::Fault(code, error.message.clone())
        }
    })
}

/// The commit as a call of the run, with the approval that it needs: exactly this diff of exactly this base.
fn commit(
    state: &RunState,
    (step, scene): (&StepState, &Scene),
    (set, base, diff): (&WriteSet, &ReadBase, &WriteDiff),
    done: &str,
) -> EndOfProgram {
    let Some(tool) = scene.program_tool(COMMIT) else {
        return EndOfProgram::Fault("code.refused", "the scene has no tables any more".to_owned());
    };
    let arguments = json!({"id": set.host().id, "base": base, "diff": diff});
    let mut call = requested(state, scene, COMMIT, arguments, forbidden_call(state, scene, tool));
    (call.effect, call.repeat, call.volatile) = (Effect::Write, Repeat::Key, false);
    let step = step_in_scene(step, scene);
    let asked =
        ApprovableCall { tool, arguments: &call.arguments, occurrence: 0, by_rules: false, stands_for: None };
    call.approval = call_approval(state, &step.step, &asked);
    // A refusal does not undo the writes that were done.
    if let Some(approval) = call.approval.as_mut().filter(|_| !done.is_empty()) {
        approval.why.push(format!("already done, whatever is decided: {done}"));
    }
    if call.approval.is_none() && needs_yes(state, scene) {
        let tools = BTreeMap::from([(format!("{}.{COMMIT}", scene.name), definition(tool))]);
        let hash = call_hash(&call.arguments, &tools);
        let why = vec![question(state, diff, done)];
        call.approval =
            Some(RequiredApproval { hash, why, tools, by_user: true, ..RequiredApproval::default() });
    }
    // The program wrote no such call: its arguments are those of the requested call.
    let written = ProgramCall { function: format!("{}.{COMMIT}", scene.name), arguments: Map::new() };
    EndOfProgram::Commit(written, Box::new(call))
}

/// Whether a step that its plan marks as unclear stages changes that nobody would be asked about: they are only shown.
/// If the program did something else already, its changes belong to that and are made.
fn is_unclear(state: &RunState, (step, work): (&StepState, &CodeWork), scene: &Scene) -> bool {
    step.step.unclear && !state.is_dry_run() && !needs_yes(state, scene) && !has_written(state, work)
}

/// The answer of a program whose changes are only shown: the changes first, then the program's words.
pub(super) fn answer_of_dry_run(state: &RunState, diff: &WriteDiff, text: &str) -> String {
    let rows: Vec<String> = diff.changes.iter().take(SHOWN_CHANGES).map(ToString::to_string).collect();
    let more = diff.changes.len().saturating_sub(rows.len());
    let more = if more > 0 { format!("; +{more}") } else { String::new() };
    let (nothing, would) = match state.language().is_some_and(|language| language.starts_with("it")) {
        true => ("Non è stato modificato nulla, perché la richiesta non è chiara.", "Sarebbe modificato:"),
        false => ("Nothing was changed, since the request is not clear.", "This would be changed:"),
    };
    let rows = if rows.is_empty() { String::new() } else { format!(" {would} {}{more}.", rows.join("; ")) };
    format!("{nothing}{rows} {text}").trim_end().to_owned()
}

/// Whether the user has to confirm a diff. The user did not say what a program computes, so each diff is put to the
/// user, unless the policy is never to ask.
fn needs_yes(state: &RunState, scene: &Scene) -> bool {
    !state.is_dry_run() && state.settings().confirm_for(scene.confirm) != ConfirmPolicy::Never
}

/// The answer of a program that has ended: in a dry run, it says that nothing was changed.
pub(super) fn answer_of(state: &RunState, work: Option<&CodeWork>, commits: bool, text: String) -> String {
    let is_write =
        |call: u32| state.calls.get(&call).is_some_and(|call| call.requested.effect == Effect::Write);
    let wrote = commits || work.is_some_and(|work| work.program_calls.iter().any(|made| is_write(made.call)));
    if !state.is_dry_run() || !wrote {
        return text;
    }
    match state.language().is_some_and(|language| language.starts_with("it")) {
        true => format!("Simulazione, non è stato modificato nulla. {text}"),
        false => format!("Dry run, nothing was changed. {text}"),
    }
}

/// The question whether to make the changes of a diff, with each changed row, and with the writes that were done
/// already.
fn question(state: &RunState, diff: &WriteDiff, done: &str) -> String {
    let is_italian = state.language().is_some_and(|language| language.starts_with("it"));
    let ask = if is_italian { "Faccio queste modifiche?" } else { "Shall I make these changes?" };
    // Every row is listed, because a yes covers no row that was not shown.
    let rows: Vec<String> = diff.changes.iter().map(ToString::to_string).collect();
    let already = match (done.is_empty(), is_italian) {
        (true, _) => String::new(),
        (false, true) => format!(" (Già fatto, in ogni caso: {done})"),
        (false, false) => format!(" (Done already, in any case: {done})"),
    };
    format!("{ask} {}{already}", rows.join("; "))
}

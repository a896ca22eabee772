//! Tables of scenes in programs: what a program sees of its calls about them, and the commit of what it staged.
//!
//! A call about a table is a read of the run, and its outcome has the rows as the store has them. What the program sees
//! follows from these and from the changes that it staged before: it is computed anew whenever the program is executed, so
//! nothing staged is kept, and no staged value is a result of a tool.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::approval::{ApprovableCall, call_approval, call_hash, definition};
use super::confirmation::unsaid;
use super::constraints::forbidden_call;
use super::program::step_in_scene;
use crate::invisible;
use crate::program::{PastCall, PastOutcome, ProgramCall, ProgramFunction};
use crate::run::{
    CallStatus, CodeWork, ConfirmPolicy, Effect, Fault, Outcome, Repeat, RequestedCall, RequiredApproval,
    RunState, STAGED_CONFLICT, StepState, call_key,
};
use crate::scene::{Catalogue, Scene};
use crate::staged::{
    COMMIT, CellValue, HostValues, ReadBase, RowChange, StagedError, StagedLimits, StoredRow, TableCall,
    TableRow, WriteDiff, WriteSet,
};
use crate::tools::tables::moment;

/// The status of a program that changes something.
const CHANGED: &str = "success";

/// Why a program is refused that changes something in two ways: only one of them can be undone by not committing.
pub(super) const BOTH_KINDS: &str =
    "a program either stages changes of tables or calls functions that change something; not both";

/// The most changed rows that a question shows.
const SHOWN_ROWS: usize = 20;

/// What a program has staged, and what it sees of its calls.
pub(super) struct StagedProgram<'a> {
    sets: BTreeMap<String, (&'a Scene, WriteSet)>,
    /// Its calls without commits, with what it gets of them.
    pub(super) calls: Vec<PastCall>,
    /// What changed while the program was under way.
    pub(super) conflict: Option<StagedError>,
}

/// The scene and the function of a call about a table; `None` for any other call.
fn table_function<'a, 'n>(catalogue: &'a Catalogue, name: &'n str) -> Option<(&'a Scene, &'n str)> {
    let (scene, function) = name.split_once('.')?;
    let scene = catalogue.get(scene).filter(|scene| !scene.tables.is_empty())?;
    let is_one = function == COMMIT || TableCall::FUNCTIONS.contains(&function);
    (is_one && scene.tool(function).is_none()).then_some((&**scene, function))
}

/// What the program of a step has staged; `None` while a call has no outcome.
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
                let outcome = seen(set, function, &past);
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
    WriteSet::new(scene.tables.clone(), host, StagedLimits::default())
}

/// What a program sees of a call about a table; nothing of its own where the call itself failed.
fn seen(set: &mut WriteSet, function: &str, past: &PastCall) -> Result<Option<Value>, StagedError> {
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

/// What is said to the model about the tables of a scene, after the stub of its tools; empty without tables.
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
        }
    }
    out
}

const TABLES: &str = "    # Changes are staged: later reads see them, and they are made together when the program ends with STATUS = \"success\".
    # where: {\"column\": value}, {\"column\": [values]}, {\"column\": {\"gte\": low, \"lt\": high}} (gte, gt, lte, lt).
";

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
/// Why a program may not mix it with what it called before.
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
    if call.as_ref().is_ok_and(TableCall::stages) && has_written(state, work) {
        return Err(BOTH_KINDS.to_owned());
    }
    let arguments = Value::Object(written.arguments.clone());
    let problem = call.err().map(|error| Fault::new(error.code, error.message));
    Ok(Some(requested(state, scene, function, arguments, problem)))
}

/// Whether the program has called a write of its own.
pub(super) fn has_written(state: &RunState, work: &CodeWork) -> bool {
    let calls = work.program_calls.iter().filter_map(|own| state.calls.get(&own.call));
    calls.into_iter().any(|call| call.requested.effect == Effect::Write && call.requested.tool != COMMIT)
}

/// Whether the program has staged changes.
pub(super) fn has_staged(catalogue: &Catalogue, work: &CodeWork) -> bool {
    let stages = |own: &ProgramCall| {
        table_function(catalogue, &own.function)
            .is_some_and(|(_, function)| !matches!(function, "find" | "get"))
    };
    work.program_calls.iter().any(|own| stages(&own.written))
}

fn requested(
    state: &RunState,
    scene: &Scene,
    tool: &str,
    arguments: Value,
    problem: Option<Fault>,
) -> RequestedCall {
    RequestedCall {
        call: state.next_call(),
        scene: Some(scene.name.clone()),
        provider_id: String::new(),
        tool: tool.to_owned(),
        key: call_key(&scene.name, tool, &arguments, &[]),
        arguments,
        effect: Effect::Read,
        repeat: Repeat::Never,
        problem,
        approval: None,
        undo: None,
        confirm: None,
        occurrence: 0,
        volatile: true,
        policies: None,
        definition: None,
    }
}

/// What follows at the end of a program that fulfilled its contract.
pub(super) enum EndOfProgram {
    /// It has ended: nothing was staged, or everything is committed.
    Ended,
    /// Its changes are to be committed.
    Commit(ProgramCall, Box<RequestedCall>),
    /// It has a fault, with its code.
    Fault(&'static str, String),
}

/// What follows at the end of a program with this status.
pub(super) fn end_of_program(
    state: &RunState,
    catalogue: &Catalogue,
    (step, work): (&StepState, &CodeWork),
    status: &str,
) -> EndOfProgram {
    let Some(staged) = staged(state, catalogue, work) else { return EndOfProgram::Ended };
    let mut changed = staged.sets.into_values().filter(|(_, set)| !set.diff().is_empty());
    let Some((scene, set)) = changed.next() else { return EndOfProgram::Ended };
    if changed.next().is_some() {
        let what = "a program changes the tables of one scene only; nothing was changed";
        return EndOfProgram::Fault("code.contract", what.to_owned());
    }
    if status != CHANGED {
        let what = format!(
            "changes are staged, and STATUS is {status:?}: end with STATUS = {CHANGED:?}, or stage nothing; nothing was changed"
        );
        return EndOfProgram::Fault("code.contract", what);
    }
    if let Some(ended) = committed(state, work) {
        return ended;
    }
    let most = state.settings().max_calls as usize;
    if work.program_calls.len() >= most {
        return EndOfProgram::Fault("code.calls", format!("more than {most} calls"));
    }
    match set.finish() {
        Ok((base, diff)) => commit(state, catalogue, (step, scene), (&set, &base, &diff)),
        Err(error) => EndOfProgram::Fault("code.contract", error.message),
    }
}

/// What the commit came to, if it is the program's last call.
fn committed(state: &RunState, work: &CodeWork) -> Option<EndOfProgram> {
    let last = state.calls.get(&work.program_calls.last()?.call)?;
    if last.requested.tool != COMMIT || last.requested.effect != Effect::Write {
        return None;
    }
    let CallStatus::Done { outcome } = &last.status else { return None };
    Some(match outcome {
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
    catalogue: &Catalogue,
    (step, scene): (&StepState, &Scene),
    (set, base, diff): (&WriteSet, &ReadBase, &WriteDiff),
) -> EndOfProgram {
    let Some(tool) = scene.program_tool(COMMIT) else {
        return EndOfProgram::Fault("code.refused", "the scene has no tables any more".to_owned());
    };
    let arguments = json!({"id": set.host().id, "base": base, "diff": diff});
    let mut call = requested(state, scene, COMMIT, arguments, forbidden_call(state, scene, tool));
    (call.effect, call.repeat, call.volatile) = (Effect::Write, Repeat::Key, false);
    let own = step_in_scene(step, scene);
    let asked =
        ApprovableCall { tool, arguments: &call.arguments, occurrence: 0, by_rules: false, stands_for: None };
    call.approval = call_approval(state, &own.step, &asked);
    if call.approval.is_none() && needs_yes(state, catalogue, scene, diff) {
        let tools = BTreeMap::from([(format!("{}.{COMMIT}", scene.name), definition(tool))]);
        let hash = call_hash(&call.arguments, &tools);
        let why = vec![question(state, diff)];
        call.approval =
            Some(RequiredApproval { hash, why, tools, by_user: true, ..RequiredApproval::default() });
    }
    let given = call.arguments.as_object().cloned().unwrap_or_default();
    let written = ProgramCall { function: format!("{}.{COMMIT}", scene.name), arguments: given };
    EndOfProgram::Commit(written, Box::new(call))
}

/// Whether the user has to confirm a diff: the policy says so, or a change of it was not said.
fn needs_yes(state: &RunState, catalogue: &Catalogue, scene: &Scene, diff: &WriteDiff) -> bool {
    if state.is_dry_run() {
        return false;
    }
    match state.settings().confirm_for(scene.confirm) {
        ConfirmPolicy::Never => false,
        ConfirmPolicy::Writes => true,
        ConfirmPolicy::Unclear => {
            let (values, changed) = values_to_say(scene, diff);
            let unsaid = unsaid(state, catalogue, &Value::Object(values));
            let is_said = |names: &Vec<String>| names.iter().any(|name| !unsaid.contains(name));
            !changed.iter().all(is_said) || diff.changes.iter().any(|change| change.after.is_none())
        }
    }
}

/// The values that a diff takes from the request: by name, and for each changed cell the names of those of which one has to
/// be said. What the checks and entries of the tables determine is none.
fn values_to_say(scene: &Scene, diff: &WriteDiff) -> (Map<String, Value>, Vec<Vec<String>>) {
    let (mut values, mut changed) = (Map::new(), Vec::new());
    for (at, change) in diff.changes.iter().enumerate() {
        let (Ok(table), Some(after)) = (scene.tables.table(&change.place.table), &change.after) else {
            continue;
        };
        let records = table.records.as_ref();
        for column in table.columns.iter().filter(|column| column.filled.is_none()) {
            let before = change.before.as_ref().and_then(|row| row.get(&column.name));
            let Some(cell) = after.get(&column.name).filter(|cell| Some(*cell) != before) else { continue };
            let is_fixed = records.is_some_and(|rule| {
                rule.by.contains_key(&column.name)
                    || rule.amounts.contains_key(&column.name)
                    || !column.values.is_empty()
                    || table.checks.iter().any(|check| check.contains(&column.name))
            });
            let candidates = candidates(&column.name, before, cell);
            if is_fixed || candidates.is_empty() {
                continue;
            }
            let names = candidates.into_iter().enumerate().map(|(nth, value)| {
                let name = format!("{}_{at}_{nth}", column.name);
                values.insert(name.clone(), value);
                name
            });
            changed.push(names.collect());
        }
    }
    (values, changed)
}

/// The values of which one has to be said for a changed cell: what it is, or by how much it changes; for cents also in whole
/// units.
fn candidates(name: &str, before: Option<&CellValue>, after: &CellValue) -> Vec<Value> {
    match after {
        CellValue::Null | CellValue::Boolean(_) => Vec::new(),
        CellValue::Integer(units) => {
            let by = before.and_then(CellValue::as_units).and_then(|before| units.checked_sub(before));
            let mut all = vec![json!(units)];
            all.extend(by.and_then(i64::checked_abs).map(|by| json!(by)));
            if name.ends_with("_cents") {
                all.push(json!(*units as f64 / 100.0));
            }
            all
        }
        CellValue::Decimal { .. } | CellValue::Text(_) => vec![after.to_json()],
    }
}

/// The question whether a diff is to be made, with each changed row.
fn question(state: &RunState, diff: &WriteDiff) -> String {
    let is_italian = state.language().is_some_and(|language| language.starts_with("it"));
    let (ask, more) = match is_italian {
        true => ("Faccio queste modifiche?", "altre righe"),
        false => ("Shall I make these changes?", "more rows"),
    };
    let mut rows: Vec<String> = diff.changes.iter().take(SHOWN_ROWS).map(shown).collect();
    if diff.changes.len() > SHOWN_ROWS {
        rows.push(format!("… {} {more}", diff.changes.len() - SHOWN_ROWS));
    }
    format!("{ask} {}", rows.join("; "))
}

/// A changed row on one line.
fn shown(change: &RowChange) -> String {
    let cells = |row: &TableRow, before: Option<&TableRow>| {
        let changed = row.iter().filter(|(name, cell)| before.and_then(|row| row.get(*name)) != Some(*cell));
        let cells = changed.map(|(name, cell)| match before.and_then(|row| row.get(name)) {
            Some(old) => format!("{name} {old} → {cell}"),
            None => format!("{name} {cell}"),
        });
        cells.collect::<Vec<_>>().join(", ")
    };
    let what = match (&change.before, &change.after) {
        (Some(before), Some(after)) => cells(after, Some(before)),
        (None, Some(after)) => format!("+ {}", cells(after, None)),
        (_, None) => "−".to_owned(),
    };
    invisible::one_line(&format!("{} {what}", change.place))
}

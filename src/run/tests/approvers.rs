//! Commands of people in a generated world, and its scenes: two catalogues, the second with changed
//! definitions of some tools, as after a reload.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::generators;
use super::world::Dice;
use crate::planner::{ApproverChoice, Command, CommandAction};
use crate::run::{ApprovalSubject, Effect, Repeat, RunState, RunStatus};
use crate::scene::{Catalogue, Scene, SceneTool, ToolApproval, ToolBuilder};
use crate::tools::{ToolContext, native};

/// The scenes, before and after a reload.
pub fn catalogue(reloaded: bool) -> &'static Catalogue {
    static BOTH: LazyLock<[Catalogue; 2]> = LazyLock::new(|| [scenes("Does it."), scenes("Does it now.")]);
    &BOTH[usize::from(reloaded)]
}

fn scenes(book: &str) -> Catalogue {
    use ToolApproval::{Call, None, Plan, Required};
    let scene = |name: &str, of_book: ToolApproval, of_pay: ToolApproval| {
        let open = json!({"type": "object", "properties": {"n": {"type": "integer"}, "note": {"type": "integer"}},
            "required": ["n"]});
        let by_id = json!({"type": "object", "properties": {"id": {}}, "required": ["id"]});
        let read = |name: &str| tool(name, "Looks.", Effect::Read, &open);
        let write = |name: &str, what: &str| tool(name, what, Effect::Write, &open).identity(&["n"]);
        let unbook = tool("unbook", "Takes it back.", Effect::Write, &by_id).approval(None);
        Scene::builder(name)
            .description(name)
            .instructions("Do it.")
            .example("do", "look")
            .tool(read("look"))
            .tool(write("book", book).approval(of_book).undo("unbook", json!({"id": "/result/value"})))
            .tool(
                write("pay", "Pays.")
                    .approval(of_pay)
                    .repeat(Repeat::Key)
                    .undo("unbook", json!({"id": "/arguments/n"})),
            )
            .tool(read("peek"))
            .tool(read("glance"))
            .tool(write("rent", "Rents."))
            .tool(unbook)
            .build()
            .unwrap()
    };
    Catalogue::new([scene("A", Required, Call), scene("B", Plan, None)])
}

fn tool(name: &str, what: &str, effect: Effect, schema: &Value) -> ToolBuilder {
    let does = native(|_: Value, _: ToolContext| async { Ok(Value::Null) });
    SceneTool::dynamic(name, what, effect, schema.clone(), does)
}

/// How many commands people may still send, so that each run ends.
#[derive(Debug, Clone, Copy)]
pub struct RemainingFaults {
    pub changes: bool,
    pub reopens: bool,
    pub stops: bool,
}

/// Any command, legal or not.
pub fn any_command(dice: &mut Dice, state: &RunState, max: u32, left: RemainingFaults) -> Command {
    let version = (dice.pick(6) == 5).then(|| dice.pick(4) as u32);
    // After the end, few commands are possible.
    let kind = if state.status.is_terminal() && dice.pick(3) > 0 { 14 } else { dice.pick(16) };
    let wish = match kind {
        0..=7 => decide(dice, state, left),
        8 | 9 => CommandAction::Approve { version, hash: None, hold: dice.pick(2) == 1 },
        10 if left.changes => CommandAction::Modify { words: "two days".to_owned(), version },
        11 if left.changes => CommandAction::Edit { plan: generators::plan(dice, state, max, true), version },
        12 if left.stops => CommandAction::Cancel,
        13 => CommandAction::Expire { approval: any_approval(dice, state) },
        14 if left.reopens => CommandAction::Reopen,
        _ => CommandAction::Approve { version: None, hash: Some("another".to_owned()), hold: false },
    };
    let by = ["keysersoze", "hockney", "fenster"][dice.pick(3)].to_owned();
    Command {
        by,
        note: (dice.pick(2) == 1).then(|| "because".to_owned()),
        action: wish,
        no_own_approval: dice.pick(2) == 1,
        is_authenticated: false,
    }
}

/// An approval that is open, or any number at all.
fn any_approval(dice: &mut Dice, state: &RunState) -> u32 {
    let open: Vec<u32> = state.approvals.iter().filter(|(_, a)| a.is_open()).map(|(n, _)| *n).collect();
    if open.is_empty() || dice.pick(6) == 5 { dice.pick(9) as u32 } else { open[dice.pick(open.len())] }
}

fn decide(dice: &mut Dice, state: &RunState, left: RemainingFaults) -> CommandAction {
    let approval = any_approval(dice, state);
    let matter = state.approvals.get(&approval).map(|a| a.matter);
    let ended = state.status.is_terminal();
    let choice = match (matter, dice.pick(12)) {
        (_, 11) => ApproverChoice::Edited(json!({ "n": "one" })),
        (_, 10) => ApproverChoice::NotDone,
        // Retries are rare, so half of the decisions after the end are retries.
        (Some(ApprovalSubject::Outcome { .. }), 0..=6) if ended && left.reopens => ApproverChoice::Again,
        (Some(ApprovalSubject::Outcome { .. }), 0..=3) => ApproverChoice::Done,
        (Some(ApprovalSubject::Outcome { .. }), 4..=6) if !ended => ApproverChoice::Again,
        (Some(ApprovalSubject::Outcome { .. }), _) => ApproverChoice::NotDone,
        (Some(ApprovalSubject::Call { .. }), 0..=2) => ApproverChoice::Edited(generators::arguments(dice)),
        (_, 5..=9) => ApproverChoice::Yes,
        _ => ApproverChoice::No,
    };
    let hash = state.approvals.get(&approval).map(|a| a.needed.hash.clone()).filter(|_| dice.pick(2) == 1);
    CommandAction::Decide { approval, choice, hash }
}

/// A command that unblocks a waiting run: there always is one, from a person who has changed nothing.
pub fn unblocking_command(dice: &mut Dice, state: &RunState) -> Command {
    assert_eq!(state.status, RunStatus::Waiting);
    let open = |matter: &ApprovalSubject| !matches!(matter, ApprovalSubject::Outcome { .. });
    let wish = match state.approvals.iter().find(|(_, a)| a.is_open() && open(&a.matter)) {
        // Once tools have changed under a version, releasing it requires the hash that was shown.
        _ if state.is_held() => {
            let hash = state.plan_approval().map(|(_, approval)| approval.needed.hash.clone());
            CommandAction::Approve { version: None, hash, hold: false }
        }
        Some((approval, _)) => {
            let choice = if dice.pick(3) == 2 { ApproverChoice::No } else { ApproverChoice::Yes };
            CommandAction::Decide { approval: *approval, choice, hash: None }
        }
        None => panic!("the run waits for nothing: {state:#?}"),
    };
    Command::new("edie", wish)
}

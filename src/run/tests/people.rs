//! What people of an invented world want, and the scenes that it has: two catalogues, of which the second
//! has other definitions of some tools, as after a reload.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::words;
use super::world::Dice;
use crate::planner::{Choice, Command, Wish};
use crate::run::{Effect, Matter, Repeat, RunState, RunStatus};
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

/// How much people still may ask for, so that each run ends.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    pub changes: bool,
    pub reopens: bool,
    pub stops: bool,
}

/// Something that somebody wants, in time or not, fitting or not.
pub fn wish(dice: &mut Dice, state: &RunState, most: u32, left: Left) -> Command {
    let version = (dice.pick(6) == 5).then(|| dice.pick(4) as u32);
    // After the end there is little that can be wanted.
    let kind = if state.status.is_terminal() && dice.pick(3) > 0 { 14 } else { dice.pick(16) };
    let wish = match kind {
        0..=7 => decide(dice, state, left),
        8 | 9 => Wish::Approve { version, hash: None, hold: dice.pick(2) == 1 },
        10 if left.changes => Wish::Modify { words: "two days".to_owned(), version },
        11 if left.changes => Wish::Edit { plan: words::plan(dice, state, most, true), version },
        12 if left.stops => Wish::Cancel,
        13 => Wish::Expire { approval: any_approval(dice, state) },
        14 if left.reopens => Wish::Reopen,
        _ => Wish::Approve { version: None, hash: Some("another".to_owned()), hold: false },
    };
    let by = ["keysersoze", "hockney", "fenster"][dice.pick(3)].to_owned();
    Command {
        by,
        note: (dice.pick(2) == 1).then(|| "because".to_owned()),
        wish,
        no_own_approval: dice.pick(2) == 1,
        keyed: false,
    }
}

/// An approval that is open, or any number at all.
fn any_approval(dice: &mut Dice, state: &RunState) -> u32 {
    let open: Vec<u32> = state.approvals.iter().filter(|(_, a)| a.is_open()).map(|(n, _)| *n).collect();
    if open.is_empty() || dice.pick(6) == 5 { dice.pick(9) as u32 } else { open[dice.pick(open.len())] }
}

fn decide(dice: &mut Dice, state: &RunState, left: Left) -> Wish {
    let approval = any_approval(dice, state);
    let matter = state.approvals.get(&approval).map(|a| a.matter);
    let ended = state.status.is_terminal();
    let choice = match (matter, dice.pick(12)) {
        (_, 11) => Choice::Edited(json!({ "n": "one" })),
        (_, 10) => Choice::NotDone,
        // Rare as it is, half of those who say anything of a run that has ended have it tried again.
        (Some(Matter::Outcome { .. }), 0..=6) if ended && left.reopens => Choice::Again,
        (Some(Matter::Outcome { .. }), 0..=3) => Choice::Done,
        (Some(Matter::Outcome { .. }), 4..=6) if !ended => Choice::Again,
        (Some(Matter::Outcome { .. }), _) => Choice::NotDone,
        (Some(Matter::Call { .. }), 0..=2) => Choice::Edited(words::arguments(dice)),
        (_, 5..=9) => Choice::Yes,
        _ => Choice::No,
    };
    let hash = state.approvals.get(&approval).map(|a| a.needed.hash.clone()).filter(|_| dice.pick(2) == 1);
    Wish::Decide { approval, choice, hash }
}

/// What gets a run on that waits: there always is something, said by somebody who has changed nothing.
pub fn decisive(dice: &mut Dice, state: &RunState) -> Command {
    assert_eq!(state.status, RunStatus::Waiting);
    let open = |matter: &Matter| !matches!(matter, Matter::Outcome { .. });
    let wish = match state.approvals.iter().find(|(_, a)| a.is_open() && open(&a.matter)) {
        // Once tools have changed under a version, only who names what was shown has it begin.
        _ if state.is_held() => {
            let hash = state.plan_approval().map(|(_, approval)| approval.needed.hash.clone());
            Wish::Approve { version: None, hash, hold: false }
        }
        Some((approval, _)) => {
            let choice = if dice.pick(3) == 2 { Choice::No } else { Choice::Yes };
            Wish::Decide { approval: *approval, choice, hash: None }
        }
        None => panic!("the run waits for nothing: {state:#?}"),
    };
    Command { by: "edie".to_owned(), note: None, wish, no_own_approval: false, keyed: false }
}

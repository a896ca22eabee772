//! What people may have done to a run's plan: each command as the events that carry it out, or why it
//! cannot be carried out.

use std::fmt::Write;

use serde_json::Value;

use super::approval::{call_hash, lapsed, plan_needs, unfit_calls};
use super::given::invalid;
use crate::plan::{self, Plan, PlanStatus, diff};
use crate::run::{
    CallStatus, Cause, Decision, EditedCall, Event, Fault, Maker, Matter, Needed, PlanMade, RunState,
    RunStatus, call_key,
};
use crate::scene::{Catalogue, arguments};

/// Longest feedback and notes, in characters.
const MAX_WORDS: usize = 8_000;

/// What somebody wants done with a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Who.
    pub by: String,
    /// In their own words, why.
    pub note: Option<String>,
    /// What.
    pub wish: Wish,
    /// Whether what they say it with may not approve what they asked for themselves.
    pub no_own_approval: bool,
    /// Whether keys tell who they are. Then a change of what somebody else asked for is not approved by
    /// whoever made it, and one of a call's arguments is put to people anew.
    pub keyed: bool,
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// To approve the plan in force. With `hold` it does not begin yet; said again without, it begins.
    Approve {
        /// The version that was seen; this or the hash has to be said of a plan with several versions.
        version: Option<u32>,
        /// The hash that was seen.
        hash: Option<String>,
        /// Only approve.
        hold: bool,
    },
    /// To decide what was put to a person.
    Decide {
        /// The approval's ordinal in the run.
        approval: u32,
        /// What is said.
        choice: Choice,
        /// The hash that was seen, where the client says.
        hash: Option<String>,
    },
    /// To have the plan changed by the planner, in these words.
    Modify {
        /// The words.
        words: String,
        /// The version that was seen, where the client says.
        version: Option<u32>,
    },
    /// To put this plan in its place.
    Edit {
        /// The plan.
        plan: Plan,
        /// The version that was seen, where the client says.
        version: Option<u32>,
    },
    /// To carry a run on that failed, was done in part, or was put aside.
    Reopen,
    /// To stop.
    Cancel,
    /// Nobody has decided in time.
    Expire {
        /// The approval's ordinal in the run.
        approval: u32,
    },
}

/// What can be said of what was put to a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// It may be done.
    Yes,
    /// It is not to be done.
    No,
    /// It may be done with these arguments.
    Edited(Value),
    /// The write was done.
    Done,
    /// The write was not done.
    NotDone,
    /// The write is to be tried again.
    Again,
}

/// Why a command is not carried out, and what its client had not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// A stable code, and words.
    pub fault: Fault,
    /// What is different from what the client had seen, a line each.
    pub difference: Vec<String>,
    /// What has to be recorded all the same: an approval that does not count any more.
    pub record: Option<Box<Lapse>>,
}

/// An event that a refusal brings about.
#[derive(Debug, Clone, PartialEq)]
pub struct Lapse(pub Event);

impl Eq for Lapse {}

/// The events that carry `command` out, in order.
///
/// # Errors
/// [`Refused`] with why not: the run has ended, it was decided before, what was seen is not what there is,
/// arguments do not fit, or the one who asks may not.
pub fn command(state: &RunState, catalogue: &Catalogue, command: &Command) -> Result<Vec<Event>, Refused> {
    let events = carried_out(state, catalogue, command)?;
    // What stands against it for reasons that are the machine's alone: it is being cancelled, it is about
    // to end.
    let mut after = std::borrow::Cow::Borrowed(state);
    for (at, event) in events.iter().enumerate() {
        after.check(event).map_err(|illegal| refused("run.not_now", illegal.to_string()))?;
        if at + 1 < events.len() {
            after.to_mut().apply_checked(event);
        }
    }
    Ok(events)
}

fn carried_out(state: &RunState, catalogue: &Catalogue, command: &Command) -> Result<Vec<Event>, Refused> {
    let too_long = |text: &str| text.chars().count() > MAX_WORDS;
    if command.note.as_deref().is_some_and(too_long) {
        return Err(refused(
            "approval.note_too_long",
            format!("the note has more than {MAX_WORDS} characters"),
        ));
    }
    match &command.wish {
        Wish::Approve { version, hash, hold } => {
            approve(state, catalogue, command, *version, hash.as_deref(), *hold)
        }
        Wish::Decide { approval, choice, hash } => {
            decide(state, catalogue, command, *approval, choice, hash.as_deref())
        }
        Wish::Expire { approval } => expire(state, *approval),
        Wish::Modify { words, version } => {
            if words.trim().is_empty() || too_long(words) {
                let what = format!("say in 1 to {MAX_WORDS} characters what is to change");
                return Err(refused("plan.no_feedback", what));
            }
            may_change(state, *version)?;
            has_room(state, 0)?;
            let version = state.plans.len() as u32 + 1;
            Ok(vec![Event::ModificationAsked {
                version,
                by: command.by.clone(),
                words: words.trim().to_owned(),
            }])
        }
        Wish::Edit { plan, version } => {
            may_change(state, *version)?;
            plan::taken(plan).map_err(|problem| refused(&problem.code, problem.message))?;
            has_room(state, plan::size(plan))?;
            edit(state, catalogue, command, plan).map(|event| vec![event])
        }
        Wish::Reopen => reopen(state, &command.by).map(|event| vec![event]),
        Wish::Cancel if state.status.is_terminal() => Err(ended(state)),
        Wish::Cancel => Ok(vec![Event::CancelRequested {
            by: command.by.clone(),
            deadline: false,
            note: command.note.clone(),
        }]),
    }
}

fn approve(
    state: &RunState,
    catalogue: &Catalogue,
    command: &Command,
    version: Option<u32>,
    hash: Option<&str>,
    hold: bool,
) -> Result<Vec<Event>, Refused> {
    if state.planning.is_some() || state.plan().is_none() {
        return Err(refused(
            "plan.not_made",
            "the plan is being made or changed: wait for it, then look at it again",
        ));
    }
    let to = if hold { PlanStatus::Approved } else { PlanStatus::Executing };
    let Some((approval, put)) = state.plan_approval().filter(|_| !state.status.is_terminal()) else {
        return Err(illegal(state, to));
    };
    let (by, shown) = (command.by.clone(), put.needed.hash.clone());
    if state.has_begun() {
        return Err(illegal(state, to));
    }
    may_decide(state, command)?;
    seen(state, version, hash, &shown)?;
    // Of several versions the one in force may not be the one that was read.
    let versions = state.plans.len();
    if version.is_none() && hash.is_none() && versions > 1 {
        let what = format!(
            "the plan has {versions} versions: say which one you saw, by `version` or `hash`; \
             in force is version {versions} with the hash {shown}"
        );
        return Err(refused("plan.version_required", what));
    }
    // The version alone does not say which of its tools were seen.
    let other = |a: &crate::run::Approval| {
        a.lapsed && a.matter == put.matter && !a.needed.hash.is_empty() && a.needed.hash != shown
    };
    if hash.is_none() && state.approvals.values().any(other) {
        let what = format!(
            "tools have changed since this version was first shown: look again, and name the hash {shown}"
        );
        return Err(changed(what, Vec::new()));
    }
    still_holds(state, catalogue)?;
    match &put.decided {
        None => {
            let decision = Decision::Yes { hold };
            Ok(vec![Event::Decided {
                approval,
                matter: put.matter,
                decision,
                by,
                note: command.note.clone(),
                word: None,
            }])
        }
        Some((Decision::Yes { .. }, _)) if state.is_held() && !hold => Ok(vec![Event::Released { by }]),
        Some((decision, who)) => Err(decided(decision, who)),
    }
}

fn decide(
    state: &RunState,
    catalogue: &Catalogue,
    command: &Command,
    number: u32,
    choice: &Choice,
    hash: Option<&str>,
) -> Result<Vec<Event>, Refused> {
    let Some(put) = state.approvals.get(&number) else {
        return Err(refused("approval.unknown", format!("the run has no approval {number}")));
    };
    if let Some((decision, who)) = &put.decided {
        return Err(decided(decision, who));
    }
    if put.lapsed {
        let what = "what it was about has changed or ended: look at what waits now";
        return Err(refused("approval.lapsed", what));
    }
    if let Some(event) = put_anew(state, catalogue, command, number, choice, hash)? {
        return Ok(vec![event]);
    }
    may_decide(state, command)?;
    if let Some(hash) = hash.filter(|hash| *hash != put.needed.hash) {
        return Err(changed(format!("the hash {hash} is not that of what is asked now"), Vec::new()));
    }
    let matter = put.matter;
    let decision = match (matter, choice) {
        (Matter::Plan { .. } | Matter::Call { .. }, Choice::Yes) => {
            still_holds(state, catalogue)?;
            Decision::Yes { hold: false }
        }
        (Matter::Plan { .. } | Matter::Call { .. }, Choice::No) => Decision::No,
        (Matter::Call { call }, Choice::Edited(given)) => {
            still_holds(state, catalogue)?;
            edited(state, catalogue, call, given)?
        }
        (Matter::Outcome { .. }, Choice::Done) => Decision::Done,
        (Matter::Outcome { .. }, Choice::NotDone) => Decision::NotDone,
        (Matter::Outcome { .. }, Choice::Again) => Decision::Again,
        (Matter::Outcome { .. }, _) => {
            let what = "this is about what became of a write: say done, not_done or again";
            return Err(refused("approval.choice", what));
        }
        (Matter::Plan { .. }, Choice::Edited(_)) => {
            return Err(refused("approval.choice", "a plan is changed by modify; say yes or no here"));
        }
        _ => return Err(refused("approval.choice", "say yes, no, or yes with edited arguments")),
    };
    let event = |decision: Decision| Event::Decided {
        approval: number,
        matter,
        decision,
        by: command.by.clone(),
        note: command.note.clone(),
        word: None,
    };
    if !state.status.is_terminal() {
        return Ok(vec![event(decision)]);
    }
    match decision {
        Decision::Again => Ok(vec![reopen(state, &command.by)?, event(Decision::Again)]),
        Decision::Done | Decision::NotDone => Ok(vec![event(decision)]),
        _ => Err(ended(state)),
    }
}

/// Other arguments of a call that somebody else asked for: they are put to people anew, since whoever wrote
/// them does not approve them. `None` for anything else.
fn put_anew(
    state: &RunState,
    catalogue: &Catalogue,
    command: &Command,
    number: u32,
    choice: &Choice,
    hash: Option<&str>,
) -> Result<Option<Event>, Refused> {
    let (Some(put), Choice::Edited(given)) = (state.approvals.get(&number), choice) else { return Ok(None) };
    let Matter::Call { call } = put.matter else { return Ok(None) };
    if !command.keyed || asked_by(state, &command.by) {
        return Ok(None);
    }
    if state.status.is_terminal() {
        return Err(ended(state));
    }
    if let Some(hash) = hash.filter(|hash| *hash != put.needed.hash) {
        return Err(changed(format!("the hash {hash} is not that of what is asked now"), Vec::new()));
    }
    still_holds(state, catalogue)?;
    let Decision::Edited { arguments, key } = edited(state, catalogue, call, given)? else { return Ok(None) };
    let why = format!("{} changed its arguments", command.by);
    let mut reasons = put.needed.why.clone();
    reasons.push(why.clone());
    let needed = Needed {
        hash: call_hash(&arguments, &put.needed.tools),
        why: reasons,
        tools: put.needed.tools.clone(),
    };
    let edited = Some(Box::new(EditedCall { arguments, key, by: command.by.clone() }));
    Ok(Some(Event::ApprovalLapsed { approval: number, matter: put.matter, why: vec![why], needed, edited }))
}

/// Whether the run is this user's.
fn asked_by(state: &RunState, user: &str) -> bool {
    state.queued.as_ref().is_some_and(|queued| queued.user == user)
}

/// Whether a command says yes to what the same person, who did not ask for the run, has made of it.
fn approves_own_change(state: &RunState, command: &Command) -> bool {
    let by = Some(&command.by);
    let of_plan = || state.plan().is_some_and(|made| made.by.as_ref() == by);
    let changed = match &command.wish {
        Wish::Approve { .. } => of_plan(),
        Wish::Decide { approval, .. } => match state.approvals.get(approval).map(|put| put.matter) {
            Some(Matter::Plan { .. }) => of_plan(),
            Some(Matter::Call { call }) => {
                state.calls.get(&call).is_some_and(|call| call.edited_by.as_ref() == by)
            }
            _ => false,
        },
        _ => false,
    };
    changed && command.keyed && !asked_by(state, &command.by)
}

fn edited(state: &RunState, catalogue: &Catalogue, call: u32, given: &Value) -> Result<Decision, Refused> {
    let gone = || refused("approval.lapsed", "the call or its tool is not there any more");
    let call = state.calls.get(&call).filter(|c| c.status == CallStatus::Requested).ok_or_else(gone)?;
    let scene = catalogue.get(&call.scene).ok_or_else(gone)?;
    let tool = scene.tool(&call.requested.tool).ok_or_else(gone)?;
    let arguments = arguments::check(tool, &given.to_string())
        .map_err(|fault| refused("approval.arguments", fault.message))?;
    let key = call_key(&scene.name, &tool.name, &arguments, &tool.identity);
    Ok(Decision::Edited { arguments, key })
}

fn expire(state: &RunState, number: u32) -> Result<Vec<Event>, Refused> {
    let open = state.approvals.get(&number).filter(|put| put.is_open());
    let Some(put) = open.filter(|put| !matches!(put.matter, Matter::Outcome { .. })) else {
        return Err(refused("approval.decided", "it was decided in time"));
    };
    Ok(vec![Event::Decided {
        approval: number,
        matter: put.matter,
        decision: Decision::No,
        by: "expiry".to_owned(),
        note: Some("nobody decided in time".to_owned()),
        word: None,
    }])
}

fn edit(state: &RunState, catalogue: &Catalogue, command: &Command, plan: &Plan) -> Result<Event, Refused> {
    let version = state.plans.len() as u32 + 1;
    let made =
        person_made(state, catalogue, plan, version, Cause::Edit).map_err(|problems| unfit(&problems))?;
    if let Some(before) = state.plan()
        && diff(&before.plan, &made.plan).is_empty()
    {
        return Err(refused("plan.unchanged", "that is the plan as it is"));
    }
    let made = PlanMade { by: Some(command.by.clone()), why: command.note.clone(), ..made };
    let approval = plan_needs(state, catalogue, &made);
    Ok(Event::PlanEdited(PlanMade { approval, ..made }))
}

/// A plan as a person wrote it, ready to be put in force as `version`.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn person_made(
    state: &RunState,
    catalogue: &Catalogue,
    plan: &Plan,
    version: u32,
    cause: Cause,
) -> Result<PlanMade, Vec<plan::Problem>> {
    let mut plan = plan.clone();
    let last = state.last_fixed_step(cause == Cause::Edit);
    plan::normalise(&mut plan, catalogue.known_names(), last);
    let limits = plan::Limits { max_steps: state.settings().max_steps };
    let mut problems = plan::validate(&plan, catalogue.known_names(), limits, &state.finished_steps(), last);
    problems.extend(unfit_calls(catalogue, &plan));
    if problems.is_empty() { Ok(PlanMade::new(version, cause, Maker::Person, plan)) } else { Err(problems) }
}

fn unfit(problems: &[plan::Problem]) -> Refused {
    Refused { fault: invalid(problems), difference: Vec::new(), record: None }
}

fn reopen(state: &RunState, by: &str) -> Result<Event, Refused> {
    if state.aside.is_some() && state.cancel.is_none() && !state.status.is_terminal() {
        return Ok(Event::Released { by: by.to_owned() });
    }
    let event = Event::RunReopened { by: by.to_owned() };
    match state.check(&event) {
        Ok(()) => Ok(event),
        Err(illegal) => Err(refused(
            "run.not_resumable",
            format!("a run that is {} cannot be carried on: {}", name(&state.status), illegal.why),
        )),
    }
}

fn may_change(state: &RunState, version: Option<u32>) -> Result<(), Refused> {
    if state.status.is_terminal() || (state.has_begun() && state.planning.is_none()) {
        return Err(illegal(state, PlanStatus::Draft));
    }
    seen(state, version, None, "")?;
    match state.check(&Event::ModificationAsked {
        version: state.plans.len() as u32 + 1,
        by: String::new(),
        words: String::new(),
    }) {
        Ok(()) => Ok(()),
        Err(illegal) => {
            Err(refused("plan.not_changeable", format!("the plan cannot be changed now: {}", illegal.why)))
        }
    }
}

/// Whether a further version of `bytes` can be kept beside those that there are.
fn has_room(state: &RunState, bytes: usize) -> Result<(), Refused> {
    let remedy = "approve it as it is, or cancel it and ask for a new one";
    if state.plans.len() >= plan::MAX_VERSIONS {
        let what = format!("the plan has {} versions, and no more are made: {remedy}", state.plans.len());
        return Err(refused("plan.too_many_versions", what));
    }
    let mut whole = bytes;
    for made in &state.plans {
        whole = whole.saturating_add(plan::size(&made.plan));
        if whole > plan::MAX_VERSIONS_BYTES {
            let most = plan::MAX_VERSIONS_BYTES;
            let what = format!("the plan's versions would have more than {most} bytes together: {remedy}");
            return Err(refused("plan.history_full", what));
        }
    }
    Ok(())
}

fn may_decide(state: &RunState, command: &Command) -> Result<(), Refused> {
    let asked = asked_by(state, &command.by);
    // A change of the plan, or of a call's arguments, is a wish of one's own, too.
    let changed = state.plan().is_some_and(|made| made.by.as_ref() == Some(&command.by))
        || matches!(command.wish, Wish::Decide { choice: Choice::Edited(_), .. });
    let own = asked || changed || approves_own_change(state, command);
    // What somebody asked for they may always take back.
    let takes_back = matches!(command.wish, Wish::Decide { choice: Choice::No, .. });
    if !own || takes_back {
        return Ok(());
    }
    let by = &command.by;
    if approves_own_change(state, command) {
        let what = format!(
            "{by} changed this, and somebody else has to approve it: who asked for it, or another approver"
        );
        return Err(refused("approval.own_request", what));
    }
    if !state.settings().approval.by_oneself {
        let what = format!("{by} asked for this, or changed it, and somebody else has to approve it");
        return Err(refused("approval.own_request", what));
    }
    if command.no_own_approval {
        let what = format!(
            "{by} asked for this, or changed it, and this key of {by} may not approve it: somebody else has to"
        );
        return Err(refused("approval.own_request", what));
    }
    Ok(())
}

/// Whether what the client had seen is what there is.
fn seen(state: &RunState, version: Option<u32>, hash: Option<&str>, shown: &str) -> Result<(), Refused> {
    let now = state.plans.len() as u32;
    if let Some(version) = version.filter(|version| *version != now) {
        let before = version.checked_sub(1).and_then(|at| state.plans.get(at as usize));
        let lines = match (before, state.plan()) {
            (Some(before), Some(made)) => diff(&before.plan, &made.plan),
            _ => Vec::new(),
        };
        return Err(changed(format!("you saw version {version}; version {now} is in force"), lines));
    }
    match hash.filter(|hash| *hash != shown) {
        Some(hash) => Err(changed(format!("the hash {hash} is not that of the plan as it is"), Vec::new())),
        None => Ok(()),
    }
}

/// Whether the tools that an approval covers are what they were when it was asked for.
fn still_holds(state: &RunState, catalogue: &Catalogue) -> Result<(), Refused> {
    match lapsed(state, catalogue) {
        Some(event) => {
            let why = match &event {
                Event::ApprovalLapsed { why, .. } => why.clone(),
                _ => Vec::new(),
            };
            let mut refused =
                changed("tools have changed since this was shown: look at it again".to_owned(), why);
            refused.record = Some(Box::new(Lapse(event)));
            Err(refused)
        }
        None => Ok(()),
    }
}

fn changed(what: String, difference: Vec<String>) -> Refused {
    let mut message = what;
    for line in &difference {
        // Writing into a String cannot fail.
        let _ = write!(message, "\n{line}");
    }
    Refused { fault: Fault::new("approval.changed", message), difference, record: None }
}

fn decided(decision: &Decision, who: &str) -> Refused {
    let said = match decision {
        Decision::No => "no".to_owned(),
        Decision::Yes { .. } | Decision::Edited { .. } => "yes".to_owned(),
        other => other.name().to_owned(),
    };
    refused("approval.decided", format!("{who} has decided this already: {said}"))
}

fn illegal(state: &RunState, to: PlanStatus) -> Refused {
    let what = match state.plan_status.become_status(to) {
        Err(illegal) => illegal.to_string(),
        Ok(_) => format!("a plan that is {} waits for nobody's approval", state.plan_status.name()),
    };
    refused("plan.illegal_transition", what)
}

fn ended(state: &RunState) -> Refused {
    refused("run.ended", format!("the run has ended: it is {}", name(&state.status)))
}

fn name(status: &RunStatus) -> String {
    serde_json::to_value(status).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn refused(code: &str, message: impl Into<String>) -> Refused {
    Refused { fault: Fault::new(code, message), difference: Vec::new(), record: None }
}

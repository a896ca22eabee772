//! Commands of people about a run's plan: each yields the events that execute it, or a refusal.

mod own_requests;
mod refusal;

use serde_json::Value;

use self::own_requests::{is_requester, may_decide};
pub use self::refusal::{CommandRefusal, LapseEvent};
use self::refusal::{
    already_decided, changed_since_seen, illegal_transition, invalid_plan, refusal, run_ended,
};
use super::approval::{call_hash, lapsed_approval, required_plan_approval, unfit_calls};
use super::constraints::constraint_problems;
use super::flow_plan::{flow_problems, frozen_flows};
use super::program::program_problems;
use super::step_expectations::expectation_problems;
use super::synthesis::synthesis_problems;
use crate::flow::Flow;
use crate::plan::{self, Plan, PlanStatus, diff};
use crate::run::{
    Approval, ApprovalSubject, CallStatus, Decision, EXPIRY, EditedCall, Event, PlanCause, PlanMade,
    PlanMaker, PlanScore, RESTORED, RequiredApproval, RunState, RunStatus, call_key,
};
use crate::scene::{Catalogue, arguments};

/// Longest feedback or note, in characters.
const MAX_NOTE_CHARS: usize = 8_000;

/// A person's command about a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The person.
    pub by: String,
    /// The person's reason.
    pub note: Option<String>,
    /// The action that the person wants.
    pub action: CommandAction,
    /// Whether the person's API key may not approve the person's own requests.
    pub no_own_approval: bool,
    /// Whether people are authenticated by API keys. Then editors cannot approve their changes to another
    /// person's request, and edited arguments of a call need a new approval.
    pub is_authenticated: bool,
}

/// The kind of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandAction {
    /// Approve the plan in force. With `hold` it does not begin yet; repeating the command without `hold`
    /// releases it.
    Approve {
        /// The version that was seen. A plan with several versions needs this or the hash.
        version: Option<u32>,
        /// The hash that was seen.
        hash: Option<String>,
        /// Only approve.
        hold: bool,
    },
    /// Decide a requested approval.
    Decide {
        /// The approval's ordinal in the run.
        approval: u32,
        /// The decision.
        choice: ApproverChoice,
        /// The hash that was seen, if the client sent it.
        hash: Option<String>,
    },
    /// Have the planner change the plan as described.
    Modify {
        /// The description of the change.
        words: String,
        /// The version that was seen, if the client sent it.
        version: Option<u32>,
    },
    /// Replace the plan with this one.
    Edit {
        /// The plan.
        plan: Plan,
        /// The version that was seen, if the client sent it.
        version: Option<u32>,
    },
    /// Resume a run that failed, completed in part, or was quarantined.
    Reopen,
    /// Cancel the run.
    Cancel,
    /// Judge the plan, after its run.
    Rate {
        /// The judgement.
        score: PlanScore,
    },
    /// The approval expired without a decision.
    Expire {
        /// The approval's ordinal in the run.
        approval: u32,
    },
}

impl Command {
    /// A command without a note, of a person who is known without an API key: of the command line, or of a library.
    pub fn new(by: impl Into<String>, action: CommandAction) -> Self {
        Self { by: by.into(), note: None, action, no_own_approval: false, is_authenticated: false }
    }

    /// The refusal of an approval that nobody decided in time.
    pub fn expire(approval: u32) -> Self {
        Self::new(EXPIRY, CommandAction::Expire { approval })
    }
}

/// The possible decisions about a requested approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApproverChoice {
    /// Approve it.
    Yes,
    /// Refuse it.
    No,
    /// Approve it with these arguments.
    Edited(Value),
    /// Change the lists of a question to the user as these words of the user say; a model reads them, and the question is
    /// asked again.
    Words(String),
    /// The write was done.
    Done,
    /// The write was not done.
    NotDone,
    /// The write is to be retried.
    Again,
}

/// The events that execute `command`, in order.
///
/// # Errors
/// [`CommandRefusal`] with the reason: the run has ended, it was decided before, the client has not seen
/// the current version, arguments are invalid, or the person is not allowed to.
pub fn events_for_command(
    state: &RunState,
    catalogue: &Catalogue,
    command: &Command,
) -> Result<Vec<Event>, CommandRefusal> {
    let mut events = command_events(state, catalogue, command)?;
    events.extend(state.parked_again(&events));
    // Reasons that only the state machine knows: the run is being cancelled or about to end.
    let mut after = std::borrow::Cow::Borrowed(state);
    for (at, event) in events.iter().enumerate() {
        after.check(event).map_err(|illegal| refusal("run.not_now", illegal.to_string()))?;
        if at + 1 < events.len() {
            let at = state.at;
            after.to_mut().apply_checked(event, at);
        }
    }
    Ok(events)
}

fn command_events(
    state: &RunState,
    catalogue: &Catalogue,
    command: &Command,
) -> Result<Vec<Event>, CommandRefusal> {
    let too_long = |text: &str| text.chars().count() > MAX_NOTE_CHARS;
    if command.note.as_deref().is_some_and(too_long) {
        return Err(refusal(
            "approval.note_too_long",
            format!("the note has more than {MAX_NOTE_CHARS} characters"),
        ));
    }
    if state.copied.is_some() && must_follow_resumption(&command.action) {
        return Err(refusal(RESTORED, "the run was restored from a backup: resume or cancel it first"));
    }
    match &command.action {
        CommandAction::Approve { version, hash, hold } => {
            approve(state, catalogue, command, *version, hash.as_deref(), *hold)
        }
        CommandAction::Decide { approval, choice, hash } => {
            decide(state, catalogue, command, *approval, choice, hash.as_deref())
        }
        CommandAction::Expire { approval } => expire(state, *approval),
        CommandAction::Modify { words, version } => {
            if words.trim().is_empty() || too_long(words) {
                let what = format!("say in 1 to {MAX_NOTE_CHARS} characters what is to change");
                return Err(refusal("plan.no_feedback", what));
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
        CommandAction::Edit { plan, version } => {
            may_change(state, *version)?;
            plan::check_size(plan).map_err(|problem| refusal(&problem.code, problem.message))?;
            has_room(state, plan::json_size(plan))?;
            edit(state, catalogue, command, plan).map(|event| vec![event])
        }
        CommandAction::Reopen => reopen(state, &command.by).map(|event| vec![event]),
        CommandAction::Rate { score } => rate(state, command, *score).map(|event| vec![event]),
        CommandAction::Cancel if state.status.is_terminal() => Err(run_ended(state)),
        CommandAction::Cancel => Ok(vec![Event::CancelRequested {
            by: command.by.clone(),
            deadline: false,
            note: command.note.clone(),
        }]),
    }
}

/// Whether a command decides what a run is going to do, which is refused while the run is quarantined after a restore.
/// The outcome of its writes can be reported at any time.
fn must_follow_resumption(action: &CommandAction) -> bool {
    match action {
        CommandAction::Approve { .. } | CommandAction::Expire { .. } => true,
        CommandAction::Decide { choice, .. } => {
            !matches!(choice, ApproverChoice::Done | ApproverChoice::NotDone | ApproverChoice::Again)
        }
        _ => false,
    }
}

fn approve(
    state: &RunState,
    catalogue: &Catalogue,
    command: &Command,
    version: Option<u32>,
    hash: Option<&str>,
    hold: bool,
) -> Result<Vec<Event>, CommandRefusal> {
    if state.planning.is_some() || state.plan().is_none() {
        return Err(refusal(
            "plan.not_made",
            "the plan is being made or changed: wait for it, then look at it again",
        ));
    }
    let to = if hold { PlanStatus::Approved } else { PlanStatus::Executing };
    let Some((number, approval)) = state.plan_approval().filter(|_| !state.status.is_terminal()) else {
        return Err(illegal_transition(state, to));
    };
    let (by, shown) = (command.by.clone(), approval.needed.hash.clone());
    if state.has_begun() {
        return Err(illegal_transition(state, to));
    }
    may_decide(state, command)?;
    check_seen_version(state, version, hash, &shown)?;
    // With several versions, the one in force may not be the one that the approver has seen.
    let versions = state.plans.len();
    if version.is_none() && hash.is_none() && versions > 1 {
        let what = format!(
            "the plan has {versions} versions: name the one that you saw, by `version` or `hash`; \
             version {versions} is in force, with the hash {shown}"
        );
        return Err(refusal("plan.version_required", what));
    }
    // The version alone does not identify the tool definitions that were seen.
    let other = |a: &Approval| {
        a.lapsed && a.matter == approval.matter && !a.needed.hash.is_empty() && a.needed.hash != shown
    };
    if hash.is_none() && state.approvals.values().any(other) {
        let what = format!(
            "tools have changed since this version was first shown: look again, and name the hash {shown}"
        );
        return Err(changed_since_seen(what, Vec::new()));
    }
    check_not_lapsed(state, catalogue)?;
    match &approval.decided {
        None => {
            let decision = Decision::Yes { hold };
            Ok(vec![Event::Decided {
                approval: number,
                matter: approval.matter,
                decision,
                by,
                note: command.note.clone(),
                word: None,
            }])
        }
        Some((Decision::Yes { .. }, _)) if state.is_held() && !hold => Ok(vec![Event::Released { by }]),
        Some((decision, who)) => Err(already_decided(decision, who)),
    }
}

fn decide(
    state: &RunState,
    catalogue: &Catalogue,
    command: &Command,
    number: u32,
    choice: &ApproverChoice,
    hash: Option<&str>,
) -> Result<Vec<Event>, CommandRefusal> {
    let Some(approval) = state.approvals.get(&number) else {
        return Err(refusal("approval.unknown", format!("the run has no approval {number}")));
    };
    if let Some((decision, who)) = &approval.decided {
        return Err(already_decided(decision, who));
    }
    if approval.lapsed {
        let what = "its subject has changed or ended: look at the approvals that are open now";
        return Err(refusal("approval.lapsed", what));
    }
    if let Some(event) = resubmit_call(state, catalogue, command, number, choice, hash)? {
        return Ok(vec![event]);
    }
    may_decide(state, command)?;
    check_seen_hash(hash, &approval.needed.hash, "the approval requested now")?;
    if let ApproverChoice::Words(words) = choice {
        return Ok(vec![list_change(state, catalogue, command, number, words)?]);
    }
    let matter = approval.matter;
    let decision = decision_of(state, catalogue, approval, choice)?;
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
        _ => Err(run_ended(state)),
    }
}

/// The event by which a model is asked what the user's words change in the lists of a question.
fn list_change(
    state: &RunState,
    catalogue: &Catalogue,
    command: &Command,
    approval: u32,
    words: &str,
) -> Result<Event, CommandRefusal> {
    if state.status.is_terminal() {
        return Err(run_ended(state));
    }
    if !state.may_read_list_change() || words.chars().count() > MAX_NOTE_CHARS {
        return Err(refusal(
            "approval.choice",
            "say yes, no, or which names of the list are to be left out or added",
        ));
    }
    check_not_lapsed(state, catalogue)?;
    Ok(Event::ListChangeAsked {
        approval,
        by: command.by.clone(),
        words: words.trim().to_owned(),
        word: None,
    })
}

/// The decision that `choice` makes about the subject of `approval`, if that is possible.
fn decision_of(
    state: &RunState,
    catalogue: &Catalogue,
    approval: &Approval,
    choice: &ApproverChoice,
) -> Result<Decision, CommandRefusal> {
    Ok(match (approval.matter, choice) {
        (ApprovalSubject::Plan { .. } | ApprovalSubject::Call { .. }, ApproverChoice::Yes) => {
            check_not_lapsed(state, catalogue)?;
            Decision::Yes { hold: false }
        }
        (ApprovalSubject::Plan { .. } | ApprovalSubject::Call { .. }, ApproverChoice::No) => Decision::No,
        (ApprovalSubject::Call { call }, ApproverChoice::Edited(given)) => {
            check_not_lapsed(state, catalogue)?;
            edited_decision(state, catalogue, approval, call, given)?
        }
        (ApprovalSubject::Outcome { .. }, ApproverChoice::Done) => Decision::Done,
        (ApprovalSubject::Outcome { .. }, ApproverChoice::NotDone) => Decision::NotDone,
        (ApprovalSubject::Outcome { .. }, ApproverChoice::Again) => Decision::Again,
        (ApprovalSubject::Outcome { .. }, _) => {
            let what = "this is about the outcome of a write: say done, not_done or again";
            return Err(refusal("approval.choice", what));
        }
        (ApprovalSubject::Plan { .. }, ApproverChoice::Edited(_)) => {
            return Err(refusal("approval.choice", "a plan is changed by modify; say yes or no here"));
        }
        _ => return Err(refusal("approval.choice", "say yes, no, or yes with edited arguments")),
    })
}

/// Edited arguments of a call in another person's run need a new approval, since their editor cannot
/// approve them. `None` for anything else.
fn resubmit_call(
    state: &RunState,
    catalogue: &Catalogue,
    command: &Command,
    number: u32,
    choice: &ApproverChoice,
    hash: Option<&str>,
) -> Result<Option<Event>, CommandRefusal> {
    let (Some(approval), ApproverChoice::Edited(given)) = (state.approvals.get(&number), choice) else {
        return Ok(None);
    };
    let ApprovalSubject::Call { call } = approval.matter else { return Ok(None) };
    if !command.is_authenticated || is_requester(state, &command.by) {
        return Ok(None);
    }
    if state.status.is_terminal() {
        return Err(run_ended(state));
    }
    check_seen_hash(hash, &approval.needed.hash, "the approval requested now")?;
    check_not_lapsed(state, catalogue)?;
    let Decision::Edited { arguments, key } = edited_decision(state, catalogue, approval, call, given)?
    else {
        return Ok(None);
    };
    let why = format!("{} changed its arguments", command.by);
    let mut reasons = approval.needed.why.clone();
    reasons.push(why.clone());
    let hash = call_hash(&arguments, &approval.needed.tools);
    let needed = RequiredApproval { hash, why: reasons, ..approval.needed.clone() };
    let edited = Some(Box::new(EditedCall { arguments, key, by: command.by.clone() }));
    Ok(Some(Event::ApprovalLapsed {
        approval: number,
        matter: approval.matter,
        why: vec![why],
        needed,
        edited,
        read: None,
    }))
}

fn edited_decision(
    state: &RunState,
    catalogue: &Catalogue,
    approval: &Approval,
    call: u32,
    given: &Value,
) -> Result<Decision, CommandRefusal> {
    let gone = || refusal("approval.lapsed", "the call or its tool no longer exists");
    let call = state.calls.get(&call).filter(|c| c.status == CallStatus::Requested).ok_or_else(gone)?;
    let scene = catalogue.get(&call.scene).ok_or_else(gone)?;
    let tool = scene.tool(&call.requested.tool).ok_or_else(gone)?;
    let arguments = arguments::check(tool, &given.to_string())
        .map_err(|fault| refusal("approval.arguments", fault.message))?;
    approval
        .needed
        .check_edit(&call.requested.arguments, &arguments)
        .map_err(|why| refusal("approval.arguments", why))?;
    let key = call_key(&scene.name, &tool.name, &arguments, &tool.identity);
    Ok(Decision::Edited { arguments, key })
}

fn expire(state: &RunState, number: u32) -> Result<Vec<Event>, CommandRefusal> {
    let open = state.approvals.get(&number).filter(|approval| approval.is_open());
    let Some(approval) = open.filter(|approval| !matches!(approval.matter, ApprovalSubject::Outcome { .. }))
    else {
        return Err(refusal("approval.decided", "it was decided in time"));
    };
    Ok(vec![Event::Decided {
        approval: number,
        matter: approval.matter,
        decision: Decision::No,
        by: EXPIRY.to_owned(),
        note: Some("nobody decided in time".to_owned()),
        word: None,
    }])
}

fn edit(
    state: &RunState,
    catalogue: &Catalogue,
    command: &Command,
    plan: &Plan,
) -> Result<Event, CommandRefusal> {
    let version = state.plans.len() as u32 + 1;
    let made = plan_from_person(state, catalogue, plan, version, PlanCause::Edit)
        .map_err(|problems| invalid_plan(&problems))?;
    if let Some(before) = state.plan()
        && diff(&before.plan, &made.plan).is_empty()
    {
        return Err(refusal("plan.unchanged", "the plan would not change"));
    }
    let flows = frozen_flows(state, catalogue, &made.plan);
    let made = PlanMade { by: Some(command.by.clone()), why: command.note.clone(), flows, ..made };
    let approval = required_plan_approval(state, catalogue, &made);
    Ok(Event::PlanEdited(PlanMade { approval, ..made }))
}

/// Validates a plan written by a person and prepares it as `version`.
///
/// # Errors
/// All problems of the plan.
pub(super) fn plan_from_person(
    state: &RunState,
    catalogue: &Catalogue,
    plan: &Plan,
    version: u32,
    cause: PlanCause,
) -> Result<PlanMade, Vec<plan::PlanProblem>> {
    let mut plan = plan.clone();
    let last = state.last_fixed_step(cause == PlanCause::Edit);
    plan::normalise(&mut plan, catalogue.known_names(), last);
    let limits = plan::PlanLimits { max_steps: state.settings().max_steps };
    let mut problems = plan::validate(&plan, catalogue.known_names(), limits, &state.finished_steps(), last);
    problems.extend(unfit_calls(catalogue, &plan));
    problems.extend(constraint_problems(state, catalogue, &plan));
    problems.extend(flow_problems(state, catalogue, &plan));
    problems.extend(synthesis_problems(&plan));
    problems.extend(program_problems(state, &plan));
    problems.extend(expectation_problems(catalogue, &plan));
    if problems.is_empty() {
        Ok(PlanMade::new(version, cause, PlanMaker::Person, plan))
    } else {
        Err(problems)
    }
}

fn reopen(state: &RunState, by: &str) -> Result<Event, CommandRefusal> {
    if state.is_quarantined() && !state.status.is_terminal() {
        return Ok(Event::Released { by: by.to_owned() });
    }
    let event = Event::RunReopened { by: by.to_owned() };
    match state.check(&event) {
        Ok(()) => Ok(event),
        Err(_) if !matches!(state.status, RunStatus::Failed | RunStatus::Partial) => {
            let status = state.status;
            let why = format!("this run is {status}, and only a failed or partial run can be resumed");
            Err(refusal("run.not_resumable", why))
        }
        Err(illegal) => {
            Err(refusal("run.not_resumable", format!("this run cannot be resumed: {}", illegal.why)))
        }
    }
}

fn rate(state: &RunState, command: &Command, score: PlanScore) -> Result<Event, CommandRefusal> {
    if state.plans.is_empty() {
        return Err(refusal("plan.not_made", "there is no plan to rate"));
    }
    if !state.status.is_terminal() {
        return Err(refusal("plan.not_ended", "the plan can be rated once its run has ended"));
    }
    let event = Event::PlanRated {
        template: state.learned_template().map(str::to_owned),
        paths: state.learned_paths(),
        score,
        by: command.by.clone(),
        note: command.note.clone(),
    };
    match state.check(&event) {
        Ok(()) => Ok(event),
        Err(illegal) => Err(refusal("plan.too_many_ratings", illegal.why)),
    }
}

fn may_change(state: &RunState, version: Option<u32>) -> Result<(), CommandRefusal> {
    if state.status.is_terminal() || (state.has_begun() && state.planning.is_none()) {
        return Err(illegal_transition(state, PlanStatus::Draft));
    }
    check_seen_version(state, version, None, "")?;
    match state.check(&Event::ModificationAsked {
        version: state.plans.len() as u32 + 1,
        by: String::new(),
        words: String::new(),
    }) {
        Ok(()) => Ok(()),
        Err(illegal) => {
            Err(refusal("plan.not_changeable", format!("the plan cannot be changed now: {}", illegal.why)))
        }
    }
}

/// Checks that another version of `bytes` fits into the version history.
fn has_room(state: &RunState, bytes: usize) -> Result<(), CommandRefusal> {
    let remedy = "approve it as it is, or cancel it and ask for a new one";
    if state.plans.len() >= plan::MAX_VERSIONS {
        let what = format!("the plan has {} versions, which is the maximum: {remedy}", state.plans.len());
        return Err(refusal("plan.too_many_versions", what));
    }
    let mut whole = bytes;
    for made in &state.plans {
        let flows = made.flows.iter().map(Flow::size).fold(0, usize::saturating_add);
        whole = whole.saturating_add(plan::json_size(&made.plan)).saturating_add(flows);
        if whole > plan::MAX_VERSIONS_BYTES {
            let max = plan::MAX_VERSIONS_BYTES;
            let what = format!("the plan's versions would have more than {max} bytes together: {remedy}");
            return Err(refusal("plan.history_full", what));
        }
    }
    Ok(())
}

/// Checks that the client has seen the current version.
fn check_seen_version(
    state: &RunState,
    version: Option<u32>,
    hash: Option<&str>,
    shown: &str,
) -> Result<(), CommandRefusal> {
    let now = state.plans.len() as u32;
    if let Some(version) = version.filter(|version| *version != now) {
        let before = version.checked_sub(1).and_then(|at| state.plans.get(at as usize));
        let lines = match (before, state.plan()) {
            (Some(before), Some(made)) => diff(&before.plan, &made.plan),
            _ => Vec::new(),
        };
        return Err(changed_since_seen(
            format!("you saw version {version}; version {now} is in force"),
            lines,
        ));
    }
    check_seen_hash(hash, shown, "the current plan")
}

/// Checks that the hash that a person names, if any, is the one of `what` that is `shown` now.
fn check_seen_hash(hash: Option<&str>, shown: &str, what: &str) -> Result<(), CommandRefusal> {
    match hash.filter(|hash| *hash != shown) {
        Some(hash) => Err(changed_since_seen(format!("the hash {hash} is not that of {what}"), Vec::new())),
        None => Ok(()),
    }
}

/// Checks that the tools covered by an approval have not changed since it was requested.
fn check_not_lapsed(state: &RunState, catalogue: &Catalogue) -> Result<(), CommandRefusal> {
    match lapsed_approval(state, catalogue) {
        Some(event) => {
            let why = match &event {
                Event::ApprovalLapsed { why, .. } => why.clone(),
                _ => Vec::new(),
            };
            let mut refused = changed_since_seen(
                "tools have changed since this was shown: look at it again".to_owned(),
                why,
            );
            refused.record = Some(Box::new(LapseEvent(event)));
            Err(refused)
        }
        None => Ok(()),
    }
}

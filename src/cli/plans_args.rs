//! The words of `plans` and `approvals`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use proscenium::plan::{PlanStatus, TaskId};
use proscenium::planner::ApproverChoice;
use serde_json::Value;

use super::args::user;

/// `plans`
#[derive(Debug, Clone, Default, Args)]
pub struct Plans {
    /// What to do; `list` where nothing is said
    #[command(subcommand)]
    pub what: Option<PlansCommand>,
    /// Who says so, in place of auth.default_user; a server knows it by the key
    #[arg(long, global = true, value_name = "NAME", value_parser = user)]
    pub user: Option<String>,
}

/// What can be done with plans.
#[derive(Debug, Clone, Subcommand)]
pub enum PlansCommand {
    /// The last plans, the newest first
    List {
        /// Only those that stand so
        #[arg(long, value_name = "STATUS", value_parser = status)]
        status: Option<PlanStatus>,
        /// Most plans to list
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print them as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
    /// One plan: its steps, its versions, what was approved and by whom
    Show {
        /// The plan's id
        #[arg(value_name = "TASK_ID", value_parser = task)]
        task: TaskId,
        /// Print it as JSON and nothing else
        #[arg(long, conflicts_with = "mermaid")]
        json: bool,
        /// Only the steps, as a Mermaid flowchart
        #[arg(long)]
        mermaid: bool,
    },
    /// Approves a plan that waits, and carries it out
    Approve {
        /// The plan's id
        #[arg(value_name = "TASK_ID", value_parser = task)]
        task: TaskId,
        /// The version that you saw: another one is not approved
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        version: Option<u32>,
        /// The hash that you saw, as `show --json` tells it
        #[arg(long, value_name = "H")]
        hash: Option<String>,
        /// Only approve: it begins when it is approved once more without this
        #[arg(long)]
        only: bool,
        /// Why
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Print the plan as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Changes a plan that has not begun: in words, or by another plan
    #[command(group = clap::ArgGroup::new("change").required(true))]
    Modify {
        /// The plan's id
        #[arg(value_name = "TASK_ID", value_parser = task)]
        task: TaskId,
        /// What is to change, in words for the planner
        #[arg(group = "change")]
        words: Option<String>,
        /// The plan to put in its place, as JSON; - for standard input
        #[arg(long, value_name = "FILE", group = "change")]
        file: Option<PathBuf>,
        /// The version that you saw: another one is not changed
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        version: Option<u32>,
        /// Why, with a file
        #[arg(long, value_name = "TEXT", conflicts_with = "words")]
        note: Option<String>,
        /// Print the plan as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Stops a plan at its next safe point, or before it begins
    Cancel {
        /// The plan's id
        #[arg(value_name = "TASK_ID", value_parser = task)]
        task: TaskId,
        /// Why
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Print the plan as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Carries on a plan that failed or was done in part, from where it failed
    Resume {
        /// The plan's id
        #[arg(value_name = "TASK_ID", value_parser = task)]
        task: TaskId,
        /// Print the plan as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Deletes a plan that has ended, with its run; what its conversation remembers stays
    Delete {
        /// The plan's id
        #[arg(value_name = "TASK_ID", value_parser = task)]
        task: TaskId,
        /// Print JSON and nothing else
        #[arg(long)]
        json: bool,
    },
}

/// `approvals`
#[derive(Debug, Clone, Default, Args)]
pub struct Approvals {
    /// What to do; `list` where nothing is said
    #[command(subcommand)]
    pub what: Option<ApprovalsCommand>,
    /// Who says so, in place of auth.default_user; a server knows it by the key
    #[arg(long, global = true, value_name = "NAME", value_parser = user)]
    pub user: Option<String>,
}

/// What can be done with what waits for a person.
#[derive(Debug, Clone, Subcommand)]
pub enum ApprovalsCommand {
    /// What waits for a person, the oldest first
    List {
        /// Also what was decided or is not asked any more
        #[arg(long)]
        all: bool,
        /// Most to list
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print them as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
    /// One of them: what exactly is asked, why, and what was decided
    Show {
        /// Its id, as `approvals list` shows it, or how no other one begins
        id: String,
        /// Print it as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Decides one of them, and carries its run on
    Decide {
        /// Its id, as `approvals list` shows it, or how no other one begins
        id: String,
        /// What you say: yes or no to a plan or a call; done, not_done or again where nobody knows what
        /// became of a write
        #[arg(value_enum)]
        decision: DecisionWord,
        /// With yes to a call: the arguments to call it with instead, a JSON object
        #[arg(long, value_name = "JSON", value_parser = arguments)]
        arguments: Option<Value>,
        /// The hash that you saw, as `show --json` tells it
        #[arg(long, value_name = "H")]
        hash: Option<String>,
        /// Why
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Print it as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
}

/// What a person can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum DecisionWord {
    /// It may be done.
    Yes,
    /// It is not to be done.
    No,
    /// It was done.
    Done,
    /// It was not done.
    NotDone,
    /// It is to be tried again.
    Again,
}

impl DecisionWord {
    /// The choice that it makes; `None` where arguments go with something that is no yes.
    pub fn choice(self, arguments: Option<Value>) -> Option<ApproverChoice> {
        match (self, arguments) {
            (DecisionWord::Yes, Some(arguments)) => Some(ApproverChoice::Edited(arguments)),
            (_, Some(_)) => None,
            (DecisionWord::Yes, None) => Some(ApproverChoice::Yes),
            (DecisionWord::No, None) => Some(ApproverChoice::No),
            (DecisionWord::Done, None) => Some(ApproverChoice::Done),
            (DecisionWord::NotDone, None) => Some(ApproverChoice::NotDone),
            (DecisionWord::Again, None) => Some(ApproverChoice::Again),
        }
    }
}

fn task(given: &str) -> Result<TaskId, uuid::Error> {
    given.parse().map(TaskId)
}

fn status(given: &str) -> Result<PlanStatus, String> {
    PlanStatus::from_name(given).ok_or_else(|| {
        let names: Vec<&str> = PlanStatus::ALL.into_iter().map(PlanStatus::name).collect();
        format!("a plan is {}", names.join(", "))
    })
}

fn arguments(given: &str) -> Result<Value, String> {
    match serde_json::from_str(given) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("arguments are a JSON object: {\"name\": value}".to_owned()),
        Err(error) => Err(format!("that is no JSON: {error}")),
    }
}

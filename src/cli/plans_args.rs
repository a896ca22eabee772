//! The arguments of `plans` and `approvals`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use proscenium::planner::ApproverChoice;
use proscenium::run::{PlanScore, RunStatus, TenantId};
use serde_json::Value;

use super::arg_values::{tenant, user};
use super::ids::IdPrefix;

/// `plans`
#[derive(Debug, Clone, Default, Args)]
pub struct Plans {
    /// The subcommand; the default is `list`
    #[command(subcommand)]
    pub what: Option<PlansCommand>,
    /// The user, instead of auth.default_user; a server takes it from the key
    #[arg(long, global = true, value_name = "NAME", value_parser = user)]
    pub user: Option<String>,
    /// The tenant whose plans are shown [default: auth.default_tenant, or that of the key or the server]
    #[arg(long, global = true, value_name = "ID", value_parser = tenant)]
    pub tenant: Option<TenantId>,
}

/// The subcommands of `plans`.
#[derive(Debug, Clone, Subcommand)]
pub enum PlansCommand {
    /// Lists the latest plans, newest first
    List {
        /// Only plans with this status, as the list shows it
        #[arg(long, value_name = "STATUS", value_parser = status)]
        status: Option<&'static str>,
        /// Maximum number of plans
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows one plan: steps, versions, decisions
    Show {
        /// Plan id, or a unique prefix
        #[arg(value_name = "TASK_ID")]
        task: IdPrefix,
        /// Print only JSON
        #[arg(long, conflicts_with = "mermaid")]
        json: bool,
        /// Print only the steps, as a Mermaid flowchart
        #[arg(long)]
        mermaid: bool,
    },
    /// Approves a pending plan and executes it
    Approve {
        /// Plan id, or a unique prefix
        #[arg(value_name = "TASK_ID")]
        task: IdPrefix,
        /// The version that you reviewed; any other version is refused
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        version: Option<u32>,
        /// The hash that you reviewed, as printed by `show --json`
        #[arg(long, value_name = "H")]
        hash: Option<String>,
        /// Approve without starting; approve again without this option to start
        #[arg(long)]
        only: bool,
        /// Why
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Print only the plan as JSON
        #[arg(long)]
        json: bool,
    },
    /// Changes a plan that has not started, in words or by a replacement
    // The usage that is made of the group names it before the plan, where no argument may stand.
    #[command(
        group = clap::ArgGroup::new("change").required(true),
        override_usage = "proscenium plans modify [OPTIONS] <TASK_ID> <WORDS|--file <FILE>>"
    )]
    Modify {
        /// Plan id, or a unique prefix
        #[arg(value_name = "TASK_ID")]
        task: IdPrefix,
        /// The change, in words for the planner
        #[arg(group = "change")]
        words: Option<String>,
        /// File with the replacement plan as JSON; - for standard input
        #[arg(long, value_name = "FILE", group = "change")]
        file: Option<PathBuf>,
        /// The version that you reviewed; any other version is refused
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        version: Option<u32>,
        /// Reason for the change, with --file
        #[arg(long, value_name = "TEXT", conflicts_with = "words")]
        note: Option<String>,
        /// Print only the plan as JSON
        #[arg(long)]
        json: bool,
    },
    /// Cancels a plan before it starts, or at its next safe point
    Cancel {
        /// Plan id, or a unique prefix
        #[arg(value_name = "TASK_ID")]
        task: IdPrefix,
        /// Why
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Print only the plan as JSON
        #[arg(long)]
        json: bool,
    },
    /// Rates a plan whose run has ended; a bad rating stops it from being reused
    Rate {
        /// Plan id, or a unique prefix
        #[arg(value_name = "TASK_ID")]
        task: IdPrefix,
        /// good or bad
        #[arg(value_name = "SCORE", value_parser = score)]
        score: PlanScore,
        /// Why
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Print only the plan as JSON
        #[arg(long)]
        json: bool,
    },
    /// Resumes a failed or partially completed plan where it failed
    Resume {
        /// Plan id, or a unique prefix
        #[arg(value_name = "TASK_ID")]
        task: IdPrefix,
        /// Print only the plan as JSON
        #[arg(long)]
        json: bool,
    },
    /// Deletes a finished plan and its run; the conversation's memory is kept
    Delete {
        /// Plan id, or a unique prefix
        #[arg(value_name = "TASK_ID")]
        task: IdPrefix,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
}

/// `approvals`
#[derive(Debug, Clone, Default, Args)]
pub struct Approvals {
    /// The subcommand; the default is `list`
    #[command(subcommand)]
    pub what: Option<ApprovalsCommand>,
    /// The user, instead of auth.default_user; a server takes it from the key
    #[arg(long, global = true, value_name = "NAME", value_parser = user)]
    pub user: Option<String>,
    /// The tenant whose approvals are shown [default: auth.default_tenant, or that of the key or the server]
    #[arg(long, global = true, value_name = "ID", value_parser = tenant)]
    pub tenant: Option<TenantId>,
}

/// The subcommands of `approvals`.
#[derive(Debug, Clone, Subcommand)]
pub enum ApprovalsCommand {
    /// Lists pending approvals, oldest first
    List {
        /// Include decided and lapsed approvals
        #[arg(long)]
        all: bool,
        /// Maximum number of approvals
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows one approval: the exact question, the reason, the decision
    Show {
        /// Approval id as printed by `approvals list`, or a unique prefix
        id: String,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Decides an approval and resumes its run
    Decide {
        /// Approval id as printed by `approvals list`, or a unique prefix
        id: String,
        /// The decision: yes or no for a plan or a call; done, not_done or again for a write whose outcome is
        /// unknown
        #[arg(value_enum)]
        decision: DecisionWord,
        /// With yes to a call: replacement arguments, a JSON object
        #[arg(long, value_name = "JSON", value_parser = arguments)]
        arguments: Option<Value>,
        /// The hash that you reviewed, as printed by `show --json`
        #[arg(long, value_name = "H")]
        hash: Option<String>,
        /// Why
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
}

/// A person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum DecisionWord {
    /// Approved.
    Yes,
    /// Refused.
    No,
    /// The write took effect.
    Done,
    /// The write did not take effect.
    NotDone,
    /// Retry the write.
    Again,
}

impl DecisionWord {
    /// The choice for the command; `None` if arguments accompany a decision other than yes.
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

fn score(given: &str) -> Result<PlanScore, String> {
    match given {
        "good" | "1" => Ok(PlanScore::Good),
        "bad" | "-1" => Ok(PlanScore::Bad),
        _ => Err("say good or bad".to_owned()),
    }
}

fn status(given: &str) -> Result<&'static str, String> {
    RunStatus::reported_plan_statuses().find(|name| *name == given).ok_or_else(|| {
        let names: Vec<&str> = RunStatus::reported_plan_statuses().collect();
        format!("a plan is {}", names.join(", "))
    })
}

fn arguments(given: &str) -> Result<Value, String> {
    match proscenium::long_integers::parse(given.as_bytes()) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("arguments are a JSON object: {\"name\": value}".to_owned()),
        Err(error) => Err(format!("that is not valid JSON: {error}")),
    }
}

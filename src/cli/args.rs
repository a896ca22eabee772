//! The commands of the program, with their arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use proscenium::adapt::{ExecutionLevel, ExecutionMode};
use proscenium::run::{PlanConstraints, PlanGuidance, RequestOptions};

use super::arg_values::{
    constraints, expiry, fact_kind, hash, json_object, json_value, label, level, listen_address, message,
    mode, role, session, tenant, user,
};

/// Answers requests that span several scenes: plans them, executes the plan once, and answers.
#[derive(Debug, Clone, Parser)]
#[command(name = "proscenium", version, about, after_help = EXIT_STATUS)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: CliCommand,
}

const EXIT_STATUS: &str = "\
Exit status: 0 completed, 1 failed, 2 invalid usage or configuration,
3 needs input or a person's approval.
With no key and no address configured (OPENAI_API_KEY, OPENAI_BASE_URL,
OPENAI_MODEL, or [[llm.models]] in a configuration file) the embedded offline
model serves.";

/// Their heading in the help, behind the options of the command itself.
const OF_EVERY_COMMAND: &str = "Options of every command";

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// Configuration file (TOML), on top of the built-in defaults
    #[arg(long, global = true, help_heading = OF_EVERY_COMMAND, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory with one folder per scene, in addition to the built-in scenes; or shipped:inventory, shipped:lending
    #[arg(long, global = true, help_heading = OF_EVERY_COMMAND, value_name = "DIR")]
    pub scenes: Option<PathBuf>,
    /// Data directory: the journal and everything else that is stored
    #[arg(long, global = true, help_heading = OF_EVERY_COMMAND, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Clone, Subcommand)]
pub enum CliCommand {
    /// Answers a message; without one, starts an interactive prompt or answers each line of a pipe
    Chat(ChatArgs),
    /// Serves chatbots over HTTP until it is stopped
    Serve(Serve),
    /// Serves a simulated model over the OpenAI protocol, with latencies and faults, for tests of load and failures
    SimulateLlm(SimulateLlm),
    /// Creates a plan and prints it without executing it
    Plan(PlanArgs),
    /// Checks the configuration and the scenes, and reports all errors at once
    Check(Check),
    /// Lists and shows runs
    Runs(Runs),
    /// Lists, shows, approves, modifies, cancels, resumes and deletes plans
    Plans(super::plans_args::Plans),
    /// Lists, shows and decides pending approvals
    Approvals(super::plans_args::Approvals),
    /// Explains what happened unexpectedly in a run: options, decisions, costs
    Explain(Explain),
    /// Shows what a conversation knows: what was said, found, quoted and concluded; corrects it
    Facts(FactsArgs),
    /// Executes labelled requests and says how many were executed as labelled
    Eval(super::eval_args::EvalArgs),
    /// Replays a stored run offline and compares its decisions with those of the current code
    Replay(Replay),
    /// Creates, lists, changes and revokes API keys
    Keys(KeysArgs),
    /// Lists tools, and switches them off and on while the server runs
    Tools(super::switches_args::Switches),
    /// Lists models, and switches them off and on while the server runs
    Models(super::switches_args::Switches),
    /// Lists tenants, drains them before maintenance, and resumes them
    Tenants(super::switches_args::Tenants),
    /// Lists and shows flows, and plans paths through their nodes
    Flows(FlowsArgs),
    /// Adds, lists, shows and deletes documents that requests can name
    Documents(DocumentsArgs),
    /// Sends requests to a server under load, measures the answers, and checks that each was executed once
    Load(Box<super::load::args::LoadArgs>),
    /// Lists, shows, exports and deletes plans learned from executions
    Learned(LearnedArgs),
    /// Shows who decided what and when, erased runs included, and verifies the audit log
    Audit(AuditArgs),
    /// Copies the database and the documents, also while a server uses them
    Backup(super::backup_args::BackupArgs),
    /// Restores a backup; runs that were unfinished wait for a person
    Restore(super::backup_args::RestoreArgs),
}

/// `chat`
#[derive(Debug, Clone, Default, Args)]
pub struct ChatArgs {
    /// The message
    #[arg(value_parser = message)]
    pub message: Option<String>,
    /// Print only the answer document as JSON (one line per answer for piped input)
    #[arg(long)]
    pub json: bool,
    /// Print only the answer: no progress and no costs on standard error
    #[arg(long, short)]
    pub quiet: bool,
    /// Continue this conversation, or start one with this name
    #[arg(long, value_name = "ID", value_parser = session)]
    pub session: Option<proscenium::run::SessionId>,
    /// The user, instead of auth.default_user; a server takes it from the key
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Require approval of the plan before execution, regardless of the configuration
    #[arg(long)]
    pub require_approval: bool,
    /// Write nothing, and report what would have been written
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub limits: ExecutionLimits,
    /// The flow that serves every message, in place of a plan; --state gives its inputs
    #[arg(long, value_name = "NAME")]
    pub flow: Option<String>,
    /// A text or Markdown file that every message is about; it is added to the documents unless it is there. May be repeated
    #[arg(long = "document", value_name = "FILE")]
    pub documents: Vec<PathBuf>,
    #[command(flatten)]
    pub guidance: GuidanceArgs,
}

/// The guidance of a request for its plans besides its words.
#[derive(Debug, Clone, Default, Args)]
pub struct GuidanceArgs {
    /// What every plan and call keeps to, as in the body of POST /api/chat, such as '{"read_only": true}'
    #[arg(long, value_name = "JSON", value_parser = constraints)]
    pub constraints: Option<PlanConstraints>,
    /// The state of things as you know it, as JSON, for the planner
    #[arg(long = "state", value_name = "JSON", value_parser = json_value)]
    pub current_state: Option<serde_json::Value>,
}

impl GuidanceArgs {
    /// For an engine in this process; `None` if nothing is given. The state counts as vouched for
    /// by the person who typed it.
    pub fn guidance(&self) -> Option<PlanGuidance> {
        PlanGuidance::of(self.constraints.clone(), self.current_state.clone(), true)
    }
}

/// The limits that a request may lower.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ExecutionLimits {
    /// Who may be asked when something unexpected happens, if fewer than configured: basic asks no model after the plan
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub level: Option<ExecutionLevel>,
    /// What may change when something unexpected happens, if less than configured: strict only repeats failed calls
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub mode: Option<ExecutionMode>,
}

/// The options that `chat` sends with each message.
#[derive(Debug, Clone, Default)]
pub struct Asking {
    /// Approval, dry run, level and mode.
    pub options: RequestOptions,
    /// Constraints, and the state of things.
    pub guidance: GuidanceArgs,
    /// The flow that serves each message.
    pub flow: Option<String>,
    /// The files that each message is about.
    pub documents: Vec<PathBuf>,
}

impl Asking {
    /// The flow that serves a message; none where the message decides about what waits.
    pub fn flow_for(&self, message: &str) -> Option<&str> {
        self.flow.as_deref().filter(|_| proscenium::planner::consent::parse_consent(message).is_none())
    }
}

/// `serve`
#[derive(Debug, Clone, Default, Args)]
pub struct Serve {
    /// Address to listen on, instead of server.addr; port 0 selects a free port
    #[arg(long, value_name = "HOST:PORT")]
    pub addr: Option<String>,
}

/// `simulate-llm`
#[derive(Debug, Clone, Args)]
pub struct SimulateLlm {
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8090", value_parser = listen_address)]
    pub addr: String,
    /// Latencies and faults (TOML), such as config/simulated.toml; without it, replies come at once
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
}

/// `plan`
#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// The message
    #[arg(value_parser = message)]
    pub message: String,
    /// Print only the plan as JSON
    #[arg(long)]
    pub json: bool,
}

/// `check`
#[derive(Debug, Clone, Default, Args)]
pub struct Check {
    /// Also call each configured model, to find out how it can be forced to call a function
    #[arg(long)]
    pub live: bool,
    /// Print the JSON Schema of scene.toml for editors, and check nothing
    #[arg(long, conflicts_with = "live")]
    pub schema: bool,
}

/// `runs`
#[derive(Debug, Clone, Default, Args)]
pub struct Runs {
    /// What to show; the default is `list`
    #[command(subcommand)]
    pub what: Option<RunsCommand>,
    /// Only runs that need a person: they wait, or the outcome of one of their writes is unknown
    #[arg(long)]
    pub parked: bool,
    /// Print only JSON
    #[arg(long)]
    pub json: bool,
    /// The tenant whose runs are shown [default: auth.default_tenant, or that of the key or the server]
    #[arg(long, global = true, value_name = "ID", value_parser = tenant)]
    pub tenant: Option<proscenium::run::TenantId>,
}

/// `runs list` and `runs show`
#[derive(Debug, Clone, Subcommand)]
pub enum RunsCommand {
    /// Lists the latest runs, newest first
    List {
        /// Maximum number of runs
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Only runs that need a person: they wait, or the outcome of one of their writes is unknown
        #[arg(long)]
        parked: bool,
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows one run: its plan, calls and answer
    Show {
        /// Run id, or a unique prefix of at least four characters
        run: super::ids::IdPrefix,
        /// Print only its answer document, as JSON
        #[arg(long, conflicts_with_all = ["mermaid", "events"])]
        json: bool,
        /// Include every event of its journal
        #[arg(long, conflicts_with = "mermaid")]
        events: bool,
        /// Print only the plan, as a Mermaid flowchart
        #[arg(long)]
        mermaid: bool,
    },
}

/// `explain`
#[derive(Debug, Clone, Args)]
pub struct Explain {
    /// Run id, or a unique prefix of at least four characters
    pub run: super::ids::IdPrefix,
    /// Print only the explanation as JSON
    #[arg(long)]
    pub json: bool,
    /// The tenant of the run [default: auth.default_tenant, or that of the key or the server]
    #[arg(long, value_name = "ID", value_parser = tenant)]
    pub tenant: Option<proscenium::run::TenantId>,
}

/// `facts`
#[derive(Debug, Clone, Args)]
pub struct FactsArgs {
    /// The conversation, or a unique beginning of its name of at least four characters
    pub session: String,
    /// Only these kinds, separated by commas: given, verified, quoted, derived, guess
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = fact_kind)]
    pub kind: Vec<proscenium::run::FactKind>,
    /// Only facts that came up in this run: its id, or a unique prefix of at least four characters
    #[arg(long, value_name = "RUN")]
    pub run: Option<super::ids::IdPrefix>,
    /// Also facts that were superseded
    #[arg(long)]
    pub all: bool,
    /// Print only JSON
    #[arg(long)]
    pub json: bool,
    /// Print Markdown, as for a file CONTINUITY.md
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Replace the fact with this id, or a unique prefix of it, by another
    #[arg(long, num_args = 2, value_names = ["ID", "TEXT"], conflicts_with_all = ["kind", "run", "all", "markdown"])]
    pub correct: Option<Vec<String>>,
    /// State a further fact
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["correct", "kind", "run", "all", "markdown"])]
    pub add: Option<String>,
    /// The user who states it, instead of auth.default_user; a server takes it from the key
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The tenant whose facts are shown [default: auth.default_tenant, or that of the key or the server]
    #[arg(long, value_name = "ID", value_parser = tenant, conflicts_with_all = ["correct", "add"])]
    pub tenant: Option<proscenium::run::TenantId>,
}

/// `replay`
#[derive(Debug, Clone, Args)]
#[command(after_help = "Exit status: 0 equal decisions, 1 different, 2 invalid usage.")]
pub struct Replay {
    /// Run id or a unique prefix, or a .jsonl file written by --export
    pub run: super::replay::Recorded,
    /// Show each difference, and the prompts that differ
    #[arg(long)]
    pub diff: bool,
    /// Print only the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the run's events instead, one JSON object per line, with their full content
    #[arg(long, conflicts_with_all = ["diff", "json"])]
    pub export: bool,
    /// The tenant of the run [default: auth.default_tenant, or that of the key or the server]
    #[arg(long, value_name = "ID", value_parser = tenant)]
    pub tenant: Option<proscenium::run::TenantId>,
}

/// `keys`
#[derive(Debug, Clone, Args)]
pub struct KeysArgs {
    /// The subcommand
    #[command(subcommand)]
    pub what: KeysCommand,
}

/// `keys create`, `keys list`, `keys set-role` and `keys revoke`
#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// Creates a key and prints it once
    Create {
        /// Tenant whose limits and budget apply to its requests
        #[arg(long, value_name = "ID", value_parser = tenant)]
        tenant: proscenium::run::TenantId,
        /// User of the key [default: auth.default_user]
        #[arg(long, value_name = "NAME", value_parser = user)]
        user: Option<String>,
        /// Free-text description
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = label)]
        label: String,
        /// Role: user (its own user's objects), approver (also pending approvals of the tenant), auditor (reads
        /// everything), admin (everything), service (a chatbot that names its end user in the header X-User-Id)
        #[arg(long, value_name = "ROLE", default_value = "user", value_parser = role)]
        role: proscenium::access::Role,
        /// Expiry: a day (2027-01-31), a time (RFC 3339), or a duration from now (90d, 12h)
        #[arg(long, value_name = "WHEN", value_parser = expiry)]
        expires: Option<jiff::Timestamp>,
        /// The key cannot approve requests of its own user
        #[arg(long)]
        no_own_approval: bool,
        /// Print only the key as JSON
        #[arg(long)]
        json: bool,
    },
    /// Lists all keys, revoked ones included, without their secrets
    List {
        /// Only keys of this tenant
        #[arg(long, value_name = "ID", value_parser = tenant)]
        tenant: Option<proscenium::run::TenantId>,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Changes the role of a key; a running server applies it within a second
    SetRole {
        /// Key id, as shown by `keys list`
        id: String,
        /// Role: user, approver, auditor, admin or service
        #[arg(value_parser = role)]
        role: proscenium::access::Role,
    },
    /// Revokes a key permanently; a running server applies it within a second
    Revoke {
        /// Key id, as shown by `keys list`
        id: String,
    },
}

/// `flows`
#[derive(Debug, Clone, Args)]
pub struct FlowsArgs {
    /// The subcommand
    #[command(subcommand)]
    pub what: FlowsCommand,
}

/// `flows list`, `flows show` and `flows plan`
#[derive(Debug, Clone, Subcommand)]
pub enum FlowsCommand {
    /// Lists the flows
    List {
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows one: its nodes, what follows each, and a Mermaid flowchart
    Show {
        /// Its name
        name: String,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Plans the path of a request through one, without executing it
    Plan {
        /// Its name
        name: String,
        /// The request
        #[arg(value_parser = message)]
        message: String,
        /// The values of its inputs that are known, as a JSON object
        #[arg(long = "state", value_name = "JSON", value_parser = json_object)]
        current_state: Option<serde_json::Value>,
        /// Print only the plan and its path as JSON
        #[arg(long)]
        json: bool,
    },
}

/// `documents`
#[derive(Debug, Clone, Args)]
pub struct DocumentsArgs {
    /// The subcommand
    #[command(subcommand)]
    pub what: DocumentsCommand,
    /// The user: whose document is added [default: auth.default_user], or whose documents are meant [default: all of the
    /// tenant]; a server takes it from the key
    #[arg(long, global = true, value_name = "NAME", value_parser = user)]
    pub user: Option<String>,
}

/// `documents add`, `documents list`, `documents show` and `documents delete`
#[derive(Debug, Clone, Subcommand)]
pub enum DocumentsCommand {
    /// Adds a text or Markdown file (UTF-8); the same content of a user is one document
    Add {
        /// The file
        file: PathBuf,
        /// The name of the document, instead of the file's; .md and .markdown are Markdown
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Lists the documents, newest first
    List {
        /// Maximum number of documents
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows one
    Show {
        /// Document id, or a unique prefix of at least four characters
        id: super::ids::IdPrefix,
        /// Print its content
        #[arg(long, conflicts_with = "json")]
        content: bool,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Deletes one, with everything that is derived from it
    Delete {
        /// Document id, or a unique prefix of at least four characters
        id: super::ids::IdPrefix,
    },
}

/// `learned`
#[derive(Debug, Clone, Args)]
pub struct LearnedArgs {
    /// The subcommand
    #[command(subcommand)]
    pub what: LearnedCommand,
    /// The tenant [default: auth.default_tenant]
    #[arg(long, global = true, value_name = "ID", value_parser = tenant)]
    pub tenant: Option<proscenium::run::TenantId>,
}

/// `learned list`, `learned show`, `learned export` and `learned delete`
#[derive(Debug, Clone, Subcommand)]
pub enum LearnedCommand {
    /// Lists the learned plans
    List {
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows one, as JSON: its steps, and where each argument comes from
    Show {
        /// Its id, or a unique prefix
        id: String,
    },
    /// Prints all of them, one JSON object per line
    Export,
    /// Deletes one: the next such request is planned
    Delete {
        /// Its id, or a unique prefix
        id: String,
    },
}

/// `audit`
#[derive(Debug, Clone, Args)]
pub struct AuditArgs {
    /// The subcommand
    #[command(subcommand)]
    pub what: AuditCommand,
}

/// `audit verify` and `audit list`
#[derive(Debug, Clone, Subcommand)]
pub enum AuditCommand {
    /// Verifies that no decision was changed, removed or inserted; names the first invalid row
    #[command(after_help = "Exit status: 0 intact, 1 changed or unreadable, 2 invalid usage.")]
    Verify {
        /// Head printed by an earlier verify: it must still exist, which detects removed rows
        #[arg(long, value_name = "HASH", value_parser = hash)]
        head: Option<String>,
        /// Print only the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Lists the latest decisions, newest first
    List {
        /// Only decisions about this run: its id, or a unique prefix of at least four characters
        #[arg(long, value_name = "RUN_ID")]
        run: Option<super::ids::IdPrefix>,
        /// Maximum number of decisions
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print only JSON
        #[arg(long)]
        json: bool,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    const ID: &str = "01976c8e-0000-7000-8000-000000000001";
    const ONE: &str = "01976c8e-0000-7000-8000-000000000001.1";

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_for_every_command_stand_before_or_behind_it() {
        for line in [
            ["proscenium", "--data-dir", "d", "chat", "Ciao"],
            ["proscenium", "chat", "Ciao", "--data-dir", "d"],
        ] {
            let cli = Cli::try_parse_from(line).unwrap();
            assert_eq!(cli.global.data_dir, Some(PathBuf::from("d")));
            assert!(
                matches!(cli.command, CliCommand::Chat(ChatArgs { message: Some(m), .. }) if m == "Ciao")
            );
        }
    }

    #[test]
    fn help_is_a_command_and_shows_the_options_of_the_command_first() {
        let help = |line: &[&str]| {
            let error = Cli::try_parse_from(line).unwrap_err();
            assert_eq!(error.exit_code(), 0, "{line:?}");
            error.to_string()
        };
        assert_eq!(
            help(&["proscenium", "help", "runs", "show"]),
            help(&["proscenium", "runs", "show", "--help"])
        );
        let chat = help(&["proscenium", "help", "chat"]);
        assert!(chat.find("--dry-run") < chat.find("Options of every command:"), "{chat}");
        assert!(chat.find("Options of every command:") < chat.find("--config"), "{chat}");
    }

    #[test]
    fn usage_of_a_change_names_its_arguments_in_their_order() {
        let error = Cli::try_parse_from(["proscenium", "plans", "modify", ID]).unwrap_err().to_string();
        assert!(error.contains("modify [OPTIONS] <TASK_ID> <WORDS|--file <FILE>>"), "{error}");
    }

    #[test]
    fn bad_usage_is_refused_with_status_2() {
        for line in [
            &["proscenium"][..],
            &["proscenium", "chat", "  "],
            &["proscenium", "plan"],
            &["proscenium", "chat", "hi", "--session", "no spaces allowed"],
            &["proscenium", "runs", "show", "not-an-id"],
            &["proscenium", "runs", "list", "--limit", "0"],
            &["proscenium", "explain"],
            &["proscenium", "explain", "not-an-id"],
            &["proscenium", "facts"],
            &["proscenium", "facts", "s-1", "--kind", "rumour"],
            &["proscenium", "facts", "s-1", "--correct", "0123"],
            &["proscenium", "facts", "s-1", "--json", "--markdown"],
            &["proscenium", "facts", "s-1", "--add", "it is late", "--tenant", "acme"],
            &["proscenium", "eval"],
            &["proscenium", "eval", "a.yaml", "--repeat", "0"],
            &["proscenium", "eval", "a.yaml", "--max-cost", "0"],
            &["proscenium", "eval", "a.yaml", "--require", "rigth>=95%"],
            &["proscenium", "replay"],
            &["proscenium", "replay", "not-an-id"],
            &["proscenium", "replay", "run.jsonl", "--export", "--diff"],
            &["proscenium", "serve", "--addr"],
            &["proscenium", "simulate-llm", "--addr", "nonsense"],
            &["proscenium", "simulate-llm", "--addr", "127.0.0.1:99999"],
            &["proscenium", "keys"],
            &["proscenium", "plans", "list", "--status", "done"],
            &["proscenium", "plans", "list", "--limit", "0"],
            &["proscenium", "plans", "show"],
            &["proscenium", "plans", "show", "not-an-id"],
            &["proscenium", "plans", "show", ID, "--json", "--mermaid"],
            &["proscenium", "plans", "approve", ID, "--version", "0"],
            &["proscenium", "plans", "modify", ID],
            &["proscenium", "plans", "modify", ID, "fewer", "--file", "plan.json"],
            &["proscenium", "plans", "cancel"],
            &["proscenium", "approvals", "show"],
            &["proscenium", "approvals", "decide", ONE],
            &["proscenium", "approvals", "decide", ONE, "maybe"],
            &["proscenium", "approvals", "decide", ONE, "yes", "--arguments", "[1]"],
            &["proscenium", "documents"],
            &["proscenium", "documents", "add"],
            &["proscenium", "documents", "show", "not-an-id"],
            &["proscenium", "documents", "list", "--user", " "],
            &["proscenium", "load"],
            &["proscenium", "load", "http://localhost", "--require", "p99_speed<1ms"],
            &["proscenium", "load", "http://localhost", "--rate", "0"],
            &["proscenium", "load", "http://localhost", "--duration", "5"],
            &["proscenium", "load", "http://localhost", "--regression", "10%"],
            &["proscenium", "audit"],
            &["proscenium", "audit", "verify", "--head", "abc"],
            &["proscenium", "audit", "list", "--limit", "0"],
            &["proscenium", "tools", "disable"],
            &["proscenium", "models", "disable", ""],
            &["proscenium", "tenants", "drain", "a b"],
            &["proscenium", "keys", "create"],
            &["proscenium", "keys", "create", "--tenant", "a b"],
            &["proscenium", "keys", "create", "--tenant", "t", "--user", " "],
            &["proscenium", "keys", "create", "--tenant", "t", "--label", "a\nb"],
        ] {
            assert_eq!(Cli::try_parse_from(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
    }
}

//! The command line's words.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Answers requests over several scenes: plans them, carries the plan out once, and answers.
#[derive(Debug, Clone, Parser)]
#[command(name = "proscenium", version, about, after_help = EXIT_STATUS, disable_help_subcommand = true)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: CliCommand,
}

const EXIT_STATUS: &str = "\
Exit status: 0 completed, 1 failed, 2 bad usage or configuration, 3 needs input from you, or waits for
a person's approval.
With no key and no address configured (OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL, or
[[llm.models]] in a configuration file) the embedded offline model serves.";

/// What holds for every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// A configuration file (TOML), laid over the built-in defaults
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A directory with a folder a scene, beside the built-in scenes
    #[arg(long, global = true, value_name = "DIR")]
    pub scenes: Option<PathBuf>,
    /// The directory of everything that lasts
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Clone, Subcommand)]
pub enum CliCommand {
    /// Answers a message; without one, an interactive prompt, or each line of a pipe
    Chat(ChatArgs),
    /// Serves chatbots over HTTP until it is told to stop
    Serve(Serve),
    /// Makes a plan and shows it, without carrying it out
    Plan(PlanArgs),
    /// Checks the configuration and the scenes, and tells every fault at once
    Check(Check),
    /// Shows what was run
    Runs(Runs),
    /// Shows plans, and approves, changes, cancels, carries on and deletes them
    Plans(super::plans_args::Plans),
    /// Shows what waits for a person, and decides it
    Approvals(super::plans_args::Approvals),
    /// Replays a stored run offline and tells whether today's code decides the same
    Replay(Replay),
    /// Makes, lists and revokes the keys that a server asks for
    Keys(KeysArgs),
    /// Shows who decided what and when, also of runs that were erased, and proves that none was changed
    Audit(AuditArgs),
}

/// `chat`
#[derive(Debug, Clone, Default, Args)]
pub struct ChatArgs {
    /// The message
    #[arg(value_parser = message)]
    pub message: Option<String>,
    /// Print the answer document and nothing else (a line each where several lines are piped)
    #[arg(long)]
    pub json: bool,
    /// Go on with this conversation, or begin one of this name
    #[arg(long, value_name = "ID", value_parser = session)]
    pub session: Option<proscenium::run::SessionId>,
    /// Who asks, in place of auth.default_user; a server knows it by the key
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Ask for approval of the plan before it is carried out, whatever the configuration says
    #[arg(long)]
    pub require_approval: bool,
    /// Write nothing: tell what would have been written
    #[arg(long)]
    pub dry_run: bool,
}

/// `serve`
#[derive(Debug, Clone, Default, Args)]
pub struct Serve {
    /// Where to listen, in place of server.addr; port 0 takes any free one
    #[arg(long, value_name = "HOST:PORT")]
    pub addr: Option<String>,
}

/// `plan`
#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// The message
    #[arg(value_parser = message)]
    pub message: String,
    /// Print the plan as JSON and nothing else
    #[arg(long)]
    pub json: bool,
}

/// `check`
#[derive(Debug, Clone, Default, Args)]
pub struct Check {
    /// Also ask each configured model, to learn how it can be forced to call a function
    #[arg(long)]
    pub live: bool,
}

/// `runs`
#[derive(Debug, Clone, Default, Args)]
pub struct Runs {
    /// What to show; `list` where nothing is said
    #[command(subcommand)]
    pub what: Option<RunsCommand>,
}

/// `runs list` and `runs show`
#[derive(Debug, Clone, Subcommand)]
pub enum RunsCommand {
    /// The last runs, the newest first
    List {
        /// Most runs to list
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// One run: its plan, its calls, its answer
    Show {
        /// The run's id
        run: proscenium::run::RunId,
        /// Also every event of its journal
        #[arg(long, conflicts_with = "mermaid")]
        events: bool,
        /// Only the plan, as a Mermaid flowchart
        #[arg(long)]
        mermaid: bool,
    },
}

/// `replay`
#[derive(Debug, Clone, Args)]
#[command(after_help = "Exit status: 0 decided the same, 1 not, 2 bad usage.")]
pub struct Replay {
    /// The run's id, or a .jsonl file that --export wrote
    pub run: super::replay::Recorded,
    /// Show each difference, and the questions that are worded otherwise
    #[arg(long)]
    pub diff: bool,
    /// Print what came of it as JSON and nothing else
    #[arg(long)]
    pub json: bool,
    /// Print the run's events instead, one a line, as JSON: all that was said and found
    #[arg(long, conflicts_with_all = ["diff", "json"])]
    pub export: bool,
}

/// `keys`
#[derive(Debug, Clone, Args)]
pub struct KeysArgs {
    /// What to do
    #[command(subcommand)]
    pub what: KeysCommand,
}

/// `keys create`, `keys list`, `keys set-role` and `keys revoke`
#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// Makes a key and shows it, this once
    Create {
        /// Who pays for what is asked with it
        #[arg(long, value_name = "ID", value_parser = tenant)]
        tenant: proscenium::run::TenantId,
        /// Who asks with it; auth.default_user where absent
        #[arg(long, value_name = "NAME", value_parser = user)]
        user: Option<String>,
        /// What it is for, in your words
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = label)]
        label: String,
        /// What it may do: user (its own user's things), approver (also what waits for a person in the
        /// tenant), auditor (reads everything), admin (everything), service (a chatbot's one key, which
        /// names its end user in the header X-User-Id)
        #[arg(long, value_name = "ROLE", default_value = "user", value_parser = role)]
        role: proscenium::access::Role,
        /// From when on it opens nothing any more: a day (2027-01-31), a time (RFC 3339), or how long from
        /// now (90d, 12h)
        #[arg(long, value_name = "WHEN", value_parser = expiry)]
        expires: Option<jiff::Timestamp>,
        /// It may not approve what its own user has asked for; somebody else has to
        #[arg(long)]
        no_own_approval: bool,
        /// Print the key as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
    /// The keys there are, revoked ones included, without their secrets
    List {
        /// Only those of this tenant
        #[arg(long, value_name = "ID", value_parser = tenant)]
        tenant: Option<proscenium::run::TenantId>,
        /// Print them as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Gives a key another role; a server follows within a second
    SetRole {
        /// The key's id, as `keys list` shows it
        id: String,
        /// user, approver, auditor, admin or service
        #[arg(value_parser = role)]
        role: proscenium::access::Role,
    },
    /// Revokes a key for good; a server follows within a second
    Revoke {
        /// The key's id, as `keys list` shows it
        id: String,
    },
}

fn role(given: &str) -> Result<proscenium::access::Role, String> {
    proscenium::access::Role::from_name(given)
        .ok_or_else(|| "the roles are user, approver, auditor, admin and service".to_owned())
}

/// When a key expires: a day, of which it is the beginning in UTC, a time, or how long from now.
fn expiry(given: &str) -> Result<jiff::Timestamp, String> {
    let bad = || "write a day (2027-01-31), a time (2027-01-31T12:00:00Z), or how long (90d, 12h)".to_owned();
    let now = jiff::Timestamp::now();
    let at = if let Ok(at) = given.parse::<jiff::Timestamp>() {
        at
    } else if let Ok(day) = given.parse::<jiff::civil::Date>() {
        day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| bad())?.timestamp()
    } else {
        let (number, hours) = match (given.strip_suffix('d'), given.strip_suffix('h')) {
            (Some(days), _) => (days, 24),
            (_, Some(hours)) => (hours, 1),
            _ => return Err(bad()),
        };
        let number: i64 = number.parse::<u32>().map_err(|_| bad())?.into();
        now.checked_add(jiff::SignedDuration::from_hours(number * hours)).map_err(|_| bad())?
    };
    if at > now { Ok(at) } else { Err("that is not in the future".to_owned()) }
}

/// `audit`
#[derive(Debug, Clone, Args)]
pub struct AuditArgs {
    /// What to do
    #[command(subcommand)]
    pub what: AuditCommand,
}

/// `audit verify` and `audit list`
#[derive(Debug, Clone, Subcommand)]
pub enum AuditCommand {
    /// Proves that no decision was changed, removed or put in between; names the first row that is wrong
    #[command(
        after_help = "Exit status: 0 the record is whole, 1 it is not, or cannot be read, 2 bad usage."
    )]
    Verify {
        /// A head that an earlier verify printed: it still has to be there, so nothing was cut off the end
        #[arg(long, value_name = "HASH", value_parser = hash)]
        head: Option<String>,
        /// Print what came of it as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
    /// The last decisions, the newest first
    List {
        /// Only those about this run
        #[arg(long, value_name = "RUN_ID")]
        run: Option<proscenium::run::RunId>,
        /// Most to list
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print them as JSON and nothing else
        #[arg(long)]
        json: bool,
    },
}

fn hash(given: &str) -> Result<String, String> {
    match given.len() == 64 && given.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(given.to_ascii_lowercase()),
        false => Err("a head has 64 characters from 0-9 and a-f, as `audit verify` prints it".to_owned()),
    }
}

fn tenant(given: &str) -> Result<proscenium::run::TenantId, proscenium::run::InvalidId> {
    proscenium::run::TenantId::new(given)
}

/// A user's name.
pub fn user(given: &str) -> Result<String, String> {
    match given.trim() {
        "" => Err("a user has a name".to_owned()),
        _ => label(given),
    }
}

fn label(given: &str) -> Result<String, String> {
    match given.chars().count() > 128 || given.chars().any(char::is_control) {
        true => Err("use at most 128 printable characters".to_owned()),
        false => Ok(given.to_owned()),
    }
}

fn message(given: &str) -> Result<String, String> {
    match given.trim() {
        "" => Err("a message has at least one word".to_owned()),
        text => Ok(text.to_owned()),
    }
}

fn session(given: &str) -> Result<proscenium::run::SessionId, proscenium::run::InvalidId> {
    proscenium::run::SessionId::new(given)
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
    fn bad_usage_is_refused_with_status_2() {
        for line in [
            &["proscenium"][..],
            &["proscenium", "chat", "  "],
            &["proscenium", "plan"],
            &["proscenium", "chat", "hi", "--session", "no spaces allowed"],
            &["proscenium", "runs", "show", "not-an-id"],
            &["proscenium", "runs", "list", "--limit", "0"],
            &["proscenium", "replay"],
            &["proscenium", "replay", "not-an-id"],
            &["proscenium", "replay", "run.jsonl", "--export", "--diff"],
            &["proscenium", "serve", "--addr"],
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
            &["proscenium", "audit"],
            &["proscenium", "audit", "verify", "--head", "abc"],
            &["proscenium", "audit", "list", "--limit", "0"],
            &["proscenium", "keys", "create"],
            &["proscenium", "keys", "create", "--tenant", "a b"],
            &["proscenium", "keys", "create", "--tenant", "t", "--user", " "],
            &["proscenium", "keys", "create", "--tenant", "t", "--label", "a\nb"],
        ] {
            assert_eq!(Cli::try_parse_from(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
    }
}

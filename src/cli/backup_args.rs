//! The arguments of `backup` and `restore`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use proscenium::load::schedule;

/// `backup`
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The backup has the database and the documents as they were at one moment, also
while a server works with them. It holds what people said: keep it as safe as
the data directory. Configuration and scenes are not in it.")]
pub struct BackupArgs {
    /// Directory of the backup, which does not exist yet or is empty
    pub dir: PathBuf,
    /// How long it may take
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = schedule::duration)]
    pub timeout: Duration,
    /// Print only the manifest as JSON
    #[arg(long)]
    pub json: bool,
}

/// `restore`
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Everything is verified before anything is changed. Runs that were unfinished
wait until a person resumes or cancels them. What the backup cannot know, such
as keys that were revoked later, is listed, and kept in the data directory.")]
pub struct RestoreArgs {
    /// Directory of the backup
    pub dir: PathBuf,
    /// Verify the backup, and change nothing
    #[arg(long, conflicts_with_all = ["replace", "compare", "revoke_keys"])]
    pub check: bool,
    /// Move what is in the data directory aside, within it, and list what happened since the backup was taken
    #[arg(long)]
    pub replace: bool,
    /// Another data directory that was in use after the backup was taken: list what happened since
    #[arg(long, value_name = "DIR", conflicts_with = "replace")]
    pub compare: Option<PathBuf>,
    /// Revoke all keys of the backup, if it is not known which were revoked since
    #[arg(long)]
    pub revoke_keys: bool,
    /// Print only JSON: the report, or with --check the manifest
    #[arg(long)]
    pub json: bool,
}

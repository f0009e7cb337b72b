//! `h5live acl`: who may do what in a domain.

use h5live::Location;
use h5live_hsds::layout::{AccessRights, AclRight};
use serde_json::json;

use crate::error::{CommandOutcome, Result};
use crate::open;
use crate::output::StdoutWriter;

/// Show and change who may do what in a domain of an object store (hsds:run). The rights hold for sessions that name a
/// user (hsds:run?user=NAME), and for HSDS; who has the files themselves may do everything. They hold for all objects of a
/// domain: HSDS keeps none for single ones
#[derive(Debug, clap::Args)]
pub struct AclCommand {
    #[command(subcommand)]
    action: AclAction,
}

#[derive(Debug, clap::Subcommand)]
enum AclAction {
    /// The users that have rights, with these
    Get {
        /// The domain, or a folder of domains: hsds:run
        domain: Location,
        /// No object: it has no rights of its own
        #[arg(hide = true, value_parser = refuse_object)]
        object: Option<String>,
        /// JSON
        #[arg(long)]
        json: bool,
    },
    /// Set the rights of a user
    Set {
        /// The domain, or a folder of domains: hsds:run
        domain: Location,
        /// The user; `default` for all that are not named
        user: String,
        /// The rights, with commas between them: create, read, update, delete, readACL, updateACL; `all`; or `none`
        #[arg(value_parser = access_from_text)]
        rights: AccessRights,
        /// No object: it has no rights of its own
        #[arg(hide = true, value_parser = refuse_object)]
        object: Option<String>,
    },
    /// Take the rights of a user away, so that those of all that are not named count
    Rm {
        /// The domain, or a folder of domains: hsds:run
        domain: Location,
        /// The user
        user: String,
        /// No object: it has no rights of its own
        #[arg(hide = true, value_parser = refuse_object)]
        object: Option<String>,
    },
}

/// HSDS keeps lists of rights in the documents of domains, and has no requests for others.
fn refuse_object(_: &str) -> Result<String, &'static str> {
    Err("HSDS keeps rights for whole domains and their folders; groups, datasets and types have none of their own")
}

fn access_from_text(text: &str) -> Result<AccessRights, String> {
    match text {
        "all" => return Ok(AccessRights::ALL),
        "none" => return Ok(AccessRights::default()),
        _ => {}
    }
    let named = |name: &str| AclRight::ALL.into_iter().find(|right| right.name() == name);
    let right = |name: &str| named(name).ok_or_else(|| format!("{name:?} is no right; rights are create, read, .."));
    Ok(AccessRights::of_rights(&text.split(',').map(right).collect::<Result<Vec<_>, _>>()?))
}

impl AclCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no domain, or it is not allowed.
    pub fn run(self) -> Result<CommandOutcome> {
        match self.action {
            AclAction::Get { domain, json, object: _ } => show(&domain, json)?,
            AclAction::Set { domain, user, rights, object: _ } => {
                open::with_hsds_location(&domain, |at| h5live_hsds::set_user_access(at, &user, Some(rights)))?;
            }
            AclAction::Rm { domain, user, object: _ } => {
                open::with_hsds_location(&domain, |at| h5live_hsds::set_user_access(at, &user, None))?;
            }
        }
        Ok(CommandOutcome::Clean)
    }
}

fn show(domain: &Location, is_json: bool) -> Result<()> {
    let users = open::with_hsds_location(domain, h5live_hsds::read_visible_acl)?;
    let mut out = StdoutWriter::stdout();
    if is_json {
        let users: serde_json::Map<_, _> = users.into_iter().map(|(user, access)| (user, access.to_json())).collect();
        out.line(json!(users))?;
    } else {
        for (user, access) in users {
            let rights: Vec<&str> = access.rights().map(AclRight::name).collect();
            let rights = if rights.is_empty() { "none".to_owned() } else { rights.join(",") };
            out.line(format_args!("{user}: {rights}"))?;
        }
    }
    out.flush()
}

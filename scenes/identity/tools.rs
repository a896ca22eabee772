//! The tools of Identity: who the people of the company are.
//!
//! Full name and department are public: everybody may read everybody's. E-mail address and manager
//! are private: a person reads their own, and who that person is comes from the context, never from
//! a name stated in the conversation.

mod directory;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::{Value, json};

use directory::{Directory, Person};
use proscenium::tools::{NativeTools, ToolContext, ToolError, native};

/// Most people in one answer of `find_user`.
const MOST_MATCHES: usize = 10;

/// Adds the tools of this scene under the names that its `scene.toml` gives.
pub fn register(tools: NativeTools) -> NativeTools {
    tools
        .with("identity.get_user_name", native(get_user_name))
        .with("identity.get_user_profile", native(get_user_profile))
        .with("identity.find_user", native(find_user))
        .with_settings("Identity", Directory::check)
}

/// Whose name or profile.
#[derive(Deserialize)]
struct Whose {
    /// A user name or a full name; absent or empty for the user who asks.
    #[serde(default)]
    username: Option<String>,
}

/// What to look for.
#[derive(Deserialize)]
struct Search {
    /// A part of a name or user name.
    name: String,
}

/// The full name of a user name: public.
async fn get_user_name(arguments: Whose, context: ToolContext) -> Result<Value, ToolError> {
    let directory = Directory::of(&context)?;
    let asked = asked(&arguments, &context);
    Ok(match directory.person(asked) {
        Some(person) => json!({
            "found": true,
            "username": person.username,
            "name": person.name,
            "you": is_principal(person, &context),
        }),
        None => not_found(asked, &directory),
    })
}

/// All of one's own profile; of another person's, what is public.
async fn get_user_profile(arguments: Whose, context: ToolContext) -> Result<Value, ToolError> {
    let directory = Directory::of(&context)?;
    let asked = asked(&arguments, &context);
    let Some(person) = directory.person(asked) else {
        return Ok(not_found(asked, &directory));
    };
    if !is_principal(person, &context) {
        return Ok(json!({
            "found": true,
            "username": person.username,
            "name": person.name,
            "department": person.department,
            "you": false,
            "withheld": ["email", "manager"],
        }));
    }
    let manager = person.manager.as_deref().map(|username| {
        let name = directory.person(username).map_or(username, |manager| manager.name.as_str());
        json!({"username": username, "name": name})
    });
    Ok(json!({
        "found": true,
        "username": person.username,
        "name": person.name,
        "department": person.department,
        "email": person.email,
        "manager": manager,
        "you": true,
    }))
}

/// Everybody whose name or user name contains each word asked for: what is public of them.
async fn find_user(arguments: Search, context: ToolContext) -> Result<Value, ToolError> {
    let directory = Directory::of(&context)?;
    let all = directory.matching(&arguments.name);
    let matches: Vec<Value> = all
        .iter()
        .take(MOST_MATCHES)
        .map(|p| json!({"username": p.username, "name": p.name, "department": p.department}))
        .collect();
    Ok(json!({
        "name": arguments.name,
        "count": all.len(),
        "matches": matches,
        "more": all.len() > MOST_MATCHES,
    }))
}

/// The person whom the arguments name, or the user who asks.
fn asked<'a>(arguments: &'a Whose, context: &'a ToolContext) -> &'a str {
    let named = arguments.username.as_deref().map(str::trim).filter(|name| !name.is_empty());
    named.unwrap_or(&context.principal.user)
}

fn is_principal(person: &Person, context: &ToolContext) -> bool {
    person.username.eq_ignore_ascii_case(&context.principal.user)
}

/// Nobody of that name is an answer, not a failure. People who have it as a part of their name are told, too.
fn not_found(asked: &str, directory: &Directory) -> Value {
    let mut answer = json!({"found": false, "username": asked, "name": null, "you": false});
    let matches = directory.matching(asked);
    if !matches.is_empty() {
        let public = |person: &&Person| json!({"username": person.username, "name": person.name});
        answer["matches"] = matches.iter().take(MOST_MATCHES).map(public).collect();
    }
    answer
}

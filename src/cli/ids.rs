//! Ids on the command line: whole ones, and prefixes that only one id begins with.

use std::str::FromStr;

use uuid::Uuid;

use super::failure::Failure;

/// Minimum length of a prefix of an id: an empty variable of a script must not match.
pub const MIN_PREFIX: usize = 4;

/// Maximum number of candidates that are listed.
const LISTED: usize = 8;

/// The id of a run or plan, or the beginning of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdPrefix(String);

impl IdPrefix {
    /// The id, if it is whole.
    pub fn whole(&self) -> Option<Uuid> {
        self.0.parse().ok()
    }

    /// The only one of `candidates` whose id begins with this; `what` they are, in the singular.
    ///
    /// # Errors
    /// `<what>.ambiguous` with the candidates, `<what>.unknown` if there is none.
    pub fn only<T>(
        &self,
        what: &str,
        candidates: impl IntoIterator<Item = T>,
        id: impl Fn(&T) -> Uuid,
    ) -> Result<T, Failure> {
        let begins = |candidate: &T| id(candidate).to_string().starts_with(&self.0);
        let mut found: Vec<T> = candidates.into_iter().filter(begins).collect();
        if found.len() > 1 {
            let ids: Vec<String> = found.iter().map(|one| id(one).to_string()).collect();
            return Err(ambiguous(what, &self.0, &ids));
        }
        found.pop().ok_or_else(|| {
            let message = format!("no {what}'s id begins with {:?}", self.0);
            Failure::new(&format!("{what}.unknown"), message)
                .help(format!("`proscenium {what}s list` lists them"))
        })
    }
}

impl FromStr for IdPrefix {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        if let Ok(whole) = given.parse::<Uuid>() {
            return Ok(Self(whole.to_string()));
        }
        // What is missing may be anything, so the rest of some id is added.
        let rest = Uuid::max().to_string();
        let is_prefix = given.len() >= MIN_PREFIX
            && rest.get(given.len()..).is_some_and(|rest| format!("{given}{rest}").parse::<Uuid>().is_ok());
        if is_prefix {
            return Ok(Self(given.to_lowercase()));
        }
        Err(format!("write an id, or at least {MIN_PREFIX} characters of its beginning"))
    }
}

/// The error of a prefix of several ids, which are listed.
pub fn ambiguous(what: &str, prefix: &str, ids: &[String]) -> Failure {
    let count = ids.len();
    let mut listed: Vec<String> = ids.iter().take(LISTED).cloned().collect();
    if count > LISTED {
        listed.push(format!("and {} more", count - LISTED));
    }
    let message = format!("{count} ids begin with {prefix:?}: give more of the one you mean");
    Failure::usage(&format!("{what}.ambiguous"), message).help(format!("they are {}", listed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_names_the_only_id_that_begins_with_it() {
        let ids: Vec<Uuid> = ["01976c8e-0000-7000-8000-000000000001", "01976c8e-1111-7000-8000-000000000002"]
            .map(|id| id.parse().unwrap())
            .to_vec();
        let named = |prefix: &str| prefix.parse::<IdPrefix>().unwrap().only("run", ids.clone(), |id| *id);
        assert_eq!(named("01976C8E-1"), Ok(ids[1]));
        assert_eq!(named("01976c8e000070008000000000000001"), Ok(ids[0]));
        let failure = named("0197").unwrap_err();
        assert_eq!(failure.code, "run.ambiguous");
        assert!(ids.iter().all(|id| failure.remedy.as_ref().unwrap().contains(&id.to_string())));
        assert_eq!(named("ffff").unwrap_err().code, "run.unknown");
        for wrong in ["", "019", "not-an-id", "0197-6c8e", "01976c8e-0000-7000-8000-0000000000011"] {
            wrong.parse::<IdPrefix>().unwrap_err();
        }
    }
}

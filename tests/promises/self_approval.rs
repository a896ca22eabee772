//! Keys that may not approve the requests of their own user.

use proscenium::access::Role;
use proscenium::store::KeyRules;
use serde_json::{Value, json};

use super::plans_api::plan_path;
use super::process::Workspace;
use super::server_api::ask;
use super::support::{Office, Reply, ServedEngine};

/// A served office, and its callers with their keys.
struct KeyedOffice {
    office: Office,
    served: ServedEngine,
    /// May not approve her own requests with this key.
    ada_barred: String,
    /// May approve them with this one.
    ada: String,
    /// Another user, barred from approving his own requests.
    bob_barred: String,
}

impl KeyedOffice {
    async fn open() -> Self {
        let (office, served) = Office::serve().await;
        let key = async |user: &str, no_own_approval: bool| {
            let rules = KeyRules { no_own_approval, role: Role::Approver, ..KeyRules::default() };
            served.create_key("acme", user, rules).await.1
        };
        let (ada_barred, ada, bob_barred) =
            (key("ada", true).await, key("ada", false).await, key("bob", true).await);
        Self { office, served, ada_barred, ada, bob_barred }
    }

    async fn post(&self, key: &str, path: &str, body: Value) -> Reply {
        self.served.send(key, "POST", path, &body).await
    }

    /// A waiting plan, requested with this key.
    async fn request_plan(&self, key: &str, session: &str) -> Value {
        let made = self.post(key, "/api/plans", json!({"message": "book", "session_id": session})).await;
        assert_eq!(made.status, 201, "{made:#?}");
        made.json()
    }

    /// How the plan's run ends, or that it waits.
    async fn final_status(&self, plan: &Value) -> Value {
        let path = format!("/api/runs/{}/events", plan["run_id"].as_str().unwrap());
        let events = self.served.send(&self.ada, "GET", &path, &Value::Null).await.events();
        events.last().unwrap().data["status"].clone()
    }
}

fn approval(plan: &Value) -> String {
    format!("/api/approvals/{}", plan["approvals"][0].as_str().unwrap())
}

#[tokio::test]
async fn barred_key_cannot_approve_its_users_own_requests() {
    let keyed = KeyedOffice::open().await;
    // Whichever of her keys she used for the request.
    for (asked_with, session) in [(&keyed.ada_barred, "s-1"), (&keyed.ada, "s-2")] {
        let plan = keyed.request_plan(asked_with, session).await;
        let barred = &keyed.ada_barred;
        let yes = json!({"decision": "yes"});
        keyed
            .post(barred, &plan_path(&plan, "/approve"), json!({}))
            .await
            .assert_problem(403, "approval.own_request");
        keyed.post(barred, &approval(&plan), yes).await.assert_problem(403, "approval.own_request");
        // A decision in words counts once the conversation knows again that its run waits.
        assert_eq!(keyed.final_status(&plan).await, "waiting");
        let mut words = ask("yes");
        words["session_id"] = json!(session);
        keyed.post(barred, "/api/chat", words).await.assert_problem(403, "approval.own_request");
        assert_eq!(keyed.final_status(&plan).await, "waiting");
        let mut words = ask("yes");
        words["model"] = json!("proscenium");
        let request = keyed.served.request("POST", "/v1/chat/completions").header("x-session-id", session);
        let reply = Reply::of(request.bearer_auth(barred).json(&words).send().await.unwrap()).await;
        reply.assert_error(403, "approval.own_request");
        assert!(keyed.office.reached().is_empty());

        let approved = keyed.post(&keyed.ada, &plan_path(&plan, "/approve"), json!({})).await;
        assert_eq!(approved.status, 200, "her other key may approve: {approved:#?}");
        assert_eq!(keyed.final_status(&plan).await, "completed");
        assert_eq!(keyed.office.reached(), ["POST /Book"]);
    }
}

#[tokio::test]
async fn barred_key_approves_others_requests_and_refuses_its_own() {
    let keyed = KeyedOffice::open().await;
    let plan = keyed.request_plan(&keyed.ada_barred, "s-1").await;
    let approved = keyed.post(&keyed.bob_barred, &plan_path(&plan, "/approve"), json!({})).await;
    assert_eq!(approved.status, 200, "{approved:#?}");
    assert_eq!(keyed.final_status(&plan).await, "completed");
    assert_eq!(keyed.office.reached(), ["POST /Book"]);

    let refused = keyed.request_plan(&keyed.ada_barred, "s-2").await;
    let no = keyed.post(&keyed.ada_barred, &approval(&refused), json!({"decision": "no"})).await;
    assert_eq!((no.status, &no.json()["decided_by"]), (200, &json!("ada")));
    let stopped = keyed.request_plan(&keyed.ada_barred, "s-3").await;
    let stop = keyed.post(&keyed.ada_barred, &plan_path(&stopped, "/cancel"), json!({})).await;
    assert_eq!((stop.status, &stop.json()["status"]), (200, &json!("cancelled")));
    let in_words = keyed.request_plan(&keyed.ada_barred, "s-4").await;
    let mut words = ask("no");
    words["session_id"] = json!("s-4");
    assert_eq!(keyed.post(&keyed.ada_barred, "/api/chat", words).await.status, 200);
    for plan in [refused, stopped, in_words] {
        assert_eq!(keyed.final_status(&plan).await, "cancelled");
    }
    assert!(keyed.office.reached().is_empty());
}

#[test]
fn barred_key_is_created_and_listed_on_the_command_line() {
    let workspace = Workspace::new();
    let made = workspace.run(&["keys", "create", "--tenant", "acme", "--user", "ada", "--no-own-approval"]);
    assert!(made.status == 0 && made.err.contains("It may not approve what ada has asked for."), "{made:?}");
    assert_eq!(workspace.run(&["keys", "create", "--tenant", "acme"]).status, 0);
    let listed = workspace.run(&["keys", "list"]);
    let rows: Vec<&str> = listed.out.lines().map(str::trim_end).collect();
    assert!(
        rows[0].contains("OWN APPROVAL") && rows[1].ends_with(" no") && rows[2].ends_with(" yes"),
        "{rows:#?}"
    );
    let listed: Value = serde_json::from_str(&workspace.run(&["keys", "list", "--json"]).out).unwrap();
    assert_eq!((&listed[0]["no_own_approval"], &listed[1]["no_own_approval"]), (&json!(true), &json!(false)));
}

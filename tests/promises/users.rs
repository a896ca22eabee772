//! Users within a tenant: another user's data is not found, and each role has its permissions.

use proscenium::access::Role;
use proscenium::run::TenantId;
use proscenium::store::KeyRules;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::plans_api::plan_path;
use super::process::Workspace;
use super::server_api::ask;
use super::support::{Office, Reply, ServedEngine};

const NEVER: &str = "01976c8e-0000-7000-8000-000000000001";

/// A served office of one tenant, with a key for each person.
struct Company {
    office: Office,
    served: ServedEngine,
    ada: String,
    bob: String,
    /// Approvers.
    carl: String,
    cora: String,
    auditor: String,
    admin: String,
    /// The key of a chatbot.
    service: String,
}

impl Company {
    async fn open() -> Self {
        let (office, served) = Office::serve().await;
        let key = async |user: &str, role: Role| served.key("acme", user, role).await;
        let (ada, bob) = (key("ada", Role::User).await, key("bob", Role::User).await);
        let (carl, cora) = (key("carl", Role::Approver).await, key("cora", Role::Approver).await);
        let (auditor, admin) = (key("audrey", Role::Auditor).await, key("root", Role::Admin).await);
        let service = key("chatbot", Role::Service).await;
        served.wait_for_keys().await;
        Self { office, served, ada, bob, carl, cora, auditor, admin, service }
    }

    fn request(&self, key: &str, method: &str, path: &str) -> RequestBuilder {
        self.served.request(method, path).bearer_auth(key)
    }

    async fn send(&self, key: &str, method: &str, path: &str, body: Option<Value>) -> Reply {
        let request = self.request(key, method, path);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        Reply::of(request.send().await.unwrap()).await
    }

    async fn get(&self, key: &str, path: &str) -> Reply {
        self.send(key, "GET", path, None).await
    }

    async fn post(&self, key: &str, path: &str, body: Value) -> Reply {
        self.send(key, "POST", path, Some(body)).await
    }

    /// A request of a conversation, as its answer document.
    async fn chat(&self, key: &str, session: &str, words: &str) -> Value {
        let mut body = ask(words);
        body["session_id"] = json!(session);
        let reply = self.post(key, "/api/chat", body).await;
        assert_eq!(reply.status, 200, "{reply:#?}");
        reply.json()
    }

    /// A plan that waits for approval.
    async fn plan(&self, key: &str, session: &str, words: &str) -> Value {
        let made = self.post(key, "/api/plans", json!({"message": words, "session_id": session})).await;
        assert_eq!(made.status, 201, "{made:#?}");
        made.json()
    }

    /// How a run ends, or that it waits.
    async fn final_status(&self, run: &Value) -> Value {
        let path = format!("/api/runs/{}/events", run["run_id"].as_str().unwrap());
        let events = self.get(&self.admin, &path).await.events();
        events.last().unwrap().data["status"].clone()
    }

    /// Pending approvals in order of creation.
    async fn open_approvals(&self, key: &str) -> Vec<Value> {
        self.get(key, "/api/approvals").await.json()["approvals"].as_array().unwrap().clone()
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap()
}

fn approval(of: &Value) -> String {
    format!("/api/approvals/{}", of["approval_id"].as_str().unwrap())
}

/// Every operation on something that has an id, with a body.
fn operations(
    run: &str,
    task: &str,
    approval: &str,
    session: &str,
) -> Vec<(&'static str, String, Option<Value>)> {
    let mut all = vec![
        ("GET", format!("/api/runs/{run}"), None),
        ("GET", format!("/api/runs/{run}/events"), None),
        ("POST", format!("/api/runs/{run}/cancel"), None),
        ("POST", format!("/api/runs/{run}/resume"), None),
        ("GET", format!("/api/approvals/{approval}"), None),
        ("POST", format!("/api/approvals/{approval}"), Some(json!({"decision": "yes"}))),
        ("GET", format!("/api/sessions/{session}"), None),
        ("DELETE", format!("/api/sessions/{session}"), None),
    ];
    let bodies =
        [("approve", json!({})), ("modify", json!({"feedback": "look first"})), ("cancel", json!({}))];
    all.extend(bodies.map(|(what, body)| ("POST", format!("/api/plans/{task}/{what}"), Some(body))));
    all.push(("POST", format!("/api/plans/{task}/resume"), None));
    all.push(("GET", format!("/api/plans/{task}"), None));
    all.push(("DELETE", format!("/api/plans/{task}"), None));
    all
}

#[tokio::test]
async fn another_users_ids_are_not_found() {
    let company = Company::open().await;
    company.chat(&company.ada, "adas", "hello").await;
    let plan = company.plan(&company.ada, "adas", "book").await;
    let (run, task) = (text(&plan, "run_id"), text(&plan, "task_id"));
    let put = plan["approvals"][0].as_str().unwrap();
    let theirs = operations(run, task, put, "adas");
    let nobodys = operations(NEVER, NEVER, &format!("{NEVER}.1"), "never");
    for ((method, path, body), (_, nowhere, _)) in theirs.into_iter().zip(nobodys) {
        let seen = company.send(&company.bob, method, &path, body.clone()).await;
        let nothing = company.send(&company.bob, method, &nowhere, body).await;
        assert_eq!((seen.status, nothing.status), (404, 404), "{method} {path}: {seen:#?}");
        let name = |path: &str| path.split('/').nth(3).unwrap().to_owned();
        let unnamed = |reply: &Reply, path: &str| reply.body.replace(&name(path), "");
        assert_eq!(unnamed(&seen, &path), unnamed(&nothing, &nowhere), "{method} {path}");
    }
    for list in ["/api/runs", "/api/plans", "/api/approvals?all=true", "/api/sessions"] {
        let rows = async |key: &str, more: &str| {
            let listed = company.get(key, &format!("{list}{more}")).await.json();
            listed.as_object().unwrap().values().next().unwrap().as_array().unwrap().len()
        };
        assert_eq!(rows(&company.bob, "").await, 0, "{list}");
        for key in [&company.ada, &company.auditor, &company.admin] {
            assert!(rows(key, "").await > 0, "{list}");
        }
    }
    // No user can post to another's conversation, by either protocol, and nothing is decided by it.
    for key in [&company.bob, &company.carl] {
        let mut yes = ask("yes");
        yes["session_id"] = json!("adas");
        company.post(key, "/api/chat", yes).await.assert_problem(404, "session.unknown");
        let body = json!({"message": "book", "session_id": "adas"});
        company.post(key, "/api/plans", body).await.assert_problem(404, "session.unknown");
        let mut yes = ask("yes");
        yes["model"] = json!("proscenium");
        let request = company.request(key, "POST", "/v1/chat/completions").header("x-session-id", "adas");
        Reply::of(request.json(&yes).send().await.unwrap()).await.assert_error(404, "session.unknown");
    }
    assert!(company.office.reached().is_empty());
    // A yes of its own user counts.
    assert_eq!(company.final_status(&plan).await, "waiting");
    company.chat(&company.ada, "adas", "yes").await;
    assert_eq!(company.final_status(&plan).await, "completed");
    assert_eq!(company.office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn approver_sees_and_decides_only_what_needs_approval() {
    let company = Company::open().await;
    let quiet = company.chat(&company.ada, "adas", "hello").await;
    let (plan, carl) = (company.plan(&company.ada, "adas", "book").await, &company.carl);
    company
        .get(carl, &format!("/api/runs/{}", text(&quiet, "run_id")))
        .await
        .assert_problem(404, "run.unknown");
    company.get(carl, "/api/sessions/adas").await.assert_problem(404, "session.unknown");
    let runs = company.get(carl, "/api/runs").await.json();
    assert_eq!((runs["runs"].as_array().unwrap().len(), &runs["runs"][0]["run_id"]), (1, &plan["run_id"]));
    assert_eq!(company.open_approvals(carl).await.len(), 1);
    assert_eq!(company.get(carl, &plan_path(&plan, "")).await.json()["task_id"], plan["task_id"]);
    company.post(carl, &plan_path(&plan, "/cancel"), json!({})).await.assert_problem(403, "auth.role");
    company.send(carl, "DELETE", &plan_path(&plan, ""), None).await.assert_problem(403, "auth.role");
    assert_eq!(company.post(carl, &plan_path(&plan, "/approve"), json!({})).await.status, 200);
    assert_eq!(company.final_status(&plan).await, "completed");
    assert_eq!(company.office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn plan_changed_by_an_approver_needs_another_approver() {
    let company = Company::open().await;
    for (n, decides) in [&company.ada, &company.cora].into_iter().enumerate() {
        let plan = company.plan(&company.ada, &format!("s-{n}"), "book").await;
        let changed = company
            .post(&company.carl, &plan_path(&plan, "/modify"), json!({"feedback": "look first"}))
            .await;
        assert_eq!((changed.status, &changed.json()["version"]), (200, &json!(2)), "{changed:#?}");
        let put = company.open_approvals(&company.carl).await;
        assert_eq!(put.len(), 1, "{put:#?}");
        let yes = json!({"decision": "yes"});
        let own = company.post(&company.carl, &plan_path(&plan, "/approve"), json!({})).await;
        own.assert_problem(403, "approval.own_request");
        company
            .post(&company.carl, &approval(&put[0]), yes.clone())
            .await
            .assert_problem(403, "approval.own_request");
        assert_eq!(company.office.reached().len(), n);
        let other = company.post(decides, &approval(&put[0]), yes).await;
        assert_eq!(other.status, 200, "{other:#?}");
        assert_eq!(company.final_status(&plan).await, "completed");
    }
}

#[tokio::test]
async fn arguments_changed_by_an_approver_are_sent_for_approval_again() {
    let company = Company::open().await;
    let waits = company.chat(&company.ada, "adas", "pay").await;
    assert_eq!(waits["status"], "waiting", "{waits:#}");
    let put = company.open_approvals(&company.carl).await.remove(0);
    let edit = |amount: u32| json!({"decision": "yes", "arguments": {"amount": amount}});
    let changed = company.post(&company.carl, &approval(&put), edit(500)).await;
    assert_eq!((changed.status, &changed.json()["state"]), (200, &json!("lapsed")), "{changed:#?}");
    assert_eq!(company.final_status(&waits).await, "waiting");
    let second = company.open_approvals(&company.carl).await.remove(0);
    assert_ne!((&second["approval_id"], &second["hash"]), (&put["approval_id"], &put["hash"]));
    assert_eq!(second["arguments"], json!({"amount": 500}));
    assert!(second["why"].to_string().contains("carl changed its arguments"), "{second:#}");
    let yes = json!({"decision": "yes"});
    company
        .post(&company.carl, &approval(&second), yes.clone())
        .await
        .assert_problem(403, "approval.own_request");
    assert!(company.office.reached().is_empty());
    assert_eq!(company.post(&company.ada, &approval(&second), yes).await.status, 200);
    assert_eq!(company.final_status(&waits).await, "completed");
    let paid = company.office.backend.take_requests();
    assert_eq!((paid.len(), paid[0].query["amount"].as_str()), (1, "500"));
    // The audit log names the author of the arguments, too.
    let rows = company.served.engine.store().audit_rows(None, 10).await.unwrap();
    let decisions: Vec<_> = rows.iter().map(|row| (row.who.as_str(), row.decision.as_str())).collect();
    assert_eq!(decisions, [("ada", "yes"), ("carl", "rewritten")]);
}

#[tokio::test]
async fn auditor_reads_everything_and_changes_nothing() {
    let company = Company::open().await;
    let plan = company.plan(&company.ada, "adas", "book").await;
    let auditor = &company.auditor;
    for path in
        ["/api/usage".to_owned(), plan_path(&plan, ""), format!("/api/runs/{}", text(&plan, "run_id"))]
    {
        assert_eq!(company.get(auditor, &path).await.status, 200, "{path}");
    }
    let put = plan["approvals"][0].as_str().unwrap();
    for (method, path, body) in operations(text(&plan, "run_id"), text(&plan, "task_id"), put, "adas") {
        if method != "GET" {
            company.send(auditor, method, &path, body).await.assert_problem(403, "auth.role");
        }
    }
    for (path, body) in [
        ("/api/chat", ask("hello")),
        ("/api/planning/plan", json!({"message": "hello"})),
        ("/api/plans", json!({"message": "book"})),
    ] {
        company.post(auditor, path, body).await.assert_problem(403, "auth.role");
    }
    let mut body = ask("hello");
    body["model"] = json!("proscenium");
    company.post(auditor, "/v1/chat/completions", body).await.assert_error(403, "auth.role");
    company.get(&company.ada, "/api/usage").await.assert_problem(403, "auth.role");
    // An admin can also erase ended runs of other users.
    assert_eq!(company.post(&company.admin, &plan_path(&plan, "/cancel"), json!({})).await.status, 200);
    let erased = company.send(&company.admin, "DELETE", "/api/sessions/adas", None).await;
    assert_eq!(erased.status, 204, "{erased:#?}");
}

#[tokio::test]
async fn service_key_acts_for_the_named_end_user() {
    let company = Company::open().await;
    let send = async |user: Option<&[u8]>, key: &str, path: &str| {
        let request = company.request(key, "GET", path);
        let request = match user {
            Some(user) => request.header("x-user-id", user),
            None => request,
        };
        Reply::of(request.send().await.unwrap()).await
    };
    let service = &company.service;
    let named = company.request(service, "POST", "/api/chat").header("x-user-id", "dora").json(&ask("hello"));
    let asked = Reply::of(named.send().await.unwrap()).await;
    assert_eq!(asked.status, 200, "{asked:#?}");
    let run = format!("/api/runs/{}", asked.header("x-run-id"));
    assert_eq!(send(Some(b"dora"), service, &run).await.status, 200);
    for other in [Some("ada".as_bytes()), Some("山田".as_bytes()), None] {
        send(other, service, &run).await.assert_problem(404, "run.unknown");
    }
    send(Some(b"dora"), &company.ada, &run).await.assert_problem(403, "auth.user_header");
    send(Some(b"dora"), &company.admin, &run).await.assert_problem(403, "auth.user_header");
    assert_eq!(send(Some(b"ada"), &company.ada, "/api/runs").await.status, 200);
    for bad in [b"".as_slice(), b" ", b"\xff\xfe", "x".repeat(129).as_bytes()] {
        send(Some(bad), service, "/api/runs").await.assert_problem(422, "request.user");
    }
    let twice =
        company.request(service, "GET", "/api/runs").header("x-user-id", "dora").header("x-user-id", "ada");
    Reply::of(twice.send().await.unwrap()).await.assert_problem(422, "request.user");
}

#[tokio::test]
async fn idempotency_keys_are_scoped_to_their_user() {
    let company = Company::open().await;
    let chat = async |key: &str| {
        let request =
            company.request(key, "POST", "/api/chat").header("idempotency-key", "one").json(&ask("hello"));
        Reply::of(request.send().await.unwrap()).await
    };
    let (ada, bob) = (chat(&company.ada).await, chat(&company.bob).await);
    assert_eq!((ada.status, bob.status), (200, 200), "{bob:#?}");
    assert_ne!(ada.header("x-run-id"), bob.header("x-run-id"));
    for (key, first) in [(&company.ada, &ada), (&company.bob, &bob)] {
        let again = chat(key).await;
        assert_eq!(
            (again.header("x-run-id"), again.header("idempotent-replayed")),
            (first.header("x-run-id"), "true")
        );
    }
}

#[tokio::test]
async fn expired_key_is_refused_with_the_reason() {
    let company = Company::open().await;
    let expires = Some("2020-01-01T00:00:00Z".parse().unwrap());
    let key = company.served.create_key("acme", "ada", KeyRules { expires, ..KeyRules::default() }).await.1;
    company.get(&key, "/api/runs").await.assert_problem(401, "auth.expired");
}

#[test]
fn roles_and_expiry_are_set_on_the_command_line() {
    let workspace = Workspace::new();
    let made = workspace.run(&[
        "keys", "create", "--tenant", "acme", "--user", "ada", "--role", "auditor", "--expires", "90d",
        "--json",
    ]);
    assert_eq!(made.status, 0, "{made:?}");
    let made: Value = serde_json::from_str(&made.out).unwrap();
    assert_eq!(made["role"], "auditor");
    assert!(made["expires"].is_string(), "{made}");
    let id = made["id"].as_str().unwrap();
    let set = workspace.run(&["keys", "set-role", id, "approver"]);
    assert_eq!((set.status, set.out.trim()), (0, &*format!("Key {id} has the role approver.")));
    assert!(workspace.run(&["keys", "list"]).out.contains(" approver "), "it is listed");
    assert_ne!(workspace.run(&["keys", "set-role", id, "root"]).status, 0);
    assert_ne!(workspace.run(&["keys", "set-role", "0123456789abcdef", "user"]).status, 0);
    for wrong in ["yesterday", "2020-01-01", "-3d", "99999999999d"] {
        let expires = format!("--expires={wrong}");
        assert_ne!(workspace.run(&["keys", "create", "--tenant", "acme", &expires]).status, 0, "{wrong}");
    }
}

#[tokio::test]
async fn metrics_require_a_role_that_reads_usage() {
    let company = Company::open().await;
    for key in [&company.ada, &company.service] {
        company.get(key, "/metrics").await.assert_problem(403, "auth.role");
    }
    for key in [&company.carl, &company.auditor, &company.admin] {
        assert_eq!(company.get(key, "/metrics").await.status, 200);
    }
}

#[tokio::test]
async fn look_alike_user_names_are_refused() {
    let company = Company::open().await;
    let tenant = TenantId::new("acme").unwrap();
    for user in [" ada", "ada ", "ada\u{200b}", "\u{202e}ada"] {
        let made =
            company.served.engine.store().create_key_with(&tenant, user, "", KeyRules::default()).await;
        assert_eq!(made.unwrap_err().code(), "store.bad_record", "{user:?}");
    }
    for user in ["ada\u{200b}", "\u{200b}", "\u{202e}ada"] {
        let request =
            company.request(&company.service, "GET", "/api/runs").header("x-user-id", user.as_bytes());
        Reply::of(request.send().await.unwrap()).await.assert_problem(422, "request.user");
    }
}

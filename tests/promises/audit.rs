//! The audit log: who decided what outlives the erasure of its run, and changes of the log are detected.

use std::path::Path;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, SqlitePool};

use super::plans_cli::Library;

const CUT_OFF: &str = "no row has the given hash";
const FILE: &str = "proscenium.db";

async fn change(data: &Path, sql: &str) -> Result<(), sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(data.join(FILE));
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&pool).await;
    // The file alone contains everything then.
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&pool).await.unwrap();
    pool.close().await;
    done.map(|_| ())
}

/// A plan that was edited, approved with a hold, and started: three decisions. Returns its id.
fn plan_with_three_decisions(library: &Library) -> String {
    let workspace = &library.workspace;
    let task = library.request_reservation();
    let mut plan = library.json(&["plans", "show", &task]);
    plan["plan"]["steps"][0]["purpose"] = json!("Reserve the book \"Emma\" for 7 days at the station branch");
    workspace.write("plan.json", &plan.to_string());
    for (status, arguments) in [
        (3, &["plans", "modify", &task, "--file", "plan.json", "--note", "a week will do"][..]),
        (0, &["plans", "approve", &task, "--version", "2", "--only", "--user", "lucia", "--note", "she may"]),
        (0, &["plans", "approve", &task, "--version", "2"]),
    ] {
        let ran = workspace.run(arguments);
        assert_eq!(ran.status, status, "{ran:?}");
    }
    task
}

#[tokio::test]
async fn audit_log_outlives_run_erasure_without_its_content() {
    let library = Library::with_approval("plan");
    let workspace = &library.workspace;
    let task = plan_with_three_decisions(&library);
    let run = library.json(&["plans", "show", &task])["run_id"].clone();
    let assert_listed = |erased: bool| {
        let rows = library.json(&["audit", "list"]);
        let rows = rows.as_array().unwrap();
        let actions: Vec<Value> =
            rows.iter().map(|row| json!([row["seq"], row["who"], row["decision"]])).collect();
        let all =
            [[json!(3), json!("keysersoze"), json!("begin")], [json!(2), json!("lucia"), json!("yes_later")]];
        let first = [json!(1), json!("keysersoze"), json!("plan")];
        assert_eq!(json!(actions), json!([all[0], all[1], first]));
        assert!(rows.iter().all(|row| row["run"] == run && row["erased"] == erased), "{rows:#?}");
        assert_eq!(rows[1]["approval"], 2, "{rows:#?}");
        let text = format!("{rows:?}");
        for content in ["Emma", "a week", "she may", "station"] {
            assert!(!text.contains(content), "{content} in {text}");
        }
    };
    assert_listed(false);
    let whole = library.json(&["audit", "verify"]);
    assert_eq!((&whole["rows"], &whole["broken"]), (&json!(3), &Value::Null));

    assert_eq!(workspace.run(&["plans", "delete", &task]).status, 0);
    assert_listed(true);
    let head = whole["head"].as_str().unwrap();
    let ran = workspace.run(&["audit", "verify", "--head", head]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{ran:?}");
    assert!(ran.out.starts_with(&format!("The audit log is intact: 3 rows.\nhead: {head}\n")), "{ran:?}");
    // Also by a prefix, as lists on a narrow terminal show it.
    for run in [run.as_str().unwrap(), &run.as_str().unwrap()[..30]] {
        let listed = workspace.run(&["audit", "list", "--run", run]);
        assert!(listed.out.contains("lucia") && listed.out.contains("yes_later"), "{}", listed.out);
    }
    let listed = workspace.run(&["audit", "list", "--run", "ffff"]);
    assert!(listed.status == 1 && listed.err.contains("error[run.unknown]"), "{listed:?}");
    // The key is gone with the run: hashes cannot be tested against guessed decisions.
    let options = SqliteConnectOptions::new().filename(workspace.data().join(FILE));
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let keys: i64 = sqlx::query_scalar("SELECT count(*) FROM audit_keys").fetch_one(&pool).await.unwrap();
    pool.close().await;
    assert_eq!(keys, 0);

    // The audit log continues after it.
    assert_eq!(library.reserved().len(), 1);
    library.request_reservation();
    let listed = library.json(&["approvals", "list"]);
    let id = listed[0]["approval_id"].as_str().unwrap();
    workspace.run(&["approvals", "decide", id, "no"]);
    let last = library.json(&["audit", "list", "--limit", "1"]);
    assert_eq!((&last[0]["seq"], &last[0]["decision"]), (&json!(4), &json!("no")));
    assert_eq!(library.json(&["audit", "verify"])["rows"], 4);
}

#[tokio::test]
async fn audit_names_the_first_changed_removed_or_replaced_decision() {
    let library = Library::with_approval("plan");
    let workspace = &library.workspace;
    plan_with_three_decisions(&library);
    let file = workspace.data().join(FILE);
    let head = library.json(&["audit", "verify"])["head"].as_str().unwrap().to_owned();
    for sql in ["UPDATE audit_chain SET who = 'sara'", "DELETE FROM audit_chain"] {
        let error = change(&workspace.data(), sql).await.unwrap_err();
        assert!(error.to_string().contains("the record of decisions is not "), "{error}");
    }
    let whole = std::fs::read(&file).unwrap();
    let decision = "seq = (SELECT event FROM audit_chain WHERE seq = 2)";
    let question = "seq = (SELECT asked FROM audit_chain WHERE seq = 2)";
    // The approved plan itself, which neither the question nor the decision contains.
    let plan = "seq < (SELECT event FROM audit_chain WHERE seq = 2) AND seq > (SELECT event FROM audit_chain WHERE seq = 1)";
    for (row, why, sql) in [
        (1, "this row or the previous one was changed", "UPDATE audit_chain SET at = at + 1 WHERE seq = 1"),
        (2, "this row or the previous one was changed", "UPDATE audit_chain SET who = 'sara' WHERE seq = 2"),
        (2, "it is missing", "DELETE FROM audit_chain WHERE seq = 2"),
        (3, "was changed", "UPDATE audit_chain SET hash = zeroblob(32) WHERE seq = 3"),
        (
            2,
            "differs from what was decided",
            &format!("UPDATE journal SET body = replace(body, 'lucia', 'sara') WHERE {decision}"),
        ),
        (
            2,
            "differs from what was decided",
            &format!("UPDATE journal SET body = replace(body, 'hash\":\"', 'hash\":\"0') WHERE {question}"),
        ),
        (
            1,
            "differs from what was decided",
            "UPDATE journal SET body = replace(body, 'Emma', 'Dune') WHERE seq = 1",
        ),
        (
            2,
            "differs from what was decided",
            &format!("UPDATE journal SET body = replace(body, '\"at\"', '\"at\" ') || ' ' WHERE {plan}"),
        ),
        (2, "no longer has event", &format!("DELETE FROM journal WHERE {decision}")),
        (1, "the key of run", "DELETE FROM audit_keys"),
        (3, CUT_OFF, "DELETE FROM audit_chain WHERE seq = 3"),
        (1, "has an audit key but no decision", "DELETE FROM audit_chain"),
    ] {
        let unlock = "DROP TRIGGER audit_chain_unchanged; DROP TRIGGER audit_chain_undeleted;";
        change(&workspace.data(), &format!("{unlock} {sql}")).await.unwrap();
        let with_head: &[&str] = if why == CUT_OFF { &["--head", &head] } else { &[] };
        let ran = workspace.run(&[&["audit", "verify"], with_head].concat());
        assert_eq!(ran.status, 1, "{sql}: {ran:?}");
        assert!(ran.out.contains(&format!("is broken at row {row}: ")), "{sql}: {}", ran.out);
        assert!(ran.out.contains(why), "{sql}: {}", ran.out);
        let document = library.json(&[&["audit", "verify"], with_head].concat());
        assert_eq!(document["broken"]["seq"], row, "{sql}: {document:#}");
        std::fs::write(&file, &whole).unwrap();
        for log in ["-wal", "-shm"] {
            // A read of the file may have left them.
            let _ = std::fs::remove_file(workspace.data().join(format!("{FILE}{log}")));
        }
        let ran = workspace.run(&["audit", "verify", "--head", &head]);
        assert_eq!(ran.status, 0, "after {sql}: {ran:?}");
    }
}

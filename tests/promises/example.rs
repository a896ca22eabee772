//! The documentation's example works as described.

use proscenium::run::{Fault, RunStatus};
use proscenium::scene::{Catalogue, LoadedScenes, Scene, SceneBuilder, SceneFaults, ToolBuilder};
use proscenium::{Builder, Engine, RunTicket, RunWatch, StartError, Submitted, UserPlans};

#[expect(dead_code, reason = "the example is also a program")]
#[path = "../../examples/two_tools.rs"]
mod two_tools;

#[tokio::test]
async fn rust_scene_with_two_tools_answers_a_request_for_both() {
    let dir = tempfile::tempdir().unwrap();
    let answer =
        two_tools::ask("Where is order 41, and then cancel order 2", dir.path().to_owned()).await.unwrap();
    assert_eq!(answer.status, RunStatus::Completed);
    for expected in ["Order 41 is in Bologna.", "Order 2 is cancelled, 30 euros come back."] {
        assert!(answer.answer.contains(expected), "{}", answer.answer);
    }
    let source = include_str!("../../examples/two_tools.rs");
    assert!(source.lines().count() < 40, "short enough to be read at once");
}

#[expect(dead_code, reason = "the example is also a program")]
#[path = "../../examples/own_recovery.rs"]
mod own_recovery;

#[tokio::test]
async fn custom_recovery_decides_about_failed_calls_without_a_model() {
    for (failures, status, says) in [
        (0, RunStatus::Completed, "Order 41 is in Bologna."),
        (1, RunStatus::Completed, "Order 41 is in Bologna."),
        (9, RunStatus::Partial, ""),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let answer = own_recovery::ask("Where is order 41?", dir.path().to_owned(), failures).await.unwrap();
        assert_eq!(answer.status, status, "{answer:#?}");
        assert!(answer.answer.contains(says), "{}", answer.answer);
    }
}

#[expect(dead_code, reason = "the example is also a program")]
#[path = "../../examples/own_parts.rs"]
mod own_parts;

#[tokio::test]
async fn custom_planner_and_executor_replace_the_built_in_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (answer, ledger) = own_parts::ask("Cancel order 41", dir.path().to_owned()).await.unwrap();
    assert_eq!(answer.status, RunStatus::Completed, "{answer:#?}");
    assert_eq!(answer.plan.unwrap().reasoning, "the shop's rules");
    assert_eq!(ledger, [r#"GetOrder {"number":41}"#, r#"CancelOrder {"number":41}"#]);
    assert!(answer.answer.contains("Order 41 is cancelled, 30 euros come back."), "{}", answer.answer);
}

#[expect(dead_code, reason = "the example is also a program")]
#[path = "../../examples/own_flow.rs"]
mod own_flow;

#[tokio::test]
async fn flow_built_in_rust_plans_the_expected_paths_and_executes_them() {
    let dir = tempfile::tempdir().unwrap();
    let engine = own_flow::start(dir.path().to_owned()).await.unwrap();
    for (message, number, expected) in own_flow::REQUESTS {
        let answer = own_flow::send(&engine, message, number, true).await.unwrap();
        assert_eq!(answer.metadata.planned_execution_path, expected, "{message}: {answer:#?}");
        assert_eq!((answer.metadata.current_path_index, answer.answer.as_str()), (0, ""));
    }
    for (nth, says) in
        [(1, "The parcel is in Parma."), (2, "It is 3 days late."), (3, "The parcel is in Parma.")]
    {
        let (message, number, _) = own_flow::REQUESTS[nth];
        let answer = own_flow::send(&engine, message, number, false).await.unwrap();
        assert_eq!(answer.status, RunStatus::Completed, "{answer:#?}");
        assert!(answer.answer.contains(says), "{}", answer.answer);
    }
    engine.stop().await.unwrap();
}

#[test]
fn what_programs_hold_can_be_shown_and_sent_to_other_threads() {
    fn is_held<T: std::fmt::Debug + Send>() {}
    fn is_shared<T: std::fmt::Debug + Send + Sync + 'static>() {}
    fn is_error<E: std::error::Error + Send + Sync + 'static>() {}
    is_shared::<Engine>();
    is_shared::<RunTicket>();
    is_shared::<RunWatch>();
    is_shared::<Submitted>();
    is_shared::<Scene>();
    is_shared::<Catalogue>();
    is_shared::<LoadedScenes>();
    is_shared::<proscenium::parts::PlannerRequest>();
    is_shared::<proscenium::http::Server>();
    is_shared::<proscenium::http::BoundListener>();
    is_held::<Builder>();
    is_held::<UserPlans<'_>>();
    is_held::<proscenium::PublicStream>();
    is_held::<SceneBuilder>();
    is_held::<ToolBuilder>();
    is_held::<proscenium::flow::Flow>();
    is_held::<proscenium::AnswerWrite>();
    is_error::<Fault>();
    is_error::<StartError>();
    is_error::<SceneFaults>();
    is_error::<proscenium::store::Error>();
    is_error::<proscenium::tools::ToolError>();
    is_error::<proscenium::llm::Error>();
    is_error::<proscenium::http::ServeError>();
}

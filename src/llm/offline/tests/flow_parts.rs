//! Questions for flows beside the steps of scenes.

use serde_json::{Value, json};

use super::acts::strangers;
use super::support::World;

/// The scenes, and the shipped flow about a database.
fn with_flow() -> World {
    let mut world = strangers();
    let flow: toml::Table = toml::from_str(include_str!("../../../../scenes/text_to_sql/flow.toml")).unwrap();
    let flow = serde_json::to_value(flow).unwrap();
    world.scenes.push(
        json!({"scene": flow["name"], "description": flow["description"], "examples": flow["examples"],
        "tools": []}),
    );
    world
}

/// The steps of a plan: the scene of each, and the first tool that it expects.
fn steps(plan: &Value) -> Vec<(&str, &str)> {
    let steps = plan["steps"].as_array().unwrap().iter();
    steps
        .map(|step| {
            let scene = step["scene_name"].as_str().unwrap();
            (scene, step["expected_tools"][0].as_str().unwrap_or_default())
        })
        .collect()
}

const WEATHER: (&str, &str) = ("Weather", "WeatherForecast_Get");
const CANCEL: (&str, &str) = ("Appointments", "cancel_appointment");
const FLOW: (&str, &str) = ("text_to_sql", "");

#[test]
fn question_that_only_a_flow_serves_is_a_step_of_its_own() {
    let world = with_flow();
    for (request, expected) in [
        ("What is the weather in Milan, and how many orders were placed in March 2026?", vec![WEATHER, FLOW]),
        ("Che tempo fa a Milano e quanti ordini sono stati fatti a marzo?", vec![WEATHER, FLOW]),
        ("How many orders were placed in March 2026? What is the weather in Milan?", vec![WEATHER, FLOW]),
        ("Cancel appointment 41. How many customers are there?", vec![CANCEL, FLOW]),
    ] {
        let plan = world.plan(request);
        assert_eq!(steps(&plan), expected, "{request}: {plan:#}");
        assert!(plan.get("unserved").is_none(), "{plan:#}");
        let flow = plan["steps"].as_array().unwrap().last().unwrap();
        assert!(flow["depends_on_step"].is_null(), "{flow:#}");
        let purpose = flow["purpose"].as_str().unwrap();
        assert!(!purpose.contains("Mil") && !purpose.contains("41"), "{purpose}");
    }
}

#[test]
fn question_about_things_that_only_the_flow_names_is_for_it() {
    let world = with_flow();
    for request in [
        "Which products are out of stock?",
        "Quanti clienti vivono a Torino?",
        "top 5 customers by revenue",
        "Customers who spent more than 500 euros",
        "Mi elenchi i fornitori tedeschi?",
        "What's the most expensive product?",
        "Who are our three best customers by completed payments?",
        "Are there discontinued products in the warehouse?",
        "Explain SELECT count(*) FROM orders",
        "select name from products limit 3",
    ] {
        assert_eq!(steps(&world.plan(request)), [FLOW], "{request}");
    }
    for request in [
        "order a pizza",
        "What's the date today?",
        "review my text please",
        "what kind of person are you?",
        "what's the best pizza in town?",
        "email the customers that their orders are late",
        "pay the supplier",
        "how do I order lunch?",
        "cancel the orders of the customers from Rome",
        "please select a good restaurant from my list",
        "Explain to me how printing was invented",
        "Generate a search query for: book AB123CD tomorrow from 9:00 to 11:00",
    ] {
        let plan = world.plan(request);
        let served: Vec<&str> = steps(&plan).into_iter().map(|(scene, _)| scene).collect();
        assert!(!served.contains(&"text_to_sql"), "{request}: {plan:#}");
    }
}

#[test]
fn flow_that_is_started_by_an_order_answers_no_question() {
    let mut world = strangers();
    world.scenes.push(json!({"scene": "Onboarding", "tools": [], "description": "Sets up a new customer: account, products.",
        "examples": [{"say": "Set up the customer Rossi"}]}));
    for request in ["How many customers are there?", "Which products do we have?"] {
        let plan = world.plan(request);
        assert!(!steps(&plan).iter().any(|(scene, _)| *scene == "Onboarding"), "{request}: {plan:#}");
    }
}

#[test]
fn flow_takes_no_part_of_a_request_that_restricts_or_supposes_anything() {
    let world = with_flow();
    for request in [
        "What is the weather in Milan, and how many orders were placed, except in March 2026?",
        "Cancel appointment 41 without telling the customers. How many orders are there?",
        "Don't cancel appointment 41. What is the weather in Milan? How many orders were placed in March?",
        "In March 2026, what is the weather in Milan and how many orders were placed?",
        "Exclude cancelled ones. What is the weather in Milan, and how many orders were placed?",
        "Leave out cancelled ones. What is the weather in Milan, and how many orders were placed?",
        "What is the weather in Milan, and how many of their orders were placed?",
        "How many orders were placed, and what is the weather in Milan?",
        "What is the weather in Milan, apart from Monday? How many orders were placed?",
        "Che tempo fa a Milano, a parte domani, e quanti ordini sono stati fatti domani?",
        "Escludendo i resi, che tempo fa a Milano e quanti ordini sono stati fatti?",
        "If it rains in Milan, how many orders were placed in March 2026?",
        "Cancel appointment 41, but how many orders were placed in March 2026?",
        "Che tempo fa a Milano e quanti ordini sono stati fatti a marzo, tranne quelli annullati?",
        "Cancel appointment 41, then list the orders of the customers",
        "Cancel appointment 41 and the orders of the customers",
    ] {
        let plan = world.plan(request);
        let served: Vec<&str> = steps(&plan).into_iter().map(|(scene, _)| scene).collect();
        assert!(!served.contains(&"text_to_sql"), "{request}: {plan:#}");
    }
}

#[test]
fn steps_of_scenes_are_the_same_with_and_without_a_flow() {
    let (with, without) = (with_flow(), strangers());
    for request in [
        "What is the weather in Milan, and how many orders were placed in March 2026?",
        "Cancel appointment 41. How many customers are there?",
        "Ask for vacation from 15 to 17 July 2026 without the 16th, and how many orders were placed in March?",
        "Ask for vacation on 9 July and show the ten products with the highest price",
        "Book AB123CD for tomorrow and order a pizza",
    ] {
        let (with, without) = (with.plan(request), without.plan(request));
        let of_scenes: Vec<&Value> = with["steps"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|step| step["scene_name"] != "text_to_sql")
            .collect();
        let expected: Vec<&Value> = without["steps"].as_array().unwrap().iter().collect();
        assert_eq!(of_scenes, expected, "{request}");
    }
}

/// What the last of some words is planned as, where the ones before it were answered.
fn planned_after(turns: &[(&str, &str)], words: &str) -> Value {
    let mut world = with_flow();
    world.turns = turns
        .iter()
        .map(|(request, scene)| {
            let calls = if scene.is_empty() {
                json!([])
            } else {
                json!([{"scene": scene, "tool": "WeatherForecast_Get", "arguments": {}, "result": {}}])
            };
            json!({"request": request, "answer": "", "status": "completed", "calls": calls})
        })
        .collect();
    world.plan(words)
}

#[test]
fn value_alone_completes_the_question_that_a_flow_answered_last() {
    let flow = "text_to_sql";
    for (before, words, expected) in [
        ("How many orders were placed in March?", "and in April?", "How many orders were placed in April?"),
        (
            "How many orders were placed in March?",
            "And in April 2026?",
            "How many orders were placed in April 2026?",
        ),
        (
            "How many orders were placed in March?",
            "and from Rome?",
            "How many orders were placed in March from Rome?",
        ),
        (
            "How many orders were placed in March?",
            "and in Rome?",
            "How many orders were placed in March in Rome?",
        ),
        (
            "How many customers do we have in Milan?",
            "what about Berlin?",
            "How many customers do we have in Berlin?",
        ),
        (
            "Quanti ordini sono stati fatti a marzo?",
            "e ad aprile?",
            "Quanti ordini sono stati fatti ad aprile?",
        ),
        ("What is the number of customers?", "and in Rome?", "What is the number of customers in Rome?"),
        ("Quanti clienti abbiamo a Roma?", "e in Francia?", "Quanti clienti abbiamo in Francia?"),
        ("quanti clienti abbiamo a milano?", "e a roma?", "quanti clienti abbiamo a roma?"),
    ] {
        let plan = planned_after(&[(before, flow)], words);
        assert_eq!(steps(&plan), [FLOW], "{words}: {plan:#}");
        assert_eq!(plan["steps"][0]["purpose"], expected, "{words}");
        // A client that keeps its conversation tells no calls. Thanks change nothing.
        let plan = planned_after(&[(before, ""), ("thank you", "")], words);
        assert_eq!(plan["steps"][0]["purpose"], expected, "{words}");
    }
    let chain = [("How many orders were placed in March?", flow), ("and in April?", flow)];
    assert_eq!(
        planned_after(&chain, "and from Rome?")["steps"][0]["purpose"],
        "How many orders were placed in April from Rome?"
    );
}

#[test]
fn value_alone_is_for_what_was_asked_last() {
    let (weather, data) = (
        ("What is the weather in Rome?", "Weather"),
        ("How many customers do we have in Milan?", "text_to_sql"),
    );
    assert_eq!(steps(&planned_after(&[weather, data], "and in Turin?")), [FLOW]);
    assert_eq!(steps(&planned_after(&[data, weather], "and in Turin?")), [WEATHER]);
    assert_eq!(steps(&planned_after(&[data], "weather in Turin?")), [WEATHER]);
}

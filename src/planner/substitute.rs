//! The call of an alternative tool, which takes the place of one that failed.

use super::program::step_in_scene;
use super::scene_reply::{SceneReplyCall, read_call, unusable};
use crate::adapt::PolicyChoice;
use crate::run::{Adaptation, CallState, CallStatus, Event, Fault, ReplyCall, RequestedCall, RunState};
use crate::scene::Catalogue;

/// The event with the call that replaces `call`. There is one even if the catalogue has changed: a call that cannot be
/// made carries its problem, and predefined logic continues with the failed call.
pub fn substitute(state: &RunState, catalogue: &Catalogue, call: u32) -> Event {
    let requested = match state.calls.get(&call) {
        Some(original) => substitute_call(state, catalogue, original),
        None => {
            let written = ReplyCall { id: String::new(), name: String::new(), arguments: String::new() };
            let fault = Fault::new("alternative.unknown", format!("there is no call {call}"));
            unusable(&written, state.next_call(), "", fault)
        }
    };
    Event::Adapted { change: Adaptation::Substituted { call, requested: Box::new(requested) } }
}

fn substitute_call(state: &RunState, catalogue: &Catalogue, original: &CallState) -> RequestedCall {
    let policies = original.requested.policies.as_ref();
    let at = match original.status {
        CallStatus::Failing { chosen: Some(PolicyChoice::Alternative { at }), .. } => at,
        _ => 0,
    };
    let declared = policies.and_then(|policies| policies.alternative_at(at).cloned()).unwrap_or_default();
    let arguments = declared.arguments_for(&original.requested.arguments);
    let written =
        ReplyCall { id: String::new(), name: declared.tool.clone(), arguments: arguments.to_string() };
    // A write that is not made stays a write: it is reported as not done.
    let refused = |code: &str, message: String| RequestedCall {
        effect: original.requested.effect,
        ..unusable(&written, state.next_call(), &declared.tool, Fault::new(code, message))
    };
    let scene = catalogue.get(&original.scene);
    let (Some(scene), Some(step)) = (scene, state.steps.get(&original.step)) else {
        return refused("scene.unknown", format!("the scene {} is not loaded", original.scene));
    };
    let Some(tool) = scene.tool(&declared.tool) else {
        return refused("tool.unknown", format!("scene {} has no tool {:?}", scene.name, declared.tool));
    };
    if tool.effect != original.requested.effect {
        let message = format!("{} has another effect than {} now", tool.name, original.requested.tool);
        return refused("alternative.effect", message);
    }
    if original.requested.occurrence > 0 && !tool.repeatable {
        let message = format!("{} cannot be called several times with the same arguments", tool.name);
        return refused("alternative.not_repeatable", message);
    }
    let written = SceneReplyCall {
        fallback: original.fallback,
        is_prepared: true,
        stands_for: Some(original),
        ..SceneReplyCall::new(&written, state.next_call())
    };
    let own = step_in_scene(step, scene);
    let call = read_call(state, catalogue, scene, &own, &written);
    let policies = call.policies.map(|policies| policies.of_substitute());
    let policies = policies.filter(|policies| !policies.is_empty()).map(Box::new);
    RequestedCall { policies, scene: original.requested.scene.clone(), ..call }
}

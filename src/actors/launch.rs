//! Starts an actor with a given mailbox capacity.

use actix::dev::channel;
use actix::prelude::{Actor, Addr, ArbiterHandle, Context};

/// Starts `actor` on `arbiter` with a mailbox of `capacity` messages. actix itself sets the capacity only
/// when the arbiter's thread runs the actor; until then it would refuse a burst of more than 16 messages.
pub(crate) fn start_actor<A>(arbiter: &ArbiterHandle, capacity: usize, actor: A) -> Addr<A>
where
    A: Actor<Context = Context<A>> + Send,
{
    let (sender, receiver) = channel::channel(capacity);
    arbiter.spawn_fn(move || {
        actix::spawn(Context::with_receiver(receiver).into_future(actor));
    });
    Addr::new(sender)
}

//! Starting an actor with the mailbox it is to have.

use actix::dev::channel;
use actix::prelude::{Actor, Addr, ArbiterHandle, Context};

/// Starts `actor` on `arbiter` with room for `capacity` messages. actix's own way gives a mailbox its
/// capacity only once the arbiter's thread has come to it; until then a burst of more than 16 messages
/// would be refused.
pub(crate) fn start<A>(arbiter: &ArbiterHandle, capacity: usize, actor: A) -> Addr<A>
where
    A: Actor<Context = Context<A>> + Send,
{
    let (sender, receiver) = channel::channel(capacity);
    arbiter.spawn_fn(move || {
        actix::spawn(Context::with_receiver(receiver).into_future(actor));
    });
    Addr::new(sender)
}

//! Supervision for the actors whose state can be rebuilt: [`Behavior`] is their state and logic, [`Mailbox`]
//! their bounded queue.
//!
//! A sender puts its message into the queue, behind a lock, and wakes the actor only if the actor would not
//! look by itself. So a message is never lost with the sender's task, and can be sent from a destructor.
//! When the actor panics, it is replaced by a new one that [`Behavior`]'s builder makes; the queue stays. Only
//! the message that caused the panic is gone: its asker asks once more.
//!
//! The number of questions is bounded by the capacity. Notices (settlements, releases) are bounded by what was
//! granted before, so they are never refused.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix::dev::channel;
use actix::prelude::*;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::runtime_task::run_as_task;
use crate::telemetry::{Component, QueueGuard, ServerMetrics};

/// Capacity of the actix mailbox: it carries wake-ups only, and one pending wake-up is enough.
const WAKE_CAPACITY: usize = 1;

/// How many messages an actor handles before it lets others of its thread run.
const BATCH: usize = 64;

/// How often a question is asked whose actor panicked.
const MAX_ASKS: u32 = 2;

/// The delay before a restart doubles with each restart without a handled message in between.
const RESTART_DELAY: Duration = Duration::from_millis(10);
const MAX_RESTART_DOUBLINGS: u32 = 9;

/// The state and logic of a supervised actor.
pub(crate) trait Behavior: Send + Unpin + 'static {
    /// What handles send.
    type Message: Send + 'static;

    /// Handles one message.
    fn handle(&mut self, message: Self::Message);

    /// Work that has to end before the next message is handled, such as a read from the store. Its result is
    /// handled as a message.
    fn blocking_work(&mut self) -> Option<BoxFuture<'static, Self::Message>> {
        None
    }

    /// When [`Behavior::on_timer`] is due. Asked whenever the queue is empty.
    fn timer(&self) -> Option<tokio::time::Instant> {
        None
    }

    /// Called when the timer is due.
    fn on_timer(&mut self) {}
}

/// Why a question got no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MailboxError {
    /// As many questions as the capacity are queued.
    Full,
    /// The actor panicked each time it handled the question.
    Failed,
    /// The actor has stopped with its engine.
    Stopped,
}

/// The queue of a supervised actor; clones share it.
pub(crate) struct Mailbox<B: Behavior>(Arc<MailboxShared<B>>);

struct MailboxShared<B: Behavior> {
    component: Component,
    capacity: usize,
    /// How many notices wake a sleeping actor; fewer wait for the next question.
    lazy_notices: usize,
    queue: Mutex<MailboxState<B>>,
    arbiter: ArbiterHandle,
    /// Makes the state of a new actor: `true` for the first one, `false` after a panic.
    build: Box<dyn Fn(bool) -> B + Send + Sync>,
    metrics: ServerMetrics,
    /// Restarts since a message was handled.
    restarts_in_a_row: AtomicU32,
}

struct MailboxState<B: Behavior> {
    items: VecDeque<QueuedMessage<B::Message>>,
    /// How many of them are questions.
    questions: usize,
    actor: Option<Addr<SupervisedActor<B>>>,
    /// Whether the actor handles messages or was told to.
    awake: bool,
    closed: bool,
}

struct QueuedMessage<M> {
    message: M,
    /// For a question: when it was asked, and its place in the queue's depth.
    asked: Option<(Instant, QueueGuard)>,
}

/// How a supervised actor is started.
pub(crate) struct SupervisionOptions {
    /// Its name in metrics.
    pub(crate) component: Component,
    /// Maximum number of queued questions.
    pub(crate) capacity: usize,
    /// How many queued notices wake the actor.
    pub(crate) lazy_notices: usize,
    /// The thread that it runs on.
    pub(crate) arbiter: ArbiterHandle,
    /// Records depth, waiting times and restarts.
    pub(crate) metrics: ServerMetrics,
}

impl<B: Behavior> Clone for Mailbox<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Behavior> Mailbox<B> {
    /// Starts an actor. `build` makes its state, with `true` for the first actor and `false` after a panic.
    pub(crate) fn start(
        options: SupervisionOptions,
        build: impl Fn(bool) -> B + Send + Sync + 'static,
    ) -> Self {
        let queue =
            MailboxState { items: VecDeque::new(), questions: 0, actor: None, awake: true, closed: false };
        let mailbox = Self(Arc::new(MailboxShared {
            component: options.component,
            capacity: options.capacity,
            lazy_notices: options.lazy_notices.max(1),
            queue: Mutex::new(queue),
            arbiter: options.arbiter,
            build: Box::new(build),
            metrics: options.metrics,
            restarts_in_a_row: AtomicU32::new(0),
        }));
        mailbox.launch(true);
        mailbox
    }

    /// Asks a question and waits for its reply. It is asked again if the actor panics with it.
    ///
    /// # Errors
    /// See [`MailboxError`].
    pub(crate) async fn ask<R: Send>(
        &self,
        message: impl Fn(oneshot::Sender<R>) -> B::Message,
    ) -> Result<R, MailboxError> {
        for _ in 0..MAX_ASKS {
            let (reply, answer) = oneshot::channel();
            self.push(message(reply), true)?;
            if let Ok(answer) = answer.await {
                return Ok(answer);
            }
        }
        Err(if self.lock().closed { MailboxError::Stopped } else { MailboxError::Failed })
    }

    /// Queues a one-way message. It is dropped only if the actor has stopped with its engine.
    pub(crate) fn notify(&self, message: B::Message) {
        // A notice is refused only by a stopped actor, whose state nobody needs any more.
        let _ = self.push(message, false);
    }

    /// Drops queued messages that a newly built state already reflects.
    pub(crate) fn retain(&self, mut keep: impl FnMut(&B::Message) -> bool) {
        let mut queue = self.lock();
        queue.items.retain(|item| keep(&item.message));
        queue.questions = queue.items.iter().filter(|item| item.asked.is_some()).count();
    }

    /// Refuses further messages and drops the queued ones, which ends their askers' waiting.
    pub(crate) fn stop(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        queue.questions = 0;
        let items = std::mem::take(&mut queue.items);
        let actor = queue.actor.take();
        // Outside the lock: dropping a message can send another one.
        drop(queue);
        drop(items);
        drop(actor);
    }

    fn push(&self, message: B::Message, is_question: bool) -> Result<(), MailboxError> {
        let shared = &*self.0;
        let asked = is_question.then(|| (Instant::now(), shared.metrics.enqueue(shared.component)));
        let mut queue = self.lock();
        if queue.closed {
            return Err(MailboxError::Stopped);
        }
        if is_question && queue.questions >= shared.capacity {
            drop(queue);
            shared.metrics.shed(shared.component);
            return Err(MailboxError::Full);
        }
        queue.questions += usize::from(is_question);
        queue.items.push_back(QueuedMessage { message, asked });
        let wakes = is_question || queue.items.len() >= shared.lazy_notices;
        if wakes && !queue.awake {
            queue.awake = true;
            if let Some(actor) = &queue.actor {
                // A full mailbox has a wake-up already; a dead actor's successor looks by itself.
                let _ = actor.try_send(WakeUp);
            }
        }
        Ok(())
    }

    /// The next message. Without one the actor sleeps until it is woken.
    fn pop(&self) -> Option<QueuedMessage<B::Message>> {
        let mut queue = self.lock();
        let next = queue.items.pop_front();
        match &next {
            Some(item) => queue.questions -= usize::from(item.asked.is_some()),
            None => queue.awake = false,
        }
        next
    }

    /// Starts a new actor over the queue.
    fn launch(&self, is_first: bool) {
        let shared = &*self.0;
        let (sender, receiver) = channel::channel(WAKE_CAPACITY);
        {
            let mut queue = self.lock();
            if queue.closed {
                return;
            }
            queue.awake = true;
            queue.actor = Some(Addr::new(sender));
        }
        let delay = if is_first { Duration::ZERO } else { self.restart_delay() };
        let mut successor = Successor { mailbox: self.clone(), has_begun: false };
        let started = shared.arbiter.spawn_fn(move || {
            actix::spawn(async move {
                successor.has_begun = true;
                if !delay.is_zero() {
                    tokio::time::sleep(delay).await;
                }
                let mailbox = successor.mailbox.clone();
                let behavior = (mailbox.0.build)(is_first);
                let actor = SupervisedActor {
                    behavior,
                    mailbox,
                    is_waiting: false,
                    timer: None,
                    _successor: successor,
                };
                Context::with_receiver(receiver).into_future(actor).await;
            });
        });
        if !started {
            self.stop();
        }
    }

    fn restart_delay(&self) -> Duration {
        let restarts = self.0.restarts_in_a_row.fetch_add(1, Relaxed);
        if restarts == 0 {
            return Duration::ZERO;
        }
        RESTART_DELAY * 2_u32.pow(restarts.min(MAX_RESTART_DOUBLINGS))
    }

    fn lock(&self) -> MutexGuard<'_, MailboxState<B>> {
        // No critical section panics between two changes, so a poisoned queue is consistent.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Behavior> std::fmt::Debug for Mailbox<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox").field("component", &self.0.component).finish_non_exhaustive()
    }
}

/// Starts the next actor when dropped: its actor, or the task that was starting it, has ended.
struct Successor<B: Behavior> {
    mailbox: Mailbox<B>,
    /// Whether the task has run at all. One that has not was dropped with its thread.
    has_begun: bool,
}

impl<B: Behavior> Drop for Successor<B> {
    fn drop(&mut self) {
        let mailbox = &self.mailbox;
        if !self.has_begun {
            mailbox.stop();
        }
        if mailbox.lock().closed {
            return;
        }
        let component = mailbox.0.component;
        tracing::error!(actor = component.name(), "the actor has ended and is restarted");
        mailbox.0.metrics.record_restart(component);
        mailbox.launch(false);
    }
}

/// Tells the actor that its queue has work.
#[derive(Message)]
#[rtype(result = "()")]
struct WakeUp;

/// The actor around a [`Behavior`].
struct SupervisedActor<B: Behavior> {
    behavior: B,
    mailbox: Mailbox<B>,
    /// Whether [`Behavior::blocking_work`] is in progress.
    is_waiting: bool,
    timer: Option<(tokio::time::Instant, SpawnHandle)>,
    _successor: Successor<B>,
}

impl<B: Behavior> SupervisedActor<B> {
    fn process(&mut self, ctx: &mut Context<Self>) {
        for _ in 0..BATCH {
            if self.is_waiting {
                return;
            }
            if let Some(work) = self.behavior.blocking_work() {
                self.is_waiting = true;
                ctx.spawn(run_as_task(work).into_actor(self).map(|message, actor, ctx| {
                    actor.is_waiting = false;
                    actor.behavior.handle(message);
                    actor.process(ctx);
                }));
                return;
            }
            let Some(QueuedMessage { message, asked }) = self.mailbox.pop() else {
                self.set_timer(ctx);
                return;
            };
            let shared = &*self.mailbox.0;
            if let Some((since, _guard)) = asked {
                shared.metrics.record_wait(shared.component, since.elapsed());
            }
            self.behavior.handle(message);
            self.mailbox.0.restarts_in_a_row.store(0, Relaxed);
        }
        ctx.notify(WakeUp);
    }

    fn set_timer(&mut self, ctx: &mut Context<Self>) {
        let due = self.behavior.timer();
        if due == self.timer.map(|(at, _)| at) {
            return;
        }
        if let Some((_, timer)) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        self.timer = due.map(|at| {
            let delay = at.saturating_duration_since(tokio::time::Instant::now());
            let timer = ctx.run_later(delay, |actor, ctx| {
                actor.timer = None;
                actor.behavior.on_timer();
                actor.process(ctx);
            });
            (at, timer)
        });
    }
}

impl<B: Behavior> Actor for SupervisedActor<B> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.process(ctx);
    }
}

impl<B: Behavior> Handler<WakeUp> for SupervisedActor<B> {
    type Result = ();

    fn handle(&mut self, _: WakeUp, ctx: &mut Context<Self>) {
        self.process(ctx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds numbers; panics when told to.
    struct Adder(u64);

    enum AdderMessage {
        Add(u64),
        Sum(oneshot::Sender<u64>),
        Panic(oneshot::Sender<u64>),
    }

    impl Behavior for Adder {
        type Message = AdderMessage;

        fn handle(&mut self, message: AdderMessage) {
            match message {
                AdderMessage::Add(number) => self.0 += number,
                AdderMessage::Sum(reply) => drop(reply.send(self.0)),
                AdderMessage::Panic(_) => panic!("told to"),
            }
        }
    }

    fn start(capacity: usize) -> Mailbox<Adder> {
        let options = SupervisionOptions {
            component: Component::Kpis,
            capacity,
            lazy_notices: 8,
            arbiter: Arbiter::current(),
            metrics: ServerMetrics::default(),
        };
        Mailbox::start(options, |is_first| Adder(if is_first { 0 } else { 1_000 }))
    }

    #[actix::test]
    async fn messages_are_handled_in_order() {
        let mailbox = start(8);
        for number in 0..100 {
            mailbox.notify(AdderMessage::Add(number));
        }
        assert_eq!(mailbox.ask(AdderMessage::Sum).await, Ok(4_950));
    }

    #[actix::test]
    async fn panic_restarts_actor_and_keeps_queue() {
        let mailbox = start(8);
        let panicking = mailbox.ask(AdderMessage::Panic);
        let sum = async {
            mailbox.notify(AdderMessage::Add(7));
            mailbox.ask(AdderMessage::Sum).await
        };
        let (panicked, sum) = tokio::join!(panicking, sum);
        assert_eq!(panicked, Err(MailboxError::Failed));
        assert_eq!(sum, Ok(1_007));
        assert_eq!(mailbox.ask(AdderMessage::Sum).await, Ok(1_000));
        assert_eq!(mailbox.0.metrics.restarts(Component::Kpis), 2);
    }

    #[actix::test]
    async fn full_mailbox_refuses_questions_but_no_notices() {
        let mailbox = start(1);
        let (first, second) = tokio::join!(mailbox.ask(AdderMessage::Sum), mailbox.ask(AdderMessage::Sum));
        assert_eq!((first, second), (Ok(0), Err(MailboxError::Full)));
        for _ in 0..3 {
            mailbox.notify(AdderMessage::Add(1));
        }
        assert_eq!(mailbox.ask(AdderMessage::Sum).await, Ok(3));
    }

    #[actix::test]
    async fn stopped_mailbox_ends_waiting_askers() {
        let mailbox = start(8);
        let asked = mailbox.ask(AdderMessage::Sum);
        mailbox.stop();
        assert_eq!(asked.await, Err(MailboxError::Stopped));
    }
}

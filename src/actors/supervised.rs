//! Supervision for the actors whose state can be rebuilt: [`Behavior`] is their state and logic, [`Mailbox`]
//! their bounded queue.
//!
//! The actor is a task of the runtime on which its askers run, so a question costs no change of threads. A
//! sender puts its message into the queue, behind a lock, and wakes the actor only if the actor would not
//! look by itself. So a message is never lost with the sender's task, and can be sent from a destructor.
//! When the actor panics, it is replaced by a new one that [`Behavior`]'s builder makes; the queue stays. Only
//! the message that caused the panic is gone: its asker asks once more.
//!
//! The number of questions is bounded by the capacity. Notices (settlements, releases) are bounded by what was
//! granted before, so they are never refused.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::runtime;
use tokio::sync::{Notify, oneshot};

use crate::llm::GuardUnavailable;
use crate::mutex::lock;
use crate::telemetry::{Component, QueueGuard, ServerMetrics};

/// How many messages an actor handles before it lets other tasks of its thread run.
const BATCH: usize = 64;

/// How often a question is asked that makes its actor panic.
const MAX_ASKS: u32 = 2;

/// How often a question is asked whose actor panicked for other reasons. Callers give up at their deadline.
const MAX_REPEATS: u32 = 100;

/// How many questions that caused a panic are remembered until their askers have heard.
const MAX_CULPRITS: usize = 64;

/// The delay before a restart doubles with each restart without a handled message in between.
const RESTART_DELAY: Duration = Duration::from_millis(10);
const MAX_RESTART_DOUBLINGS: u32 = 9;

/// Maximum number of questions that are queued for a guard of the gateway.
pub(crate) const GUARD_CAPACITY: usize = 65_536;

/// How many notices wake a guard of the gateway while no question waits; fewer wait for the next question.
const GUARD_LAZY_NOTICES: usize = 64;

/// The state and logic of a supervised actor.
pub(crate) trait Behavior: Send + 'static {
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

    /// Whether a notice must be handled at once, because a caller waits for what it returns. Asked whenever the
    /// queue is empty.
    fn awaits_notices(&self) -> bool {
        false
    }
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
    wake: Notify,
    runtime: OnceLock<runtime::Handle>,
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
    /// The id of the last question.
    last_question: u64,
    /// The question that is being handled.
    handling: Option<u64>,
    /// Questions that made an actor panic.
    culprits: VecDeque<u64>,
    /// Whether the actor handles messages or has been woken.
    awake: bool,
    /// Whether the next notice wakes it.
    awaits_notices: bool,
    closed: bool,
}

struct QueuedMessage<M> {
    message: M,
    /// For a question.
    asked: Option<AskedQuestion>,
}

/// What the queue knows of a question.
struct AskedQuestion {
    id: u64,
    since: Instant,
    /// Its place in the queue's depth.
    _depth: QueueGuard,
}

/// The options of a supervised actor's queue.
pub(crate) struct SupervisionOptions {
    /// Its name in metrics.
    pub(crate) component: Component,
    /// Maximum number of queued questions.
    pub(crate) capacity: usize,
    /// How many queued notices wake the actor.
    pub(crate) lazy_notices: usize,
    /// Records depth, waiting times and restarts.
    pub(crate) metrics: ServerMetrics,
}

impl SupervisionOptions {
    /// The queue of a guard of the gateway.
    pub(crate) fn of_guard(component: Component, metrics: ServerMetrics) -> Self {
        Self { component, capacity: GUARD_CAPACITY, lazy_notices: GUARD_LAZY_NOTICES, metrics }
    }
}

impl MailboxError {
    /// The error of a guard of the gateway with this name.
    pub(crate) fn of_guard(self, guard: &'static str) -> GuardUnavailable {
        GuardUnavailable { guard, reason: self.to_string() }
    }
}

impl std::fmt::Display for MailboxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MailboxError::Full => "has too many requests waiting; try again later",
            MailboxError::Failed => "failed repeatedly; see the server's log",
            MailboxError::Stopped => "has stopped with its engine",
        })
    }
}

impl<B: Behavior> Clone for Mailbox<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Behavior> Mailbox<B> {
    /// A queue whose actor is not started yet: messages wait. `build` makes the state of an actor, with `true`
    /// for the first one and `false` after a panic.
    pub(crate) fn new(
        options: SupervisionOptions,
        build: impl Fn(bool) -> B + Send + Sync + 'static,
    ) -> Self {
        let queue = MailboxState {
            items: VecDeque::new(),
            questions: 0,
            last_question: 0,
            handling: None,
            culprits: VecDeque::new(),
            awake: true,
            awaits_notices: false,
            closed: false,
        };
        Self(Arc::new(MailboxShared {
            component: options.component,
            capacity: options.capacity,
            lazy_notices: options.lazy_notices.max(1),
            queue: Mutex::new(queue),
            wake: Notify::new(),
            runtime: OnceLock::new(),
            build: Box::new(build),
            metrics: options.metrics,
            restarts_in_a_row: AtomicU32::new(0),
        }))
    }

    /// Starts the actor on a runtime, once.
    pub(crate) fn start(&self, runtime: runtime::Handle) {
        if self.0.runtime.set(runtime).is_ok() {
            self.launch(true);
        }
    }

    /// Asks a question and waits for its reply. It is asked again if the actor panics with it.
    ///
    /// # Errors
    /// See [`MailboxError`].
    pub(crate) async fn ask<R: Send>(
        &self,
        message: impl Fn(oneshot::Sender<R>) -> B::Message,
    ) -> Result<R, MailboxError> {
        let mut faults = 0;
        for _ in 0..MAX_REPEATS {
            let (reply, answer) = oneshot::channel();
            let id = self.push(message(reply), true)?;
            if let Ok(answer) = answer.await {
                return Ok(answer);
            }
            faults += u32::from(self.has_caused_panic(id));
            if faults >= MAX_ASKS {
                break;
            }
        }
        Err(if self.lock().closed { MailboxError::Stopped } else { MailboxError::Failed })
    }

    /// Whether the actor panicked, or is panicking, with this question.
    fn has_caused_panic(&self, id: u64) -> bool {
        let mut queue = self.lock();
        let before = queue.culprits.len();
        queue.culprits.retain(|culprit| *culprit != id);
        queue.handling == Some(id) || queue.culprits.len() < before
    }

    /// Queues a one-way message. It is dropped only if the actor has stopped with its engine.
    pub(crate) fn notify(&self, message: B::Message) {
        // A notice is refused only by a stopped actor, whose state is not needed any more.
        let _ = self.push(message, false);
    }

    /// Has the actor handle what is queued, notices included.
    pub(crate) fn wake(&self) {
        let mut queue = self.lock();
        let was_awake = std::mem::replace(&mut queue.awake, true);
        drop(queue);
        if !was_awake {
            self.0.wake.notify_one();
        }
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
        // Outside the lock: dropping a message can send another one.
        drop(queue);
        drop(items);
        self.0.wake.notify_one();
    }

    fn push(&self, message: B::Message, is_question: bool) -> Result<u64, MailboxError> {
        let shared = &*self.0;
        let depth = is_question.then(|| (Instant::now(), shared.metrics.enqueue(shared.component)));
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
        queue.last_question += u64::from(is_question);
        let id = queue.last_question;
        let asked = depth.map(|(since, depth)| AskedQuestion { id, since, _depth: depth });
        queue.items.push_back(QueuedMessage { message, asked });
        let wakes = is_question || queue.awaits_notices || queue.items.len() >= shared.lazy_notices;
        let is_asleep = wakes && !queue.awake;
        queue.awake |= wakes;
        drop(queue);
        if is_asleep {
            shared.wake.notify_one();
        }
        Ok(id)
    }

    /// The next message. Without one the actor sleeps until it is woken.
    fn pop(&self, behavior: &B) -> Option<QueuedMessage<B::Message>> {
        let mut queue = self.lock();
        let next = queue.items.pop_front();
        queue.handling = next.as_ref().and_then(|item| item.asked.as_ref()).map(|asked| asked.id);
        match &next {
            Some(item) => queue.questions -= usize::from(item.asked.is_some()),
            None => {
                queue.awake = false;
                queue.awaits_notices = behavior.awaits_notices();
            }
        }
        next
    }

    /// Starts a new actor over the queue.
    fn launch(&self, is_first: bool) {
        {
            let mut queue = self.lock();
            if queue.closed {
                return;
            }
            queue.awake = true;
        }
        let delay = if is_first { Duration::ZERO } else { self.restart_delay() };
        let mut successor = Successor { mailbox: self.clone(), has_begun: false };
        let Some(runtime) = self.0.runtime.get() else { return };
        runtime.spawn(async move {
            successor.has_begun = true;
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let mailbox = &successor.mailbox;
            mailbox.process((mailbox.0.build)(is_first)).await;
        });
    }

    /// Handles messages until the queue is closed.
    async fn process(&self, mut behavior: B) {
        loop {
            for _ in 0..BATCH {
                if let Some(work) = behavior.blocking_work() {
                    if !self.begins_blocking_work() {
                        return;
                    }
                    let message = work.await;
                    behavior.handle(message);
                    continue;
                }
                let Some(QueuedMessage { message, asked }) = self.pop(&behavior) else {
                    if self.lock().closed {
                        return;
                    }
                    self.sleep(&mut behavior).await;
                    continue;
                };
                if let Some(asked) = asked {
                    self.0.metrics.record_wait(self.0.component, asked.since.elapsed());
                }
                behavior.handle(message);
                self.0.restarts_in_a_row.store(0, Relaxed);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Notes that no question is being handled, so that a panic is not blamed on the last one. Returns whether
    /// the queue is still open.
    fn begins_blocking_work(&self) -> bool {
        let mut queue = self.lock();
        queue.handling = None;
        !queue.closed
    }

    /// Waits until the actor is woken or its timer is due.
    async fn sleep(&self, behavior: &mut B) {
        let woken = self.0.wake.notified();
        let Some(due) = behavior.timer() else { return woken.await };
        tokio::select! {
            biased;
            () = woken => {}
            () = tokio::time::sleep_until(due) => behavior.on_timer(),
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
        lock(&self.0.queue)
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
        {
            let mut queue = mailbox.lock();
            if queue.closed {
                return;
            }
            if let Some(culprit) = queue.handling.take() {
                if queue.culprits.len() >= MAX_CULPRITS {
                    queue.culprits.pop_front();
                }
                queue.culprits.push_back(culprit);
            }
        }
        let component = mailbox.0.component;
        tracing::error!(actor = component.name(), "the actor has ended and is restarted");
        mailbox.0.metrics.record_restart(component);
        mailbox.launch(false);
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
        #[expect(dead_code, reason = "dropped with the message")]
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
            metrics: ServerMetrics::default(),
        };
        let mailbox = Mailbox::new(options, |is_first| Adder(if is_first { 0 } else { 1_000 }));
        mailbox.start(runtime::Handle::current());
        mailbox
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

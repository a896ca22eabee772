//! Executions of programs: they start here and end in the driver's loop.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::{Driver, EndedExecution};
use crate::planner;
use crate::program::{Interpreter, Program, Stop, Unavailable};
use crate::run::{Action, Fault};

/// The delays before an execution is tried again where no worker was free.
const BUSY_DELAYS_MS: [u64; 5] = [100, 400, 1_600, 5_000, 10_000];

impl Driver {
    /// Starts to execute the program of a step as it is now.
    pub(super) fn start_execution(&mut self, step: u32) {
        let interpreter = self.shared.replaced.interpreter.clone();
        let limits = interpreter.as_ref().map(|interpreter| interpreter.limits()).unwrap_or_default();
        let program = planner::program(&self.state, &self.shared.catalogue, step, limits);
        self.executing.insert(step);
        self.executions.push(Box::pin(async move {
            let stop = match (program, interpreter) {
                (Err(fault), _) => Ok(Stop::Fault(fault)),
                (Ok(program), Some(interpreter)) => execute(interpreter, program).await,
                (Ok(_), None) => Err(unavailable(
                    "there is no sandbox for programs: use a build with the feature `sandbox`, or give the engine an \
                     interpreter",
                )),
            };
            (step, stop)
        }));
    }

    /// Records where a program stopped, if that is still of interest: its run may have been stopped meanwhile.
    pub(super) async fn record_execution(&mut self, (step, stop): EndedExecution) -> Result<(), Fault> {
        self.executing.remove(&step);
        if !self.state.next().contains(&Action::Execute { step }) {
            return Ok(());
        }
        let event = planner::program_replied(&self.state, &self.shared.catalogue, step, stop);
        self.record(event).await
    }
}

async fn execute(interpreter: Arc<dyn Interpreter>, program: Program) -> Result<Stop, Unavailable> {
    let mut delays = BUSY_DELAYS_MS.into_iter();
    loop {
        let executed = AssertUnwindSafe(interpreter.execute(&program)).catch_unwind().await;
        let stop = executed.unwrap_or_else(|_| Err(unavailable("the interpreter panicked")));
        let is_busy = matches!(&stop, Err(error) if error.code == "sandbox.busy");
        match delays.next().filter(|_| is_busy) {
            Some(delay) => tokio::time::sleep(Duration::from_millis(delay)).await,
            None => return stop,
        }
    }
}

fn unavailable(message: &str) -> Unavailable {
    Unavailable { code: "sandbox.unavailable", message: message.to_owned() }
}

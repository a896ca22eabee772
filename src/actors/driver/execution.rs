//! Executions of programs: they start here and end in the driver's loop.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;

use super::perform::elapsed_millis;
use super::{Driver, EndedExecution};
use crate::planner;
use crate::program::{ExecutedProgram, Interpreter, Program, ProgramLimits, Stop, Unavailable};
use crate::run::{Action, Fault};

/// The delays before an execution is tried again where no worker was free.
const BUSY_DELAYS_MS: [u64; 5] = [100, 400, 1_600, 5_000, 10_000];

impl Driver {
    /// Starts to execute the program of a step as it is now.
    pub(super) fn start_execution(&mut self, step: u32) {
        let interpreter = self.shared.replaced.interpreter.clone();
        let limits = interpreter.as_ref().map(|interpreter| interpreter.limits()).unwrap_or_default();
        let program = planner::program(&self.state, &self.shared.catalogue, step, limits);
        let tenant = self.principal.tenant.clone();
        self.executions.start(step, async move {
            let (stop, millis) = match (program, interpreter) {
                (Err(fault), _) => (Ok(Stop::Fault(fault)), 0),
                (Ok(program), Some(interpreter)) => {
                    execute(interpreter, tenant.as_str(), program, limits).await
                }
                (Ok(_), None) => {
                    let what = "there is no sandbox for programs: use a build with the feature `sandbox`, or give the \
                                engine an interpreter";
                    (Err(unavailable(what)), 0)
                }
            };
            (step, stop, millis)
        });
    }

    /// Records where a program stopped, if that is still of interest: its run may have been stopped meanwhile.
    pub(super) async fn record_execution(
        &mut self,
        (step, stop, millis): EndedExecution,
    ) -> Result<(), Fault> {
        if !self.state.next().contains(&Action::Execute { step }) {
            return Ok(());
        }
        let event = planner::program_replied(&self.state, &self.shared.catalogue, step, stop, millis);
        self.record(event).await
    }
}

/// Where a program stopped, and the milliseconds that this took.
async fn execute(
    interpreter: Arc<dyn Interpreter>,
    tenant: &str,
    program: Program,
    limits: ProgramLimits,
) -> (Result<Stop, Unavailable>, u64) {
    let mut delays = BUSY_DELAYS_MS.into_iter();
    loop {
        let begun = Instant::now();
        let executed = AssertUnwindSafe(interpreter.execute_for(tenant, &program)).catch_unwind().await;
        let ended = executed.unwrap_or_else(|_| Err(unavailable("the interpreter panicked")));
        let is_busy = matches!(&ended, Err(error) if error.code == "sandbox.busy");
        if let Some(delay) = delays.next().filter(|_| is_busy) {
            tokio::time::sleep(Duration::from_millis(delay)).await;
            continue;
        }
        return match ended {
            Ok(ExecutedProgram { stop, millis }) => {
                let millis = millis.unwrap_or_else(|| elapsed_millis(begun));
                (Ok(planner::within_total_time(stop, program.limits, limits)), millis)
            }
            Err(error) => (Err(error), 0),
        };
    }
}

fn unavailable(message: &str) -> Unavailable {
    Unavailable { code: "sandbox.unavailable", message: message.to_owned() }
}

//! Locks that can be used after a panic.
//!
//! **Rule:** what is guarded by a lock is changed in one step, or nothing between two steps can panic. So what
//! a poisoned lock guards is consistent, and one panic does not stop everything that shares the lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, even if a thread panicked while it held the lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_is_usable_after_a_panic_of_its_holder() {
        let mutex = Mutex::new(1);
        std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _guard = mutex.lock().unwrap();
                panic!("the holder panics");
            });
            assert!(holder.join().is_err());
        });
        assert!(mutex.is_poisoned());
        *lock(&mutex) += 1;
        assert_eq!(*lock(&mutex), 2);
    }
}

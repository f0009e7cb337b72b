//! A thread that does tasks one after the other, and that is waited for.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// A thread that gets tasks, and leaves something when it ends: after the last task, or earlier by itself.
#[derive(Debug)]
pub struct WorkerThread<Task, Ended> {
    /// `None` while the thread ends.
    tasks: Option<SyncSender<Task>>,
    thread: Option<JoinHandle<Ended>>,
}

impl<Task: Send + 'static, Ended: Send + 'static> WorkerThread<Task, Ended> {
    /// Starts a thread that does `work`, for which so many tasks wait at most. `None` if the system has no thread.
    pub fn start(
        name: &str,
        max_waiting_tasks: usize,
        work: impl FnOnce(Receiver<Task>) -> Ended + Send + 'static,
    ) -> Option<Self> {
        let (tasks, received) = sync_channel(max_waiting_tasks);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(|| work(received)).ok()?;
        Some(WorkerThread { tasks: Some(tasks), thread: Some(thread) })
    }

    /// Waits until there is room for a task.
    ///
    /// # Errors
    /// The task, if the thread has ended.
    pub fn send(&self, task: Task) -> Result<(), Task> {
        match &self.tasks {
            Some(tasks) => tasks.send(task).map_err(|refused| refused.0),
            None => Err(task),
        }
    }

    /// Waits until all tasks are done, or the thread has ended by itself. A panic in the thread is one of the caller.
    pub fn join(mut self) -> Ended {
        self.tasks = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("a thread is joined once"),
        }
    }
}

impl<Task, Ended> Drop for WorkerThread<Task, Ended> {
    /// Waits until all tasks are done.
    fn drop(&mut self) {
        self.tasks = None;
        // If it has panicked, it does nothing more.
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tasks_are_done_before_the_thread_is_joined() {
        let sum = WorkerThread::start("sum", 1, |tasks| tasks.into_iter().sum::<u64>()).unwrap();
        (1..=100).try_for_each(|task| sum.send(task)).unwrap();
        assert_eq!(sum.join(), 5050);
    }

    #[test]
    fn a_thread_that_has_ended_gives_tasks_back() {
        let first = WorkerThread::start("first", 0, |tasks: Receiver<u64>| tasks.recv().ok()).unwrap();
        first.send(7).unwrap();
        assert_eq!((2..).find_map(|task| first.send(task).err()), Some(2));
        assert_eq!(first.join(), Some(7));
    }

    #[test]
    #[should_panic(expected = "of the thread")]
    fn a_panic_is_one_of_who_joins() {
        let thread = WorkerThread::start("panics", 1, |tasks: Receiver<()>| {
            let _task = tasks.recv();
            panic!("of the thread");
        });
        let _never: () = thread.unwrap().join();
    }
}

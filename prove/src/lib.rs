//! What the model checker explores: [`Lab`] records h5live's writer at work, and [`Follower`] is h5live's reader, which
//! knows what it may see.

mod follower;
mod lab;
pub mod workloads;

pub use follower::{Follower, Look};
pub use lab::{Lab, Series, Workload};

//! `h5live stress`: a writer and readers in processes of their own, every value checked against a rule.

mod latency;
mod message;
mod report;
mod rule;

//! `h5live demo`: this machine's own metrics in a live file, followed by two other processes.

mod machine;

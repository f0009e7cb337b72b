//! Servers for tests, on the loopback of this machine: an S3 server, a web server, and a proxy that fails.

mod faulty_proxy;
mod file_server;
mod s3_server;

pub use faulty_proxy::{FaultyProxy, ProxyFaults};
pub use file_server::FileServer;
pub use s3_server::{S3Server, has_aws_env_credentials};

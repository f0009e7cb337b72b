//! A proxy that has each answer of a server come later: `slow_proxy 127.0.0.1:9000 50`. It says its URL, and for each line that
//! it reads, how many requests there were. It ends at the end of its input.

use std::io::BufRead;
use std::time::Duration;

use h5live_objects::testing::{FaultyProxy, ProxyFaults};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("slow_proxy ADDRESS MILLISECONDS");
    let (server, latency) = (next()?.parse()?, Duration::from_millis(next()?.parse()?));
    let proxy = FaultyProxy::start(server, ProxyFaults { latency, ..ProxyFaults::default() })?;
    println!("{}", proxy.endpoint());
    for line in std::io::stdin().lock().lines() {
        line?;
        println!("{}", proxy.requests());
    }
    Ok(())
}

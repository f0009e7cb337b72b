//! A proxy that has each answer of a server come later: `slow_proxy 127.0.0.1:9000 50`. It says its URL, and for each line that
//! it reads, how many requests there were, and the waves of ranges of bytes that were asked for since the line before: what was
//! asked for before the first answer of a wave can have come is in that wave. It ends at the end of its input.

use std::io::BufRead;
use std::time::{Duration, Instant};

use h5live_objects::testing::{FaultyProxy, ProxyFaults};

/// The ranges of a wave are divided by `,`, the waves by `/`.
fn waves(ranges: Vec<(Instant, String)>, latency: Duration) -> String {
    let (mut waves, mut begin) = (String::new(), None);
    for (at, range) in ranges {
        match begin {
            None => begin = Some(at),
            Some(first) if at < first + latency => waves.push(','),
            Some(_) => {
                waves.push('/');
                begin = Some(at);
            }
        }
        waves.push_str(range.trim_start_matches("bytes="));
    }
    waves
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("slow_proxy ADDRESS MILLISECONDS");
    let (server, latency) = (next()?.parse()?, Duration::from_millis(next()?.parse()?));
    let proxy = FaultyProxy::start(server, ProxyFaults { latency, ..ProxyFaults::default() })?;
    println!("{}", proxy.endpoint());
    for line in std::io::stdin().lock().lines() {
        line?;
        println!("{} {}", proxy.request_count(), waves(proxy.take_range_headers(), latency));
    }
    Ok(())
}

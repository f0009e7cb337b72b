//! Reads samples of a training set in a random order, in several ways, and says how many a second.
//!
//! `cargo run --release -p h5live-archive --example random_samples -- images.h5 [copy|view|name|epoch|calls] [times]`
#![allow(unsafe_code, reason = "nobody changes the file while it is viewed")]

use std::time::Instant;

use h5live::File;
use h5live::archive::{Archive, Permutation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("which file?")?;
    let way = arguments.get(1).map_or("copy", String::as_str);
    let times: u64 = arguments.get(2).map_or(Ok(1), |times| times.parse())?;
    let options = File::options();
    let file = if way == "calls" { options.use_mmap(false) } else { options }.open(path.as_str())?;
    let archive = Archive::open(&file)?;
    let (mut samples, mut bytes, mut sum) = (0u64, 0u64, 0u64);
    let names: Vec<Vec<u8>> = match way {
        "name" => (0..archive.len()).map(|sample| archive.name(sample)).collect::<Result<_, _>>()?,
        _ => Vec::new(),
    };
    let start = Instant::now();
    let mut buffer = Vec::new();
    for epoch in 0..times {
        if way == "epoch" {
            for sample in archive.samples().shuffled(1).epoch(epoch).prefetch(2, 64 << 20)? {
                let (_, contents) = sample?;
                (samples, bytes) = (samples + 1, bytes + contents.len() as u64);
            }
            continue;
        }
        let order = Permutation::new(archive.len(), Permutation::epoch_key(1, epoch));
        for position in 0..archive.len() {
            let sample = order.at(position);
            samples += 1;
            match way {
                "view" => {
                    let Some(view) = archive.view(sample)? else { continue };
                    // SAFETY: nobody changes the file.
                    let contents = unsafe { view.as_slice() };
                    sum += u64::from(contents.first().copied().unwrap_or(0));
                    bytes += contents.len() as u64;
                }
                "name" => {
                    let found = archive.find_sample(&names[sample as usize])?.ok_or("a name leads nowhere")?;
                    archive.read_into(found, &mut buffer)?;
                    bytes += buffer.len() as u64;
                }
                _ => {
                    archive.read_into(sample, &mut buffer)?;
                    bytes += buffer.len() as u64;
                }
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = samples as f64 / seconds;
    println!(
        "{way}: {samples} samples, {bytes} bytes in {seconds:.3} s, {rate:.0} a second, pieces {:?} ({sum})",
        archive.mapped_piece_count()
    );
    Ok(())
}

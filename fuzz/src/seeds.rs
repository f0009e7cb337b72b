//! Writes sound structures to `corpus/TARGET` beside this package's manifest, from which the fuzzer starts.

use std::fs;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let seeds = h5live_format::fuzz::seeds();
    for (i, seed) in seeds.iter().enumerate() {
        let folder = corpus.join(seed.target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("seed-{i:03}")), &seed.data)?;
    }
    println!("{} seeds in {}", seeds.len(), corpus.display());
    Ok(())
}

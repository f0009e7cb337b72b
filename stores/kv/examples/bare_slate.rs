//! Puts values into a bare SlateDB in a folder, each with its number, and says how many batches a second that were:
//! `bare_slate FOLDER always|durable BATCHES VALUE_BYTES [RATE]`. `benches/slate.py` runs it beside `slate_speed`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::local::LocalFileSystem;
use slatedb::config::Settings;
use slatedb::{Db, WriteBatch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [folder, sync, batches, bytes, rest @ ..] = &arguments[..] else {
        return Err("bare_slate FOLDER always|durable BATCHES VALUE_BYTES [RATE]".into());
    };
    let (waits, batches, bytes): (_, u64, usize) = (sync == "always", batches.parse()?, bytes.parse()?);
    let pause =
        rest.first().map(|rate| rate.parse()).transpose()?.map(|rate: f64| Duration::from_secs_f64(rate.recip()));
    std::fs::create_dir_all(folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    runtime.block_on(async {
        let store = Arc::new(LocalFileSystem::new_with_prefix(folder)?.with_fsync(true));
        let settings = Settings { flush_interval: Some(Duration::from_millis(100)), ..Settings::default() };
        let db = Db::builder("", store).with_settings(settings).build().await?;
        let (begin, mut waited) = (Instant::now(), Duration::ZERO);
        for batch in 0..batches {
            if let Some(pause) = pause {
                let early = (pause * batch as u32).saturating_sub(begin.elapsed());
                tokio::time::sleep(early).await;
                waited += early;
            }
            let mut puts = WriteBatch::new();
            puts.put(batch.to_be_bytes(), vec![batch as u8; bytes]);
            puts.put(b"rows", (batch + 1).to_le_bytes());
            db.write(puts).await?;
            if waits {
                db.flush().await?;
            }
        }
        db.flush().await?;
        println!("{}", batches as f64 / (begin.elapsed() - waited).as_secs_f64());
        db.close().await?;
        Ok(())
    })
}

//! Appending, creating and writing.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use h5live::{File, Result};
use h5live_own::{file, folder, signal};

/// One chunk of 4 KiB and a flush, of a live file that grows.
fn append(c: &mut Criterion) {
    let folder = folder();
    let mut run = || -> Result<()> {
        let live = File::options().create().open(file(&folder, "append"))?;
        let data = live.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[512]).create("data")?;
        live.start_swmr()?;
        let values = [7u64; 512];
        let mut group = c.benchmark_group("append");
        group.throughput(Throughput::Bytes(4096));
        group.bench_function("4 KiB chunk, flush each", |b| {
            b.iter(|| data.append(&values).and_then(|()| data.flush()).expect("an append"))
        });
        group.finish();
        Ok(())
    };
    run().expect("a live file");
}

/// A thousand compact datasets in a new file.
fn create(c: &mut Criterion) {
    const NUMBER: i32 = 1000;
    let folder = folder();
    let run = || -> Result<()> {
        let made = File::options().create().open(file(&folder, "create"))?;
        (0..NUMBER).try_for_each(|i| {
            let dataset = made.new_dataset::<i32>().compact();
            dataset.create_with_data(&format!("dataset {i}"), &[i, 1, 2, 3]).map(drop)
        })?;
        made.close()
    };
    let mut group = c.benchmark_group("create");
    group.throughput(Throughput::Elements(NUMBER as u64)).sample_size(20);
    group.bench_function("1,000 compact datasets", |b| b.iter(|| run().expect("a file")));
    group.finish();
}

fn write(made: File, values: &[i32]) -> Result<()> {
    let dataset = made.new_dataset::<i32>().shape(&[values.len() as u64]).chunk_shape(&[64 << 10]);
    dataset.shuffle().deflate(4).create("data")?.write(values)?;
    made.close()
}

/// 16 MiB in chunks of 256 KiB with deflate(4) and shuffle.
fn deflate(c: &mut Criterion) {
    let (folder, values) = (folder(), signal(4 << 20));
    let path = file(&folder, "deflate");
    let mut group = c.benchmark_group("write");
    group.throughput(Throughput::Bytes(values.len() as u64 * 4)).sample_size(10);
    group.bench_function("deflate(4)+shuffle", |b| {
        b.iter_batched(
            || File::options().create().open(&path).expect("a file"),
            |made| write(made, &values).expect("a file"),
            BatchSize::PerIteration,
        )
    });
    group.finish();
}

criterion_group!(all, append, create, deflate);
criterion_main!(all);

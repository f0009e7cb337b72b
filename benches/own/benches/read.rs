//! Reading and opening.

use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use h5live::{Dataset, File, Result};
use h5live_own::{file, folder, signal};

/// 64 MiB.
const ELEMENTS: u64 = 16 << 20;
const DATASETS: i32 = 1000;

/// A file of 64 MiB as they are, 64 MiB compressed, and many small datasets.
fn make(path: &Path) -> Result<File> {
    let values = signal(ELEMENTS as usize);
    let made = File::options().create().open(path)?;
    made.new_dataset::<i32>().shape(&[ELEMENTS]).contiguous().create("contiguous")?.write(&values)?;
    let deflate = made.new_dataset::<i32>().shape(&[ELEMENTS]).chunk_shape(&[64 << 10]).shuffle().deflate(4);
    deflate.create("deflate")?.write(&values)?;
    for i in 0..DATASETS {
        made.new_dataset::<i32>().compact().create_with_data(&format!("dataset {i}"), &[i, 1, 2, 3])?;
    }
    made.close()?;
    File::open(path)
}

fn whole(c: &mut Criterion, name: &str, data: &Dataset) {
    let mut values = vec![1i32; ELEMENTS as usize];
    let mut group = c.benchmark_group("read whole");
    group.throughput(Throughput::Bytes(ELEMENTS * 4)).sample_size(20);
    group.bench_function(name, |b| b.iter(|| data.read_into(.., &mut values).expect("values")));
    group.finish();
}

fn read(c: &mut Criterion) {
    let folder = folder();
    let path = file(&folder, "read");
    let made = make(&path).expect("a file");
    whole(c, "contiguous", &made.dataset("contiguous").expect("a dataset"));
    whole(c, "deflate(4)+shuffle", &made.dataset("deflate").expect("a dataset"));
    let mut group = c.benchmark_group("open");
    group.bench_function("file", |b| b.iter(|| File::open(&path).expect("a file")));
    let (mut at, mut four) = (0, [0i32; 4]);
    group.bench_function("dataset by name, and read", |b| {
        b.iter(|| {
            // A step without a common factor goes through all of them.
            at = (at + 389) % DATASETS;
            let data = made.dataset(&format!("dataset {at}")).expect("a dataset");
            data.read_into(.., &mut four).expect("four values")
        })
    });
    group.finish();
}

criterion_group!(all, read);
criterion_main!(all);

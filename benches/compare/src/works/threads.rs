//! Two threads of one process.

use h5live::File;

use crate::peer::{self, Make, Type};
use crate::work::{Done, Ground, Unit, Work, bytes, signal, sum, timed};
use crate::{Result, Side};

const CHUNK: u64 = 64 << 10;
const NAMES: [&str; 2] = ["a", "b"];
/// Makes what is read. Unfiltered, so that it is reading that is measured.
fn prepare(ground: &Ground) -> Result<()> {
    let len = ground.times(256) * CHUNK;
    let file = peer::File::create(&ground.file("threads"))?;
    NAMES.iter().try_for_each(|name| {
        let make = Make { dims: &[len], chunk: &[CHUNK], ..Make::default() };
        file.create_dataset(name, Type::I32, &make)?.write_all(Type::I32.id(), &signal(len as usize))
    })
}

/// Reads both datasets: one after the other, or each in a thread of its own. A single read of many chunks would use all
/// cores by itself, so each thread has a pool of its own, of one thread that it waits for.
fn run(threads: bool, ground: &Ground) -> Result<Done> {
    let len = ground.times(256) * CHUNK;
    let file = File::open(ground.file("threads"))?;
    let mut values = [vec![1i32; len as usize], vec![1i32; len as usize]];
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pools = [pool(), pool()].map(|pool| pool.expect("a thread"));
    let read = |n: usize, values: &mut [i32]| -> Result<()> {
        let data = file.dataset(NAMES[n])?;
        pools[n].install(|| (0..4).try_for_each(|_| Ok(data.read_into(.., values)?)))
    };
    let (done, ()) = timed(len * 4 * 8, || {
        if !threads {
            return values.iter_mut().enumerate().try_for_each(|(n, values)| read(n, values));
        }
        std::thread::scope(|scope| {
            let read = &read;
            let running: Vec<_> =
                values.iter_mut().enumerate().map(|(n, values)| scope.spawn(move || read(n, values))).collect();
            running.into_iter().try_for_each(|thread| thread.join().expect("a reading thread"))
        })
    })?;
    Ok(done.sum(values.iter().map(|values| sum(bytes(values))).fold(0, u64::wrapping_add)))
}

/// As "libhdf5" stands what one thread of ours does: the ratio is that of two threads to one.
pub fn works() -> Vec<Work> {
    vec![Work {
        name: "threads",
        title: "two threads reading different datasets of one file, against one thread of ours",
        unit: Unit::Bytes,
        aim: 1.9,
        sides: &[Side::H5live, Side::Libhdf5],
        prepare,
        run: |side, ground| run(side == Side::H5live, ground),
        ..Work::PLAIN
    }]
}

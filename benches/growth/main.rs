//! Does one thing of h5live many times, and says what it took: what `make growth` and `make steps` grow.
//!
//! `growth NAME COUNT [FOLDER]` prints a line of JSON for each phase: its operations, its seconds, and the memory of the
//! process after it. Each phase does a number of operations that is proportional to COUNT, so that a cost that grows
//! with what is there shows in the whole. Without arguments, the names.

mod axes;
mod chunks;
mod datasets;
mod followers;
mod names;
mod phases;
mod pieces;
mod stores;

fn main() -> axes::Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, count, folder @ ..] = &arguments[..] else {
        axes::AXES.iter().for_each(|axis| println!("{}\t{}\t{}", axis.name, axis.unit, axis.smallest));
        return Ok(());
    };
    let axis = axes::AXES.iter().find(|known| known.name == name).ok_or("no such axis")?;
    let folder = tempfile::tempdir_in(folder.first().map_or_else(std::env::temp_dir, Into::into))?;
    let mut phases = phases::Phases::new(folder.path());
    (axis.run)(&mut phases, count.parse()?)
}

//! Counts what is in a file, reading every attribute: `cargo run --release --example walk -- run.h5`.

use h5live::{File, Group, Object, model::LinkTarget};

#[derive(Default)]
struct Counts {
    groups: u64,
    datasets: u64,
    attributes: u64,
    bytes: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let begin = std::time::Instant::now();
    let file = File::open(&path)?;
    let mut counts = Counts::default();
    let mut seen = std::collections::HashSet::from([file.root().id()]);
    let mut waiting: Vec<Group> = vec![file.root()];
    while let Some(group) = waiting.pop() {
        counts.groups += 1;
        for attribute in group.attributes()? {
            counts.attributes += 1;
            counts.bytes += attribute.raw().len() as u64;
        }
        for link in group.links()? {
            let LinkTarget::Hard(id) = link.target else { continue };
            if !seen.insert(id) {
                continue;
            }
            match group.object_by_id(id, &link.name.to_string())? {
                Object::Group(group) => waiting.push(group),
                Object::Dataset(_) => counts.datasets += 1,
                _ => {}
            }
        }
    }
    let Counts { groups, datasets, attributes, bytes } = counts;
    let seconds = begin.elapsed().as_secs_f64();
    println!("{groups} groups, {datasets} datasets, {attributes} attributes of {bytes} bytes in {seconds:.2} s");
    Ok(())
}

//! Numbers by names: `cargo run --example map -- ids.h5`. The example of the document that describes HDF5 map objects.

use h5live::File;

/// Makes a map of two pairs, and looks one of them up.
pub fn create_and_look_up(path: &str) -> h5live::Result<Option<u64>> {
    let file = File::create(path)?;
    let map = file.new_map::<String, u64>().create("map")?;
    map.put("Alice", &25_385_486)?;
    map.put("Bob", &34_873_275)?;
    let found = map.get("Alice")?;
    file.close()?;
    Ok(found)
}

fn main() -> h5live::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "ids.h5".into());
    if let Some(number) = create_and_look_up(&path)? {
        println!("Alice: {number}");
    }
    Ok(())
}

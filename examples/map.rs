//! Numbers by names: `cargo run --example map -- ids.h5`. The example of the document that describes HDF5 map objects.

use h5live::File;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "ids.h5".into());
    let file = File::create(path)?;
    let map = file.new_map::<String, u64>().create("map")?;
    map.put("Alice", &25_385_486)?;
    map.put("Bob", &34_873_275)?;
    let found = map.get("Alice")?;
    println!("Alice: {}", found.map_or_else(|| "none".to_owned(), |id| id.to_string()));
    file.close()?;
    Ok(())
}

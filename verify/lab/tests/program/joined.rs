//! `stress --log`: writers that have joined one file with a log.

use crate::run;
use h5live_test_support::program::text;

#[test]
fn killed_writers_that_have_joined_lose_nothing() {
    let said = text(&run(&["stress", "--log", "--kills", "24", "--seed", "11"]));
    println!("{said}");
    // The last kill may be one of all writers.
    let kills: u32 = said.split(' ').next().unwrap().parse().unwrap();
    assert!((24..28).contains(&kills) && said.contains(": 0 violations"), "{said}");
}

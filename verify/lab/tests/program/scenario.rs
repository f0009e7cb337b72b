//! The scenarios of libhdf5's tests of SWMR, for a short time.

use crate::run;
use h5live_test_support::program::text;

#[test]
fn every_scenario_is_as_it_should_be() {
    let said = text(&run(&["scenario", "all", "--seconds=1"]));
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 8, "{said}");
    for line in lines {
        assert!(line.ends_with(" 0 violations"), "{said}");
        let steps: u64 = line.split_whitespace().nth(1).and_then(|steps| steps.parse().ok()).unwrap();
        assert!(steps > 0, "{said}");
    }
}

use super::*;

/// One test for each target, so that they run at the same time.
macro_rules! survives_damage {
    ($($test:ident: $target:literal;)*) => {
        $(
            #[test]
            fn $test() {
                let mut seeds = all_seeds().into_iter().filter(|seed| seed.target == $target).peekable();
                assert!(seeds.peek().is_some());
                seeds.for_each(|seed| run_target_on_systematic_damage(&seed, |_, run| run()));
            }
        )*
    };
}

survives_damage! {
    superblocks_survive_damage: "superblock";
    object_headers_survive_damage: "object_header";
    messages_survive_damage: "message";
    datatypes_survive_damage: "datatype";
    version_1_btrees_survive_damage: "btree1";
    version_2_btrees_survive_damage: "btree2";
    heaps_survive_damage: "heap";
    fractal_heaps_survive_damage: "fractal_heap";
    arrays_survive_damage: "array";
    space_survives_damage: "space";
    indirect_data_survive_damage: "indirect";
    dumps_survive_damage: "dump";
}

#[test]
fn every_target_has_seeds() {
    let seeds = all_seeds();
    assert!(TARGETS.iter().all(|target| seeds.iter().any(|seed| seed.target == target.name)));
}

/// How often each seed is scrambled, and the number that begins the random numbers: from the environment, to look
/// longer or to repeat.
fn scrambling() -> (u32, u64) {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
    (number("H5LIVE_FUZZ_ROUNDS").unwrap_or(40) as u32, number("H5LIVE_FUZZ_SEED").unwrap_or(0x5eed))
}

#[test]
fn all_survive_random_changes() {
    let (rounds, random) = scrambling();
    println!("H5LIVE_FUZZ_ROUNDS={rounds} H5LIVE_FUZZ_SEED={random}");
    for (i, seed) in all_seeds().iter().enumerate() {
        run_target_on_mutations(
            seed,
            rounds,
            random.wrapping_add(i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            |_, run| run(),
        );
    }
}

use h5live_cache::Storage;
use proptest::prelude::*;

use super::*;

fn write(at: u64, bytes: &[u8]) -> StorageOp {
    StorageOp::Write { at, bytes: bytes.to_vec() }
}

fn bounds(loss: CrashKind, tearing: AllowedTears) -> CrashExploreBounds {
    CrashExploreBounds {
        start_prefix: 0,
        tearing,
        crash_kind: loss,
        max_recovery_crashes: 0,
        time_limit: None,
        threads: 1,
    }
}

fn cells<const N: usize>(disk: &CrashedStorage) -> [u8; N] {
    let mut cells = [0; N];
    disk.read_at(&mut cells, 0).unwrap();
    cells
}

fn images(trace: &Trace, bounds: &CrashExploreBounds) -> (Vec<Vec<u8>>, CrashExploreReport) {
    let seen = Mutex::new(Vec::new());
    let crashed = explore_crashes(trace, bounds, &|disk: &Arc<CrashedStorage>, _: &ExpectedPrefixRange| {
        seen.lock().push(disk.to_vec());
        Ok(())
    });
    let mut seen = seen.into_inner();
    seen.sort();
    (seen, crashed)
}

#[test]
fn a_dead_process_leaves_every_prefix_and_every_part() {
    let trace = Trace::new(vec![0; 2], vec![write(0, &[1, 2]), StorageOp::SetLen(1)]);
    let (seen, crashed) = images(&trace, &bounds(CrashKind::Process, AllowedTears::cut_at_multiples_of(1)));
    assert_eq!(seen, [vec![0, 0], vec![1], vec![1, 0], vec![1, 2]]);
    assert!(crashed.is_exhaustive);
}

#[test]
fn a_power_failure_leaves_any_of_what_no_barrier_followed() {
    let operations = vec![write(0, &[1]), StorageOp::Sync, write(1, &[2]), write(2, &[3])];
    let trace = Trace::new(vec![0; 3], operations);
    let (seen, crashed) =
        images(&trace, &bounds(CrashKind::Power(PowerFailureSampling::default()), AllowedTears::NONE));
    assert_eq!(seen, [[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 3], [1, 2, 0], [1, 2, 3]]);
    assert!(crashed.is_exhaustive);
}

#[test]
fn finds_a_flag_that_may_come_before_its_data() {
    let recover = |disk: &Arc<CrashedStorage>, _: &ExpectedPrefixRange| match cells::<2>(disk) {
        [1, data] if data != 9 => Err("flagged without data".into()),
        _ => Ok(()),
    };
    let power = CrashKind::Power(PowerFailureSampling::default());
    let ordered = Trace::new(vec![0; 2], vec![write(1, &[9]), StorageOp::Sync, write(0, &[1])]);
    assert_eq!(explore_crashes(&ordered, &bounds(power, AllowedTears::NONE), &recover).violation_count, 0);
    let unordered = Trace::new(vec![0; 2], vec![write(1, &[9]), write(0, &[1])]);
    let found = explore_crashes(&unordered, &bounds(power, AllowedTears::NONE), &recover);
    assert_eq!(found.violations[0].survivors, SurvivingWrites::Subset { durable: 0, kept: vec![1], torn: None });
    assert_eq!(
        explore_crashes(&unordered, &bounds(CrashKind::Process, AllowedTears::NONE), &recover).violation_count,
        0
    );
}

#[test]
fn recovery_crashes_too() {
    // Recovery clears the data before it clears the flag, which is the wrong way round.
    let recover = |disk: &Arc<CrashedStorage>, _: &ExpectedPrefixRange| match cells::<2>(disk) {
        [1, 0] => Err("flagged without data".into()),
        [1, _] => {
            disk.write_at(&[0], 1).unwrap();
            disk.write_at(&[0], 0).unwrap();
            Ok(())
        }
        _ => Ok(()),
    };
    let trace = Trace::new(vec![0; 2], vec![write(1, &[9]), write(0, &[1])]);
    let mut bounds = bounds(CrashKind::Process, AllowedTears::NONE);
    assert_eq!(explore_crashes(&trace, &bounds, &recover).violation_count, 0);
    bounds.max_recovery_crashes = 1;
    let found = explore_crashes(&trace, &bounds, &recover);
    assert_eq!((found.violation_count, &found.violations[0].crashed_recoveries), (1, &vec![WriterPosition::after(1)]));
}

#[test]
fn many_pending_operations_are_sampled_and_that_is_said() {
    let trace = Trace::new(vec![0; 30], (0..30).map(|n| write(n, &[1])).collect());
    let power = PowerFailureSampling { random_subset_count: 100, ..PowerFailureSampling::default() };
    let (seen, crashed) = images(&trace, &bounds(CrashKind::Power(power), AllowedTears::NONE));
    assert!(!crashed.is_exhaustive);
    let missing_one = |image: &&Vec<u8>| image.iter().filter(|byte| **byte == 0).count() == 1;
    assert_eq!(seen.iter().filter(missing_one).count(), 30);
    assert!(seen.contains(&vec![1; 30]));
}

proptest! {
    #[test]
    fn a_disk_holds_what_a_file_would(changes in prop::collection::vec(
        prop_oneof![
            3 => (0u64..9000, prop::collection::vec(any::<u8>(), 0..5000)).prop_map(|(at, bytes)| StorageOp::Write { at, bytes }),
            1 => (0u64..9000).prop_map(StorageOp::SetLen),
        ], 0..8)) {
        let base: Vec<u8> = (0..5000u32).map(|n| n as u8).collect();
        let trace = Trace::new(base.clone(), changes.clone());
        let disk = CrashedStorage::new(Arc::new(base));
        changes.iter().for_each(|operation| disk.apply(operation, Tear::None));
        prop_assert_eq!(disk.to_vec(), trace.image_after(trace.len()).unwrap());
    }
}

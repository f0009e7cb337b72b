//! What a store can never take is refused when it is written, and not by each flush that follows.

use h5live::{File, StoreCheckOptions, UNLIMITED};

fn stores(folder: &std::path::Path) -> Vec<String> {
    let named = |store: String| if store == "mem:" { format!("mem:{}", folder.display()) } else { store };
    crate::facade::stores(folder).into_iter().map(named).collect()
}

/// What is written far out either is there after the file was opened again, or was refused.
#[test]
fn elements_far_out_are_stored_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(folder.path()) {
        println!("{store}");
        let file = File::create(&store).unwrap();
        let other = file.new_dataset::<u8>().unlimited_rows(&[]).create_with_data("other", &[1, 2, 3]).unwrap();
        let far =
            file.new_dataset::<u16>().shape(&[4]).max_shape(&[UNLIMITED]).chunk_shape(&[3]).create("far").unwrap();
        far.resize(&[1 << 63]).unwrap();
        far.write_slice(2, &[7]).unwrap();
        let is_written = far.write_slice(1u64 << 62, &[5]).is_ok();
        file.flush().unwrap_or_else(|error| panic!("{store}: {error}"));
        let found = far.read_slice::<u16>(1u64 << 62).unwrap();
        assert_eq!(found, [if is_written { 5 } else { 0 }], "{store}");
        let is_appended = far.append(&[6]).is_ok();
        file.flush().unwrap_or_else(|error| panic!("{store}, after an append: {error}"));
        assert_eq!(far.shape().unwrap(), [(1 << 63) + u64::from(is_appended)], "{store}");
        far.resize(&[4]).unwrap_or_else(|error| panic!("{store}: {error}"));
        assert_eq!(far.read::<u16>().unwrap(), [0, 0, 7, 0], "{store}");
        other.append(&[4]).unwrap();
        file.close().unwrap_or_else(|error| panic!("{store}: {error}"));
        if !store.starts_with("mem:") {
            let report =
                h5live::check(&store, StoreCheckOptions { verify_data: true, ..StoreCheckOptions::default() }).unwrap();
            assert!(report.findings.is_empty(), "{store}: {:?}", report.findings);
        }
        let file = File::open(&store).unwrap();
        assert_eq!(file.dataset("other").unwrap().read::<u8>().unwrap(), [1, 2, 3, 4], "{store}");
        assert_eq!(file.dataset("far").unwrap().read::<u16>().unwrap(), [0, 0, 7, 0], "{store}");
    }
}

/// Nothing is accepted that the limit of memory keeps from being written out.
#[test]
fn chunks_above_the_limit_are_stored_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (store, chunk) in stores(folder.path()).into_iter().flat_map(|store| [(store.clone(), 4096u64), (store, 100)]) {
        let options = File::options().create().max_allocation(512);
        for (name, filter) in [("plain", false), ("filtered", true)] {
            let file = match options.clone().open(&store) {
                Ok(file) => file,
                // The store itself needs more.
                Err(error) => {
                    assert!(error.is_over_max_allocation(), "{store}: {error}");
                    continue;
                }
            };
            let new = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[chunk]);
            let created = if filter { new.deflate(1) } else { new }.create(name);
            let Ok(data) = created else { continue };
            let mut rows: Vec<u64> = Vec::new();
            for row in 0..300 {
                if data.append(&[row]).is_err() {
                    break;
                }
                rows.push(row);
            }
            let is_written = !rows.is_empty() && data.write_slice(0, &[7]).inspect(|()| rows[0] = 7).is_ok();
            let who = format!("{store}, chunks of {chunk}, {name}, {} rows, written {is_written}", rows.len());
            file.flush().unwrap_or_else(|error| panic!("{who}: {error}"));
            file.close().unwrap_or_else(|error| panic!("{who}: {error}"));
            let found = File::open(&store).unwrap().dataset(name).unwrap().read::<u64>().unwrap();
            assert_eq!(found, rows, "{who}");
        }
    }
}

//! Imports that died between their last entry and their end.

mod common;

use common::{archive, source};
use h5live::File;
use h5live_archive::{ImportOptions, ImportedTar, Importer, TarLayout};

const GROUP: &str = "/.h5live_tar";

fn rows(file: &File, name: &str) -> u64 {
    file.dataset(&format!("{GROUP}/{name}")).unwrap().shape().unwrap()[0]
}

/// Puts an import back to where a kill may leave it: the state behind its last entry, its archive's row there or not.
fn put_back(file: &File, has_row: bool) {
    file.group(GROUP).unwrap().set_attribute("importing", &2u8).unwrap();
    if !has_row {
        let archives = rows(file, "archive");
        file.dataset(&format!("{GROUP}/archive")).unwrap().resize(&[archives - 1]).unwrap();
    }
    file.flush().unwrap();
}

#[test]
fn an_import_that_died_behind_its_last_entry_is_not_taken_for_one_of_a_second_archive() {
    let options = |layout| ImportOptions { layout, ..ImportOptions::default() };
    // The second time, the same archive again: only the file can say which of the two was interrupted.
    let archives = [archive(&["one", "two/three"]), archive(&["one", "two/three"]), archive(&[])];
    let layouts = [TarLayout::Shredder, TarLayout::Digest];
    for (layout, has_row) in layouts.iter().flat_map(|layout| [(*layout, true), (*layout, false)]) {
        let file = File::in_memory();
        Importer::create(&file, options(layout)).unwrap().import(source(&archives[0]), &mut |_| {}).unwrap();
        for (count, bytes) in archives.iter().enumerate() {
            if count > 0 {
                let importer = Importer::open(&file, options(layout)).unwrap();
                importer.import(source(bytes), &mut |_| {}).unwrap();
            }
            let (entries, headers) = (rows(&file, "entry"), rows(&file, "header"));
            put_back(&file, has_row);
            Importer::open(&file, options(layout)).unwrap().resume(source(bytes), &mut |_| {}).unwrap();
            let tar = ImportedTar::open(&file).unwrap();
            assert_eq!(tar.archives().len(), count + 1, "{layout:?} {has_row}");
            assert_eq!((rows(&file, "entry"), rows(&file, "header")), (entries, headers), "{layout:?} {has_row}");
            assert!(!tar.has_unfinished_import().unwrap());
        }
    }
}

//! Waiting for a store in a folder, from before the folder is there.

use std::path::PathBuf;
use std::time::Duration;

use h5live_model::LocationWatch;
use h5live_swmr::PathWatch;

use crate::engine::LmdbEngine;

/// Watches a folder until it is there, and then the file of keys and values in it.
#[derive(Debug)]
pub struct LmdbFolderWatch {
    folder: PathBuf,
    of_folder: PathWatch,
    /// `None` as long as there is no folder.
    of_data: Option<PathWatch>,
}

impl LmdbFolderWatch {
    /// Watches a folder from now on.
    pub fn new(folder: PathBuf) -> Self {
        let of_folder = PathWatch::new(&folder);
        let mut watch = LmdbFolderWatch { folder, of_folder, of_data: None };
        watch.follow_folder();
        watch
    }

    /// Watches what is in the folder from when it is there. Whether that has begun or ended just now.
    fn follow_folder(&mut self) -> bool {
        let (had_folder, has_folder) = (self.of_data.is_some(), self.folder.is_dir());
        if has_folder && !had_folder {
            self.of_data = Some(PathWatch::new(&LmdbEngine::data_file(&self.folder)));
        } else if !has_folder {
            self.of_data = None;
        }
        has_folder != had_folder
    }
}

impl LocationWatch for LmdbFolderWatch {
    fn is_there(&self) -> bool {
        LmdbEngine::has_store(&self.folder) && PathWatch::new(&LmdbEngine::data_file(&self.folder)).is_there()
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        // What was done before the watch began is seen by another look.
        if self.follow_folder() {
            return true;
        }
        match &mut self.of_data {
            Some(data) => data.wait(timeout),
            None => self.of_folder.wait(timeout),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    /// Waits until something is there.
    fn wait_until_there(watch: &mut LmdbFolderWatch) {
        for _ in 0..20 {
            if watch.is_there() {
                return;
            }
            watch.wait(LONG);
        }
        panic!("it is there, and the watch has not told of it");
    }

    #[test]
    fn a_watch_tells_of_a_store_whose_folder_is_made_later() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        let mut watch = LmdbFolderWatch::new(folder.clone());
        assert!(!watch.is_there() && !watch.wait(Duration::from_millis(20)));
        let making = std::thread::spawn({
            let folder = folder.clone();
            move || {
                std::thread::sleep(Duration::from_millis(50));
                fs::create_dir(&folder).unwrap();
                std::thread::sleep(Duration::from_millis(50));
                fs::write(folder.join("h5live.writer"), "").unwrap();
                fs::write(LmdbEngine::data_file(&folder), "pages").unwrap();
            }
        });
        wait_until_there(&mut watch);
        making.join().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(watch.wait(LONG) && !watch.is_there(), "it was deleted");
    }
}

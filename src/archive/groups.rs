//! Samples that belong together, as WebDataset finds them.

use super::fault::ArchiveFault;
use super::names::Names;

/// Files of one key, which follow each other in the archive: `0001.jpg`, `0001.cls`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleGroup {
    /// The path up to the first dot of the last name.
    pub key: Vec<u8>,
    /// The rest of each path, behind the dot, and the sample.
    pub members: Vec<(Vec<u8>, u64)>,
}

impl SampleGroup {
    /// The sample with an extension.
    pub fn get(&self, extension: &str) -> Option<u64> {
        self.members.iter().find(|(found, _)| found == extension.as_bytes()).map(|(_, sample)| *sample)
    }
}

/// The key and the extension of a path; `None` if its last name has no dot but at its start.
fn split_key(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let name = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let dot = name + path.get(name..)?.iter().position(|byte| *byte == b'.')?;
    (dot > name).then_some((&path[..dot], path.get(dot + 1..)?))
}

pub(super) fn of_names(samples: u64, names: &Names) -> Result<Vec<SampleGroup>, ArchiveFault> {
    let mut groups: Vec<SampleGroup> = Vec::new();
    for sample in 0..samples {
        let Some((key, extension)) = split_key(names.of_sample(sample)?) else { continue };
        let member = (extension.to_vec(), sample);
        match groups.last_mut().filter(|group| group.key == key) {
            Some(group) => group.members.push(member),
            None => groups.push(SampleGroup { key: key.to_vec(), members: vec![member] }),
        }
    }
    Ok(groups)
}

//! What was measured on other kinds of processors stays, each on a page of its own.

use std::fs;
use std::path::Path;

use crate::{Result, machine};

/// The processor that a page names in its first sentence.
fn processor_of(page: &str) -> Option<&str> {
    page.split_once(" cores of ")?.1.split(',').next()
}

/// The name of the page of a processor: its letters and digits.
fn page_name(processor: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
    let words: String = processor.replace("(R)", " ").chars().map(plain).collect();
    words.split_whitespace().collect::<Vec<_>>().join("-") + ".md"
}

/// Moves the page `main` of `folder` below its folder `plots`, if it is of another processor than this machine's; its
/// plots will be this machine's. Returns a line that leads to all such pages; empty if there are none.
pub fn keep(folder: &Path, main: &str, plots: &str) -> Result<String> {
    let (now, kept) = (machine::processor(), folder.join(plots));
    if let Ok(page) = fs::read_to_string(folder.join(main))
        && let Some(processor) = processor_of(&page).filter(|processor| *processor != now)
    {
        let texts = page.lines().filter(|line| !line.starts_with("![") && !line.starts_with("Other processors:"));
        fs::write(kept.join(page_name(processor)), texts.collect::<Vec<_>>().join("\n") + "\n")?;
    }
    // This machine's earlier page is replaced by the one that is about to be written.
    let own = kept.join(page_name(&now));
    if own.exists() {
        fs::remove_file(own)?;
    }
    let mut links = Vec::new();
    for entry in fs::read_dir(&kept)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".md") {
            continue;
        }
        if let Some(processor) = processor_of(&fs::read_to_string(&path)?) {
            links.push(format!("[{processor}]({plots}/{name})"));
        }
    }
    links.sort();
    Ok(if links.is_empty() { String::new() } else { format!("Other processors: {}.\n\n", links.join(", ")) })
}

//! Other files that a copy leads to: their names, or their elements in the copy itself.

use h5live_model::{AllocationTime, DatasetSpec, Dataspace, Layout, LinkTarget, Name};

use super::Copier;
use super::element_copy::ReferencedFileRole;
use crate::chunk_guess::guess_chunk;
use crate::{Dataset, Result};

impl<'a> Copier<'a> {
    /// Calls `rename` with the name of each other file that a copied object has, and gives the copy the name that it
    /// returns. Without it, names stay as they are.
    pub fn rewrite_file_names(mut self, rename: impl Fn(&Name, ReferencedFileRole) -> Name + 'a) -> Self {
        self.files.rename = Some(Box::new(rename));
        self
    }

    /// Sets whether the elements of virtual datasets and of raw files are copied to the new file (default: no). Then the
    /// copy is a dataset like others, without sources. External links stay links.
    pub fn inline_external_storage_and_virtual(mut self, inline: bool) -> Self {
        self.inline = inline;
        self
    }

    /// Whether the elements of a dataset are in other files, and stay there.
    pub(super) fn has_elements_elsewhere(&self, dataset: &Dataset) -> Result<bool> {
        Ok(!self.inline && matches!(dataset.stored_spec()?.layout, Layout::Virtual(_) | Layout::External(_)))
    }

    /// The target of the copy of a link.
    pub(super) fn link_target(&self, target: LinkTarget) -> LinkTarget {
        match target {
            LinkTarget::External { file, path } => {
                LinkTarget::External { file: self.files.renamed(&file, ReferencedFileRole::ExternalLink), path }
            }
            other => other,
        }
    }

    /// Gives the copy of a dataset the names of its other files, or a layout for elements of its own.
    pub(super) fn change_sources(&self, spec: &mut DatasetSpec) {
        if self.inline && matches!(spec.layout, Layout::Virtual(_) | Layout::External(_)) {
            return make_inline(spec);
        }
        match &mut spec.layout {
            Layout::Virtual(sources) => {
                for source in sources {
                    source.file = self.files.renamed(&source.file, ReferencedFileRole::VirtualSource);
                }
            }
            Layout::External(pieces) => {
                for piece in pieces {
                    piece.name = self.files.renamed(&piece.name, ReferencedFileRole::RawFile);
                }
            }
            _ => {}
        }
    }
}

fn make_inline(spec: &mut DatasetSpec) {
    let (dims, max) = (spec.dataspace.dims(), spec.dataspace.max_dims());
    let is_chunked = matches!(spec.dataspace, Dataspace::Simple(_)) && dims != max;
    (spec.layout, spec.fill.allocation) = if is_chunked {
        let chunk = guess_chunk(dims, max, spec.datatype.size().into());
        (Layout::Chunked(chunk), AllocationTime::Incremental)
    } else {
        (Layout::Contiguous, AllocationTime::Late)
    };
}

//! Descriptions of objects.

use h5live_format::messages::{DataspaceMessage, DatatypeMessage, FillValueMessage, FilterPipelineMessage};
use h5live_format::{Fault, LibVer, Result, StoredSelection, Wire};
use h5live_model::{
    CreationOrder, DatasetSpec, Dataspace, Datatype, ExternalPiece, Fill, FilterSpecs, GroupSpec, Layout,
    LinkOrAttributeStorageSpec, MapSpec, ObjectKindSpec, ObjectSpec, Selection, VirtualSource,
};

use super::codec::{wire_bool, wire_choice, wire_dims, wire_id, wire_list, wire_name, wire_option};

/// The bounds of versions under which parts are written that files have, too.
const PROFILE: LibVer = LibVer::V112;
/// Fewest bytes of a piece of a raw file, and of a source of a virtual dataset.
const MIN_PIECE_BYTES: usize = 20;
const MIN_SOURCE_BYTES: usize = 24;

pub(super) fn wire_datatype(w: &mut impl Wire, datatype: &mut Datatype) -> Result<()> {
    let mut message = DatatypeMessage { min_composite_version: 3, datatype: std::mem::take(datatype) };
    let done = w.record(&mut message);
    *datatype = message.datatype;
    done
}

pub(super) fn wire_dataspace(w: &mut impl Wire, dataspace: &mut Dataspace) -> Result<()> {
    let mut message = DataspaceMessage::new(LibVer::V18, std::mem::take(dataspace));
    let done = w.record(&mut message);
    *dataspace = message.dataspace;
    done
}

fn wire_filters(w: &mut impl Wire, filters: &mut FilterSpecs) -> Result<()> {
    // The first version has the names of all filters.
    let mut message = FilterPipelineMessage { version: 1, filters: std::mem::take(filters) };
    let done = w.record(&mut message);
    *filters = message.filters;
    done
}

fn wire_fill(w: &mut impl Wire, fill: &mut Fill) -> Result<()> {
    let mut message = FillValueMessage::new(LibVer::V18, std::mem::take(fill));
    let done = w.record(&mut message);
    *fill = message.fill;
    done
}

/// A selection of a dataset of so many dimensions.
pub(super) fn wire_selection(w: &mut impl Wire, selection: &mut Selection) -> Result<()> {
    let rank = selection.rank().unwrap_or(1);
    let mut stored = StoredSelection::new(PROFILE, rank, std::mem::take(selection));
    let done = w.record(&mut stored);
    *selection = stored.selection;
    done
}

pub(super) fn wire_entry_storage(w: &mut impl Wire, storage: &mut LinkOrAttributeStorageSpec) -> Result<()> {
    let orders = [CreationOrder::Untracked, CreationOrder::Tracked, CreationOrder::Indexed];
    wire_choice(w, "creation order", &orders, &mut storage.order)?;
    w.u16("most compact", &mut storage.max_compact)?;
    w.u16("fewest dense", &mut storage.min_dense)
}

const COMPACT: u8 = 0;
const CONTIGUOUS: u8 = 1;
const CHUNKED: u8 = 2;
const EXTERNAL: u8 = 3;
const VIRTUAL: u8 = 4;

fn wire_layout(w: &mut impl Wire, layout: &mut Layout) -> Result<()> {
    let number = match layout {
        Layout::Compact => COMPACT,
        Layout::Contiguous => CONTIGUOUS,
        Layout::Chunked(_) => CHUNKED,
        Layout::External(_) => EXTERNAL,
        Layout::Virtual(_) => VIRTUAL,
    };
    let number = w.derived_u8("layout", number)?;
    if w.is_decoding() {
        *layout = match number {
            COMPACT => Layout::Compact,
            CONTIGUOUS => Layout::Contiguous,
            CHUNKED => Layout::Chunked(Vec::new()),
            EXTERNAL => Layout::External(Vec::new()),
            VIRTUAL => Layout::Virtual(Vec::new()),
            found => return Err(w.fault("layout", Fault::InvalidValue { found: found.into(), rule: "0 to 4" })),
        };
    }
    match layout {
        Layout::Chunked(dims) => wire_dims(w, "chunk dimensions", dims),
        Layout::External(pieces) => {
            wire_list(w, "pieces", MIN_PIECE_BYTES, pieces, ExternalPiece::default, |w, piece| {
                wire_name(w, "file", &mut piece.name)?;
                w.u64("offset", &mut piece.offset)?;
                w.u64("size", &mut piece.size)
            })
        }
        Layout::Virtual(sources) => {
            wire_list(w, "sources", MIN_SOURCE_BYTES, sources, VirtualSource::default, |w, source| {
                wire_name(w, "file", &mut source.file)?;
                wire_name(w, "dataset", &mut source.dataset)?;
                wire_selection(w, &mut source.source)?;
                wire_selection(w, &mut source.target)
            })
        }
        Layout::Compact | Layout::Contiguous => Ok(()),
    }
}

fn wire_dataset(w: &mut impl Wire, dataset: &mut DatasetSpec) -> Result<()> {
    wire_datatype(w, &mut dataset.datatype)?;
    wire_option(w, "committed type", &mut dataset.committed_datatype, no_id, |w, id| wire_id(w, "committed type", id))?;
    wire_dataspace(w, &mut dataset.dataspace)?;
    wire_layout(w, &mut dataset.layout)?;
    wire_filters(w, &mut dataset.filters)?;
    wire_fill(w, &mut dataset.fill)?;
    wire_bool(w, "unfiltered edges", &mut dataset.unfiltered_partial_chunks)
}

/// An identity that is to be read.
pub(super) fn no_id() -> h5live_model::ObjectId {
    h5live_model::ObjectId(0)
}

const GROUP: u8 = 0;
const DATASET: u8 = 1;
const DATATYPE: u8 = 2;
const MAP: u8 = 3;

fn wire_body(w: &mut impl Wire, body: &mut ObjectKindSpec) -> Result<()> {
    let number = match body {
        ObjectKindSpec::Group(_) => GROUP,
        ObjectKindSpec::Dataset(_) => DATASET,
        ObjectKindSpec::Datatype(_) => DATATYPE,
        ObjectKindSpec::Map(_) => MAP,
    };
    let number = w.derived_u8("kind", number)?;
    if w.is_decoding() {
        *body = match number {
            GROUP => ObjectKindSpec::Group(GroupSpec::default()),
            DATASET => ObjectKindSpec::Dataset(Box::default()),
            DATATYPE => ObjectKindSpec::Datatype(Datatype::default()),
            MAP => ObjectKindSpec::Map(Box::<MapSpec>::default()),
            found => return Err(w.fault("kind", Fault::InvalidValue { found: found.into(), rule: "0 to 3" })),
        };
    }
    match body {
        ObjectKindSpec::Group(group) => wire_entry_storage(w, &mut group.link_storage),
        ObjectKindSpec::Dataset(dataset) => wire_dataset(w, dataset),
        ObjectKindSpec::Datatype(datatype) => wire_datatype(w, datatype),
        ObjectKindSpec::Map(map) => {
            wire_datatype(w, &mut map.key_type)?;
            wire_datatype(w, &mut map.value_type)
        }
    }
}

pub(super) fn wire_spec(w: &mut impl Wire, spec: &mut ObjectSpec) -> Result<()> {
    wire_body(w, &mut spec.body)?;
    wire_entry_storage(w, &mut spec.attribute_storage)?;
    wire_bool(w, "times", &mut spec.track_times)?;
    wire_bool(w, "large attributes", &mut spec.expects_large_attributes)
}

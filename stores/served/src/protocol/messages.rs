//! Requests and answers about objects.

use h5live_format::{Record, Result, Wire};
use h5live_model::{
    AttributeData, ChunkEncodedBy, ConsistencyScope, Link, Name, ObjectId, ReferenceKind, Referent, ReferentPart,
    Selection, Settings, StoreFeatures, VlenAndReferenceSizes, WriterLiveness,
};

use super::codec::{wire_blob, wire_bool, wire_choice, wire_id, wire_list, wire_name, wire_option};
use super::object::{MIN_OBJECT_BYTES, ObjectRecord, wire_attributes, wire_links};
use super::spec::{no_id, wire_selection};
use super::wire_message_head;

/// What a file is: the answer of `session`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionAnswer {
    /// Which file of the server's system is at the name. The requests that follow have it, so that a file that takes its
    /// place is noticed.
    pub incarnation: u64,
    /// The kind of store that the server reads.
    pub connector: Name,
    /// The root group.
    pub root: ObjectId,
    /// Sizes of elements that lead elsewhere.
    pub vlen_and_reference_sizes: VlenAndReferenceSizes,
    /// What of the data model it has.
    pub features: StoreFeatures,
    /// Whether chunks come as filters left them.
    pub encoding: ChunkEncodedBy,
    /// What of a view belongs together.
    pub view: ConsistencyScope,
    /// How the container was made.
    pub creation_settings: Settings,
    /// Whether somebody may write it.
    pub liveness: WriterLiveness,
    /// Whether its writer died.
    pub is_abandoned: bool,
}

impl Default for SessionAnswer {
    fn default() -> Self {
        SessionAnswer {
            incarnation: 0,
            connector: Name::default(),
            root: no_id(),
            vlen_and_reference_sizes: VlenAndReferenceSizes::default(),
            features: StoreFeatures::NONE,
            encoding: ChunkEncodedBy::Pipeline,
            view: ConsistencyScope::Object,
            creation_settings: Settings::default(),
            liveness: WriterLiveness::AtRest,
            is_abandoned: false,
        }
    }
}

/// Features by their names, so that their numbers may change.
fn wire_features(w: &mut impl Wire, features: &mut StoreFeatures) -> Result<()> {
    let mut names: Vec<Name> = features.names().map(Name::from).collect();
    wire_list(w, "features", 4, &mut names, Name::default, |w, name| wire_name(w, "feature", name))?;
    let known = StoreFeatures::NAMED.iter().filter(|(_, name)| names.iter().any(|given| given.as_str() == Some(name)));
    *features = known.fold(StoreFeatures::NONE, |all, (feature, _)| all.with(*feature));
    Ok(())
}

fn wire_settings(w: &mut impl Wire, settings: &mut Settings) -> Result<()> {
    let mut pairs: Vec<(Name, Name)> = settings.iter().map(|(name, value)| (name.into(), value.into())).collect();
    wire_list(w, "settings", 8, &mut pairs, Default::default, |w, (name, value)| {
        wire_name(w, "setting", name)?;
        wire_name(w, "value", value)
    })?;
    *settings = Settings::default();
    for (name, value) in &pairs {
        settings.set(&name.to_string(), value);
    }
    Ok(())
}

impl Record for SessionAnswer {
    const NAME: &'static str = "session";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_message_head(w)?;
        w.u64("incarnation", &mut self.incarnation)?;
        wire_name(w, "connector", &mut self.connector)?;
        wire_id(w, "root", &mut self.root)?;
        let forms = &mut self.vlen_and_reference_sizes;
        let sizes =
            [&mut forms.vlen, &mut forms.object_reference, &mut forms.region_reference, &mut forms.standard_reference];
        sizes.into_iter().try_for_each(|size| w.u32("size of an element", size))?;
        wire_features(w, &mut self.features)?;
        wire_choice(w, "encoding", &[ChunkEncodedBy::Pipeline, ChunkEncodedBy::Store], &mut self.encoding)?;
        wire_choice(
            w,
            "view",
            &[ConsistencyScope::Chunk, ConsistencyScope::Object, ConsistencyScope::Store],
            &mut self.view,
        )?;
        wire_settings(w, &mut self.creation_settings)?;
        let states = [WriterLiveness::AtRest, WriterLiveness::Live, WriterLiveness::Unknown];
        wire_choice(w, "liveness", &states, &mut self.liveness)?;
        wire_bool(w, "is abandoned", &mut self.is_abandoned)
    }
}

/// A message of these fields behind the head.
macro_rules! message {
    ($(#[$doc:meta])* $type:ident = $name:literal { $($(#[$field_doc:meta])* $field:ident: $of:ty = $initial:expr,)* }
        |$this:ident, $w:ident| $wire:block) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $type { $($(#[$field_doc])* pub $field: $of,)* }

        impl Default for $type {
            fn default() -> Self {
                $type { $($field: $initial,)* }
            }
        }

        impl Record for $type {
            const NAME: &'static str = $name;

            fn wire(&mut self, $w: &mut impl Wire) -> Result<()> {
                wire_message_head($w)?;
                let $this = self;
                $wire
            }
        }
    };
}
pub(super) use message;

message! {
    /// Asks for objects: `objects`.
    ObjectsRequest = "request for objects" {
        /// The file.
        incarnation: u64 = 0,
        /// The objects, at most [`MAX_REQUEST_OBJECTS`](super::MAX_REQUEST_OBJECTS).
        ids: Vec<ObjectId> = Vec::new(),
        /// How many objects may come besides, to which hard links of these lead.
        others: u32 = 0,
    }
    |this, w| {
        w.u64("incarnation", &mut this.incarnation)?;
        wire_list(w, "objects", 16, &mut this.ids, no_id, |w, id| wire_id(w, "object", id))?;
        w.u32("others", &mut this.others)
    }
}

message! {
    /// Objects: those that were asked for, in their order, and others. The last ones may be left out if they would be too
    /// large together.
    ObjectsAnswer = "objects" {
        /// The objects.
        objects: Vec<ObjectRecord> = Vec::new(),
    }
    |this, w| {
        wire_list(w, "objects", MIN_OBJECT_BYTES, &mut this.objects, ObjectRecord::default, |w, object| object.wire(w))
    }
}

message! {
    /// Asks for the links of a group: `links`.
    LinksRequest = "request for links" {
        /// The file.
        incarnation: u64 = 0,
        /// The group.
        group: ObjectId = no_id(),
        /// The name of the one that is wanted; `None` for all.
        name: Option<Name> = None,
    }
    |this, w| {
        w.u64("incarnation", &mut this.incarnation)?;
        wire_id(w, "group", &mut this.group)?;
        wire_option(w, "has a name", &mut this.name, Name::default, |w, name| wire_name(w, "name", name))
    }
}

message! {
    /// Links.
    LinksAnswer = "links" {
        /// The links.
        links: Vec<Link> = Vec::new(),
    }
    |this, w| { wire_links(w, &mut this.links) }
}

message! {
    /// Asks for the attributes of an object: `attributes`.
    AttributesRequest = "request for attributes" {
        /// The file.
        incarnation: u64 = 0,
        /// The object.
        object: ObjectId = no_id(),
        /// The name of the one that is wanted; `None` for all.
        name: Option<Name> = None,
        /// Whether their names are wanted alone.
        are_names: bool = false,
    }
    |this, w| {
        w.u64("incarnation", &mut this.incarnation)?;
        wire_id(w, "object", &mut this.object)?;
        wire_option(w, "has a name", &mut this.name, Name::default, |w, name| wire_name(w, "name", name))?;
        wire_bool(w, "names alone", &mut this.are_names)
    }
}

message! {
    /// Attributes; those that were asked for by names alone have nothing else.
    AttributesAnswer = "attributes" {
        /// The attributes.
        attributes: Vec<AttributeData> = Vec::new(),
    }
    |this, w| { wire_attributes(w, &mut this.attributes) }
}

message! {
    /// Asks for the bytes of variable-length elements: `blobs`.
    BlobsRequest = "request for variable-length elements" {
        /// The file.
        incarnation: u64 = 0,
        /// The stored elements, one after the other.
        elements: Vec<u8> = Vec::new(),
    }
    |this, w| {
        w.u64("incarnation", &mut this.incarnation)?;
        wire_blob(w, "elements", &mut this.elements)
    }
}

message! {
    /// The bytes of the first elements that were asked for; of one at least.
    BlobsAnswer = "variable-length elements" {
        /// The bytes of each.
        blobs: Vec<Vec<u8>> = Vec::new(),
    }
    |this, w| {
        wire_list(w, "elements", 8, &mut this.blobs, Vec::new, |w, blob| wire_blob(w, "element", blob))
    }
}

message! {
    /// Asks where a reference leads: `referent`.
    ReferentRequest = "request for a referent" {
        /// The file.
        incarnation: u64 = 0,
        /// The kind of the reference.
        kind: ReferenceKind = ReferenceKind::Object1,
        /// The stored element.
        element: Vec<u8> = Vec::new(),
    }
    |this, w| {
        w.u64("incarnation", &mut this.incarnation)?;
        wire_choice(w, "kind", &REFERENCE_KINDS, &mut this.kind)?;
        wire_blob(w, "element", &mut this.element)
    }
}

const REFERENCE_KINDS: [ReferenceKind; 5] = [
    ReferenceKind::Object1,
    ReferenceKind::Region1,
    ReferenceKind::Object2,
    ReferenceKind::Region2,
    ReferenceKind::Attribute,
];

message! {
    /// Asks for the reference to an object: `reference`.
    ReferenceRequest = "request for a reference" {
        /// The file.
        incarnation: u64 = 0,
        /// The kind of the reference.
        kind: ReferenceKind = ReferenceKind::Object1,
        /// Bytes of an element.
        size: u32 = 0,
        /// The object.
        object: ObjectId = no_id(),
    }
    |this, w| {
        w.u64("incarnation", &mut this.incarnation)?;
        wire_choice(w, "kind", &REFERENCE_KINDS, &mut this.kind)?;
        w.u32("size", &mut this.size)?;
        wire_id(w, "object", &mut this.object)
    }
}

message! {
    /// A reference, as an element has it.
    ReferenceAnswer = "reference" {
        /// The stored element.
        element: Vec<u8> = Vec::new(),
    }
    |this, w| {
        wire_blob(w, "element", &mut this.element)
    }
}

message! {
    /// Where a reference leads; `None` if it is null.
    ReferentAnswer = "referent" {
        /// Where it leads.
        referent: Option<Referent> = None,
    }
    |this, w| {
        let new = || Referent { file: None, object: no_id(), part: ReferentPart::Whole };
        wire_option(w, "is not null", &mut this.referent, new, wire_referent)
    }
}

fn wire_referent<W: Wire>(w: &mut W, referent: &mut Referent) -> Result<()> {
    wire_option(w, "has a file", &mut referent.file, Name::default, |w, name| wire_name(w, "file", name))?;
    wire_id(w, "object", &mut referent.object)?;
    let (mut region, mut attribute) = match &referent.part {
        ReferentPart::Whole => (None, None),
        ReferentPart::Region(selection) => (Some(selection.clone()), None),
        ReferentPart::Attribute(name) => (None, Some(name.clone())),
    };
    wire_option(w, "has a region", &mut region, || Selection::All, |w, selection| wire_selection(w, selection))?;
    wire_option(w, "has an attribute", &mut attribute, Name::default, |w, name| wire_name(w, "attribute", name))?;
    referent.part = match (region, attribute) {
        (Some(selection), _) => ReferentPart::Region(selection),
        (None, Some(name)) => ReferentPart::Attribute(name),
        (None, None) => ReferentPart::Whole,
    };
    Ok(())
}

//! Descriptions of maps to be made.

use std::fmt;
use std::marker::PhantomData;

use h5live_model::{
    Datatype, LinkOrAttributeStorageSpec, MapSpec, NewObject, ObjectId, ObjectKindSpec, ObjectSpec, StoreFeatures,
};

use super::object::no_maps;
use super::{Map, UntypedMap};
use crate::error::ErrorKind;
use crate::path::{self, NewLinkPath};
use crate::types::H5Type;
use crate::{File, Group, Result};

/// A map to be made, by [`Group::new_map`].
///
/// ```
/// use h5live::{Datatype, File, H5Type};
///
/// let file = File::in_memory();
/// let counts = file.new_map::<String, u64>().value_type(u16::datatype()).create("run/counts")?;
/// counts.put("a", &7)?;
/// assert!(counts.put("b", &70_000).is_err());
/// # Ok::<(), h5live::Error>(())
/// ```
#[must_use = "a map is made by `create`"]
pub struct MapBuilder<K: H5Type, V: H5Type> {
    group: Group,
    spec: MapSpec,
    attributes: LinkOrAttributeStorageSpec,
    times: bool,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: H5Type, V: H5Type> fmt::Debug for MapBuilder<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapBuilder").field("group", &self.group).field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl<K: H5Type, V: H5Type> MapBuilder<K, V> {
    fn new(group: Group) -> Self {
        let spec = MapSpec {
            key_type: group.file().stored_type(&K::datatype()),
            value_type: group.file().stored_type(&V::datatype()),
        };
        MapBuilder { group, spec, attributes: LinkOrAttributeStorageSpec::default(), times: false, types: PhantomData }
    }

    /// The type of the keys in the file; without it, that of `K`.
    pub fn key_type(mut self, datatype: Datatype) -> Self {
        self.spec.key_type = self.group.file().stored_type(&datatype);
        self
    }

    /// The type of the values in the file; without it, that of `V`.
    pub fn value_type(mut self, datatype: Datatype) -> Self {
        self.spec.value_type = self.group.file().stored_type(&datatype);
        self
    }

    /// How attributes are kept.
    pub fn attribute_storage(mut self, storage: LinkOrAttributeStorageSpec) -> Self {
        self.attributes = storage;
        self
    }

    /// It is kept when the map was touched.
    pub fn track_times(mut self) -> Self {
        self.times = true;
        self
    }

    /// Makes the map, and the groups above it that are not there.
    ///
    /// # Errors
    /// As [`Group::create_group`]; [`ErrorKind::MapsUnsupported`](crate::ErrorKind::MapsUnsupported) if the store holds no maps, which says
    /// which ones do; [`model::Error::Invalid`](h5live_model::Error::Invalid) for keys of a type that keys cannot have.
    pub fn create(self, path: &str) -> Result<Map<K, V>> {
        self.create_untyped(path)?.into_typed()
    }

    /// As [`MapBuilder::create`], without types of the program.
    ///
    /// # Errors
    /// As [`MapBuilder::create`].
    pub fn create_untyped(self, path: &str) -> Result<UntypedMap> {
        let shown = path::join_path(self.group.path(), path);
        let spec = self.object_spec();
        let make = || -> Result<_, ErrorKind> {
            let place = NewLinkPath::resolve(self.group.file(), self.group.id(), path)?;
            check_supports_maps(&place.file)?;
            let id = place.create_object(&spec)?;
            Ok((place.file, id))
        };
        let (file, id) = make().map_err(|kind| self.group.file().error(Some(&shown), kind))?;
        UntypedMap::open(file, id, shown)
    }

    /// Makes a map without a link. [`Group::link_hard`] adds one before the file is closed.
    ///
    /// # Errors
    /// As [`MapBuilder::create`].
    pub fn create_unlinked(self) -> Result<Map<K, V>> {
        let file = self.group.file().clone();
        let make = || -> Result<ObjectId, ErrorKind> {
            let writer = file.writer()?;
            check_supports_maps(&file)?;
            Ok(writer.create(&NewObject::unlinked(&self.object_spec()))?)
        };
        let id = make().map_err(|kind| file.error(None, kind))?;
        UntypedMap::open(file.clone(), id, String::new())?.into_typed()
    }

    fn object_spec(&self) -> ObjectSpec {
        let body = ObjectKindSpec::Map(Box::new(self.spec.clone()));
        ObjectSpec { attribute_storage: self.attributes, track_times: self.times, ..body.into() }
    }
}

/// Refuses a file that holds no maps.
pub(crate) fn check_supports_maps(file: &File) -> Result<(), ErrorKind> {
    match file.session().capabilities.features.has(StoreFeatures::MAPS) {
        true => Ok(()),
        false => Err(no_maps(file)),
    }
}

impl Group {
    /// A description of a new map.
    pub fn new_map<K: H5Type, V: H5Type>(&self) -> MapBuilder<K, V> {
        MapBuilder::new(self.clone())
    }

    /// Makes a map of these types, and the groups above it that are not there.
    ///
    /// # Errors
    /// As [`MapBuilder::create`].
    pub fn create_untyped_map(&self, path: &str, spec: &MapSpec) -> Result<UntypedMap> {
        let builder = self.new_map::<u8, u8>().key_type(spec.key_type.clone()).value_type(spec.value_type.clone());
        builder.create_untyped(path)
    }
}

impl File {
    /// A description of a new map.
    pub fn new_map<K: H5Type, V: H5Type>(&self) -> MapBuilder<K, V> {
        self.root().new_map()
    }
}

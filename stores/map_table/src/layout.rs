//! How a map lies in a group, as `docs/maps.md` has it.

use h5live_model::{
    AllocationTime, AttributeData, ByteOrder, CompoundMember, CompoundType, DatasetSpec, Dataspace, Datatype,
    EnumMember, EnumType, Error, Fill, FillTime, FillValue, Layout, LinkTarget, MapSpec, Name, ObjectId, Result, Shape,
    Sign, Store, UNLIMITED,
};

use crate::error::MapTableError;

/// The attribute of a group that is a map. Its value is [`VERSION`].
pub const MARK_ATTRIBUTE: &str = "H5LIVE_MAP";

/// The layout that is described here.
pub const VERSION: u32 = 1;

/// The link in the group that leads to the table.
pub const TABLE_LINK: &str = "changes";

/// The members of a row.
pub const MEMBERS: [&str; 3] = ["key", "value", "change"];

/// What a row says of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowChange {
    /// Whether the key gets the value; otherwise it is removed.
    pub is_put: bool,
    /// Whether the key is the null string. The member has no text then.
    pub has_null_string_key: bool,
}

impl RowChange {
    /// The names of the values of the member, by value.
    pub const NAMES: [&str; 4] = ["REMOVED", "PUT", "NULL_REMOVED", "NULL_PUT"];

    /// The value of the member.
    pub fn to_byte(self) -> u8 {
        u8::from(self.is_put) | u8::from(self.has_null_string_key) << 1
    }

    /// The change that a value of the member stands for.
    pub fn from_byte(byte: u8) -> Option<Self> {
        (byte < 4).then_some(RowChange { is_put: byte & 1 != 0, has_null_string_key: byte & 2 != 0 })
    }
}

/// Bytes of a chunk of a table, as near as whole rows come to it.
const CHUNK_BYTES: u32 = 64 << 10;

fn change_type() -> Datatype {
    let member = |(value, name): (usize, &&str)| EnumMember { name: Name::from(*name), value: vec![value as u8] };
    let members = RowChange::NAMES.iter().enumerate().map(member).collect();
    Datatype::Enum(EnumType { base: Box::new(Datatype::integer(1, ByteOrder::Little, Sign::Unsigned)), members })
}

/// The type of the rows of a map; `None` if they would be too large.
fn row_type(map: &MapSpec) -> Option<Datatype> {
    let [key, value, change] = MEMBERS;
    let value_at = map.key_type.size();
    let change_at = value_at.checked_add(map.value_type.size())?;
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let members = vec![
        member(key, 0, map.key_type.clone()),
        member(value, value_at, map.value_type.clone()),
        member(change, change_at, change_type()),
    ];
    Some(Datatype::Compound(CompoundType { size: change_at.checked_add(1)?, members }))
}

/// The description of the table of a new map.
///
/// # Errors
/// [`Error::Invalid`] if rows would be too large.
pub fn table_spec(map: &MapSpec) -> Result<DatasetSpec> {
    let datatype = row_type(map).ok_or_else(|| Error::Invalid("keys and values are too large".to_owned()))?;
    let chunk = u64::from((CHUNK_BYTES / datatype.size().max(1)).max(1));
    let shape = Shape::with_max(&[0], &[UNLIMITED]).unwrap_or_default();
    Ok(DatasetSpec {
        datatype,
        dataspace: Dataspace::Simple(shape),
        layout: Layout::Chunked(vec![chunk]),
        fill: Fill { allocation: AllocationTime::Incremental, time: FillTime::IfSet, value: FillValue::Default },
        ..DatasetSpec::default()
    })
}

/// The description of the map whose table this is.
///
/// # Errors
/// [`MapTableError::Malformed`] if it is no such table.
pub fn map_spec(table: &DatasetSpec) -> Result<MapSpec> {
    let Datatype::Compound(row) = &table.datatype else {
        return Err(MapTableError::Malformed("its table has no rows of key and value").into());
    };
    let [key, value, change] = &row.members[..] else {
        return Err(MapTableError::Malformed("its rows have other members than key, value and change").into());
    };
    let is_named = [key, value, change].iter().zip(MEMBERS).all(|(member, name)| member.name == name);
    let fits =
        |member: &CompoundMember| member.offset.checked_add(member.datatype.size()).is_some_and(|end| end <= row.size);
    if !is_named || change.datatype.size() != 1 || ![key, value, change].into_iter().all(fits) {
        return Err(MapTableError::Malformed("its rows have other members than key, value and change").into());
    }
    if table.dataspace.rank() != 1 {
        return Err(MapTableError::Malformed("its table has not one dimension").into());
    }
    let spec = MapSpec { key_type: key.datatype.clone(), value_type: value.datatype.clone() };
    spec.check().map_err(|_| MapTableError::Malformed("it has keys of a type that no map has"))?;
    Ok(spec)
}

/// The attribute that makes a group a map.
pub fn map_mark_attribute() -> AttributeData {
    AttributeData {
        name: MARK_ATTRIBUTE.into(),
        datatype: Datatype::integer(4, ByteOrder::Little, Sign::Unsigned),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: VERSION.to_le_bytes().into(),
        creation_order: None,
    }
}

/// Refuses a mark of another layout.
///
/// # Errors
/// [`MapTableError::UnsupportedVersion`], [`MapTableError::Malformed`].
pub fn check_map_mark(mark: &AttributeData) -> Result<()> {
    match <[u8; 4]>::try_from(&mark.value[..]).map(u32::from_le_bytes) {
        Ok(VERSION) => Ok(()),
        Ok(found) => Err(MapTableError::UnsupportedVersion { found, known: VERSION }.into()),
        Err(_) => Err(MapTableError::Malformed("its mark has another form").into()),
    }
}

/// The table of a map.
///
/// # Errors
/// [`MapTableError::Malformed`] if there is none.
pub fn find_table(store: &dyn Store, map: ObjectId) -> Result<ObjectId> {
    match store.link(map, &TABLE_LINK.into())?.map(|link| link.target) {
        Some(LinkTarget::Hard(table)) => Ok(table),
        _ => Err(MapTableError::Malformed("it has no table").into()),
    }
}

//! Values that libhdf5 encodes: datatypes (`H5Tencode`), dataspaces (`H5Sencode2`), property lists (`H5Pencode2`).

mod attribute_creation;
mod dataset_creation;
mod dataset_layout;
mod dataspace;
mod datatype;
mod external_files;
mod file_creation;
mod fill;
mod group_creation;
mod memory_form;
mod object_creation;
mod pipeline;
mod property_list;

pub use attribute_creation::AttributeCreationProperties;
pub use dataset_creation::DatasetCreationProperties;
pub use dataspace::{decode_dataspace, encode_dataspace};
pub use datatype::{decode_datatype, encode_datatype};
pub use file_creation::FileCreationProperties;
pub use group_creation::GroupCreationProperties;
pub use memory_form::STORED_VLEN_AND_REFERENCE_SIZES;
pub use object_creation::{DatatypeCreationProperties, MapCreationProperties, ObjectCreationProperties};
pub use property_list::{PropertyClass, decode_properties, encode_properties};

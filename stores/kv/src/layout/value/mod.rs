//! The values of records that libhdf5 does not encode.

mod link;
mod marker;
mod number;
mod reference;
mod times;
mod varlen_element;

pub use link::{decode_link_target, encode_link_target};
pub use marker::{ContainerFormat, LAYOUT_VERSION};
pub use number::{decode_oid, decode_u64, encode_u64};
pub use reference::{DecodedReference, EncodedReference};
pub use times::{decode_times, encode_times};
pub use varlen_element::VarLenBlobRef;
